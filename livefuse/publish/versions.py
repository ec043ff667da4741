"""Which FFmpeg is inside, for `livefuse doctor`."""

from __future__ import annotations

import av


def get_ffmpeg_version() -> str:
    """Return the version of the FFmpeg libraries that PyAV brought."""
    return str(av.ffmpeg_version_info)
