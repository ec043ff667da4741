"""Take credentials and stream keys out of anything a person or a log may see (case C76).

A URL's user info, its query and, where streams have keys (RTMP, RTSP, SRT, `listen:`), the last of
several path segments are secrets, for everybody: whoever has set one knows it. Everything that
prints a URL prints `redact_url(url)`; everything that prints foreign text (an FFmpeg message, an
exception) prints `redact_text(text, secrets)`.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

HIDDEN: Final = "***"
# Any other scheme has stream keys, or is a slip of the pen for one that has: the last segment.
_KEYLESS_SCHEMES: Final = frozenset(
    {"http", "https", "hls", "udp", "tcp", "file", "camera", "virtualcam"}
)
_NAMING_SCHEMES: Final = frozenset({"rtsp", "rtsps"})
"""The last segment may as well be a plain name, `main` or `stream`."""
_LONGEST_NAME: Final = 12
_SHORTEST_WORD: Final = 4
_PUNCTUATION: Final = ":,;.)"
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^\s'\"<>]+", re.IGNORECASE)
_WRAPPED: Final = re.compile(r"((?:[a-z]+:)+)([a-z][a-z0-9+.-]*://.*)", re.IGNORECASE | re.DOTALL)
"""`listen:` and the address that is listened on."""


def redact_url(url: str) -> str:
    """Return `url` with user info, query and stream key replaced by `***`.

    `rtmp://h/app/key` keeps host and app; a URL with no secret comes back unchanged. The bytes of
    a file's name that are no text become `?`, as JSON and terminals take text only.
    """
    url = url.encode("utf-8", "replace").decode("utf-8")
    if wrapped := _WRAPPED.fullmatch(url):
        return wrapped[1] + redact_url(wrapped[2])
    try:
        parts = urlsplit(url)
    except ValueError:
        return HIDDEN
    if not parts.netloc:
        return url
    host = parts.netloc.rpartition("@")[2]
    netloc = f"{HIDDEN}@{host}" if "@" in parts.netloc else host
    head, key = _split_key(parts)
    path = f"{head}/{HIDDEN}" if key else parts.path
    query = HIDDEN if parts.query else ""
    return urlunsplit((parts.scheme, netloc, path, query, ""))


def find_secrets(url: str) -> tuple[str, ...]:
    """Return the secret substrings of `url`, longest first, both quoted and unquoted.

    Of RTSP no plain word is one: it may be the name of a stream, and texts would lose theirs.
    """
    if wrapped := _WRAPPED.fullmatch(url):
        url = wrapped[2]
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
    _, key = _split_key(parts)
    if parts.scheme.lower() not in _NAMING_SCHEMES or not _is_name(key):
        found.add(key)
    found |= {unquote(secret) for secret in found}
    return tuple(sorted((s for s in found if s), key=len, reverse=True))


def _split_key(parts: SplitResult) -> tuple[str, str]:
    """Return the path before the stream key, and the key; it is empty where there is none."""
    head, _, key = parts.path.rstrip("/").rpartition("/")
    is_there = bool(head) and parts.scheme.lower() not in _KEYLESS_SCHEMES
    return (head, key) if is_there else (parts.path, "")


def _is_name(segment: str) -> bool:
    return segment.isalpha() and len(segment) <= _LONGEST_NAME


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
