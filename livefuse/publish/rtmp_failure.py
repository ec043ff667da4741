"""What went wrong with an RTMP target, in a sentence: a table of what FFmpeg says. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from livefuse.errors import (
    PublishConnectError,
    PublishError,
    PublishRejectedError,
    PublishStalledError,
)
from livefuse.redact import redact_text, redact_url

if TYPE_CHECKING:
    from livefuse.publish.base import OutputState

_EARLY_NS: Final = 1_500_000_000
_REPEATS: Final = ("Slave '", "All tee outputs")


class Failure(NamedTuple):
    """The state an output is left in, and its error."""

    state: OutputState
    error: PublishError


class _Rule(NamedTuple):
    pattern: str
    kind: type[PublishError]
    sentence: str
    hint: str


_KEY_HINT: Final = (
    "check the application and the stream key, and that nobody else publishes with them"
)
_WAY_HINT: Final = "check the server and the way to it"
# The first that matches decides. {0} is the pattern's first group.
_RULES: Final = (
    _Rule(
        r"nothing was acknowledged",
        PublishStalledError,
        "the server, or the way to it, acknowledges nothing any more",
        _WAY_HINT,
    ),
    _Rule(
        r"failed to resolve hostname|name or service not known",
        PublishConnectError,
        "there is no such host",
        "check the name in the URL, and the network",
    ),
    _Rule(
        r"connection refused",
        PublishConnectError,
        "the connection was refused",
        "check the port, and that the server runs",
    ),
    _Rule(
        r"server error: (.*)",
        PublishRejectedError,
        "the server refused the stream ({0})",
        _KEY_HINT,
    ),
    _Rule(
        r"no route to host|network is unreachable|connection timed out",
        PublishConnectError,
        "the host cannot be reached",
        "check the network and the address",
    ),
    _Rule(
        r"cannot read rtmp handshake|handshake response",
        PublishRejectedError,
        "the other side does not speak RTMP",
        "check the port: 1935 is usual for rtmp, 443 for rtmps",
    ),
    _Rule(
        r"certificate|tls (packet|handshake|fatal|connection|alert)",
        PublishConnectError,
        "the server's certificate or TLS cannot be trusted",
        "check the host name and its certificate, or use rtmp:// where that is acceptable",
    ),
)


def explain_failure(url: str, said: list[str], *, was_connected: bool, lived_ns: int) -> Failure:
    """Return what the lines that the child `said` mean.

    A server that takes the connection and closes it at once has refused the name or the key: most
    say no more than that.
    """
    # FFmpeg repeats the whole target, options and all, in these.
    text = "\n".join(line for line in said if not line.startswith(_REPEATS))
    for rule in _RULES:
        found = re.search(rule.pattern, text, re.IGNORECASE)
        if found is not None:
            groups = [redact_text(group or "", (url,)) for group in found.groups()]
            sentence = rule.sentence.format(*groups)
            state: OutputState = "stalled" if rule.kind is PublishStalledError else "refused"
            return Failure(state, _build(rule.kind, url, sentence, rule.hint))
    if not was_connected or lived_ns < _EARLY_NS:
        sentence = "the server closed the connection instead of taking the stream"
        return Failure("refused", _build(PublishRejectedError, url, sentence, _KEY_HINT))
    return Failure(
        "connecting",
        _build(PublishConnectError, url, "the connection was lost", "it is tried again"),
    )


def explain_stall(url: str, after_ms: int, *, was_connected: bool) -> Failure:
    """Return the failure of a peer that made no progress for `after_ms`."""
    sentence = "takes no more data" if was_connected else "does not answer"
    return Failure(
        "stalled",
        _build(
            PublishStalledError if was_connected else PublishConnectError,
            url,
            f"the server {sentence} (for {after_ms / 1000:g} s)",
            _WAY_HINT,
        ),
    )


def _build(kind: type[PublishError], url: str, sentence: str, hint: str) -> PublishError:
    return kind(f"cannot publish to {redact_url(url)}: {sentence}", hint=hint)
