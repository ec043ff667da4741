"""How packets are put into the tracks of a recording's Matroska file, and at which time.

The tracks are made for the first connection. A later one with the same codec but other parameter
sets has them put before its keyframes; what does not fit at all is laid aside where no player
looks. The side-car tells where all of it is and what was changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from livefuse.aac import read_adts
from livefuse.clock import NS_PER_MS
from livefuse.ingest.matroska_tracks import (
    NAL_CODECS,
    encode_audio_track,
    encode_video_track,
    is_configuration,
    list_parameter_sets,
    make_private,
)
from livefuse.ingest.nal import read_parameter_sets
from livefuse.ingest.sidecar import pack_annexb

if TYPE_CHECKING:
    from livefuse.ingest.sidecar import Stored, VideoParameters
    from livefuse.packet import AudioInfo

_LENGTH_BYTES: Final = 4
_MAX_DRIFT_MS: Final = 5000


class Times:
    """Where packets stand in the Matroska file: their stamps, moved to when they came."""

    def __init__(self) -> None:
        self._offset_ms: int | None = None

    def begin_connection(self) -> None:
        """Forget the stamps of the connection before."""
        self._offset_ms = None

    def place(self, line: Stored) -> int:
        """Return a time in ms; one that strays from when packets come is anchored anew."""
        arrival_ms = line.at // NS_PER_MS
        stamp = line.pts if line.pts is not None else line.dts
        if stamp is None or line.base is None:
            return arrival_ms
        stamp_ms = stamp * 1000 * line.base[0] // line.base[1]
        if self._offset_ms is None or abs(stamp_ms + self._offset_ms - arrival_ms) > _MAX_DRIFT_MS:
            self._offset_ms = arrival_ms - stamp_ms
        return max(stamp_ms + self._offset_ms, 0)


class Form(NamedTuple):
    """How a packet is put into its track."""

    data: bytes
    head: bytes = b""
    starts: tuple[int, ...] | None = None
    prefix: bytes = b""


class Layout:
    """What the file's tracks can take, and what has to be changed for it."""

    def __init__(self) -> None:
        self._video_codec = ""
        self._configuration = b""
        self._audio: AudioInfo | None = None
        self._takes_video = self._takes_audio = False
        self._has_starts = self._has_lengths = False
        self._sets = b""
        self._is_new = False

    def begin_file(self, video: VideoParameters, audio: AudioInfo | None) -> list[bytes]:
        """Return the tracks of the file, made for its first connection."""
        picture_track = encode_video_track(video)
        sound_track = encode_audio_track(audio) if audio is not None else b""
        self._video_codec, self._configuration = video.codec, make_private(video)
        self._has_lengths = bool(self._configuration) and video.codec in NAL_CODECS
        self._has_starts = self._has_lengths and not is_configuration(video.extradata)
        self._audio = audio
        self._takes_video, self._takes_audio = bool(picture_track), bool(sound_track)
        return [track for track in (picture_track, sound_track) if track]

    def begin_connection(self, video: VideoParameters, audio: AudioInfo | None) -> None:
        """Find out what of a later connection fits into the tracks of the first."""
        self._takes_audio = _is_same_sound(audio, self._audio)
        self._takes_video = video.codec == self._video_codec and bool(encode_video_track(video))
        if video.codec not in NAL_CODECS:
            return
        has_configuration = is_configuration(video.extradata)
        if self._has_lengths:
            length_bytes, _ = read_parameter_sets(video.codec, video.extradata)
            first, _ = read_parameter_sets(video.codec, self._configuration)
            self._takes_video &= first == (length_bytes if has_configuration else _LENGTH_BYTES)
        else:
            self._takes_video &= not has_configuration
        self._has_starts = self._has_lengths and not has_configuration
        self._sets = list_parameter_sets(video.codec, video.extradata) if self._has_lengths else b""
        self._is_new = True

    def fit(self, data: bytes, line: Stored) -> Form | None:
        """Return what goes into the track, or None for what does not fit into any."""
        if line.sound:
            return _fit_sound(data, self._audio) if self._takes_audio else None
        if not self._takes_video:
            return None
        prefix = b""
        if (changed := line.side.get("new_extradata")) and self._has_lengths:
            self._sets = list_parameter_sets(self._video_codec, changed)
            self._is_new = True
        if self._sets and (line.key or self._is_new):
            prefix, self._is_new = self._sets, False
        if not self._has_starts:
            return Form(data, prefix=prefix)
        packed = pack_annexb(data)
        return Form(packed[0], starts=packed[1], prefix=prefix) if packed is not None else None


def _is_same_sound(one: AudioInfo | None, other: AudioInfo | None) -> bool:
    if one is None or other is None or not encode_audio_track(other):
        return False
    if (one.codec, one.sample_rate_hz, one.channels) != (
        other.codec,
        other.sample_rate_hz,
        other.channels,
    ):
        return False
    # Behind AAC's first two bytes is only what its first three entries say, in other words.
    return one.codec == "aac" or one.extradata == other.extradata


def _fit_sound(data: bytes, audio: AudioInfo | None) -> Form:
    adts = read_adts(data) if audio is not None and audio.codec == "aac" else None
    if adts is None:
        return Form(data)
    return Form(data[adts.header_bytes :], head=data[: adts.header_bytes])
