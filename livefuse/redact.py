"""Take credentials and stream keys out of anything a person or a log may see (case C76).

A URL's user info, its query and, for push protocols, the last path segment (the stream key) are
secrets. Everything that prints a URL prints `redact_url(url)`; everything that prints foreign text
(an FFmpeg message, an exception) prints `redact_text(text, secrets)`.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit

HIDDEN: Final = "***"
# Any other scheme pushes, or is a slip of the pen for one that does: its last segment is a key.
_KEYLESS_SCHEMES: Final = frozenset(
    {"rtsp", "rtsps", "http", "https", "hls", "udp", "tcp", "file", "camera", "virtualcam"}
)
_SHORTEST_WORD: Final = 4
_PUNCTUATION: Final = ":,;.)"
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^\s'\"<>]+", re.IGNORECASE)


def redact_url(url: str) -> str:
    """Return `url` with user info, query and stream key replaced by `***`.

    `rtmp://h/app/key` keeps host and app; a URL with no secret comes back unchanged. The bytes of
    a file's name that are no text become `?`, as JSON and terminals take text only.
    """
    url = url.encode("utf-8", "replace").decode("utf-8")
    try:
        parts = urlsplit(url)
    except ValueError:
        return HIDDEN
    if not parts.netloc:
        return url
    host = parts.netloc.rpartition("@")[2]
    netloc = f"{HIDDEN}@{host}" if "@" in parts.netloc else host
    path = parts.path
    if parts.scheme.lower() not in _KEYLESS_SCHEMES:
        head, _, key = path.rpartition("/")
        path = f"{head}/{HIDDEN}" if key and head else path
    query = HIDDEN if parts.query else ""
    return urlunsplit((parts.scheme, netloc, path, query, ""))


def find_secrets(url: str) -> tuple[str, ...]:
    """Return the secret substrings of `url`, longest first, both quoted and unquoted."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return (url,)
    if not parts.netloc:
        return ()
    found: set[str] = set()
    if "@" in parts.netloc:
        info = parts.netloc.rpartition("@")[0]
        found.update({info, info.partition(":")[2]})
    if parts.query:
        found.add(parts.query)
    if parts.scheme.lower() not in _KEYLESS_SCHEMES:
        head, _, key = parts.path.rpartition("/")
        if head:
            found.add(key)
    found |= {unquote(secret) for secret in found}
    return tuple(sorted((s for s in found if s), key=len, reverse=True))


def redact_text(text: str, urls: tuple[str, ...] = ()) -> str:
    """Return `text` with every URL in it redacted, and the secrets of `urls` wherever found."""
    text = _URL.sub(_redact_match, text)
    for url in urls:
        for secret in find_secrets(url):
            # Outside a URL only whole words: hiding the key `1` or `key` inside others hides sense.
            if len(secret) >= _SHORTEST_WORD:
                text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", HIDDEN, text)
    return text


def _redact_match(match: re.Match[str]) -> str:
    """Redact a URL found in a text, whose punctuation behind it is the text's."""
    found = match.group(0)
    url = found.rstrip(_PUNCTUATION)
    return redact_url(url) + found[len(url) :]
