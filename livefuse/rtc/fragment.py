"""The body of a PATCH: ICE fragments (RFC 8840), read and made. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from livefuse.errors import ConfigError
from livefuse.rtc.sdp import (
    CANDIDATE,
    END,
    MAX_CANDIDATES,
    Candidate,
    check_candidate,
    pick_candidates,
    split_lines,
)

if TYPE_CHECKING:
    from livefuse.rtc.guest import AllowsHost


class Fragment(NamedTuple):
    """The body of a PATCH: new candidates, and the credentials that they belong to."""

    username: str
    password: str
    candidates: tuple[Candidate, ...]

    def leave_out(self, allows: AllowsHost | None) -> Fragment:
        """Return the fragment without the candidates that are not to be checked."""
        return self._replace(candidates=pick_candidates(self.candidates, allows))


def read_fragment(text: str) -> Fragment:
    """Return what the body of a PATCH says.

    Raises:
        ConfigError: it is no ICE fragment.
    """
    mid = ""
    found: dict[str, str] = {}
    candidates: list[Candidate] = []
    for line in split_lines(text):
        name, _, value = line.partition(":")
        if name == "a=mid":
            mid = value.strip()
        elif name in ("a=ice-ufrag", "a=ice-pwd"):
            found[name] = value.strip()
        elif name == "a=candidate":
            candidates.append(check_candidate(Candidate(mid, value.strip())))
    if not found.get("a=ice-ufrag") and not candidates and END not in text:
        raise ConfigError(
            "the body is no ICE fragment", hint="send application/trickle-ice-sdpfrag (RFC 8840)"
        )
    return Fragment(
        found.get("a=ice-ufrag", ""),
        found.get("a=ice-pwd", ""),
        tuple(candidates[:MAX_CANDIDATES]),
    )


def build_fragment(username: str, password: str, mid: str, candidates: list[str]) -> str:
    """Return the answer to an ICE restart: our new credentials and candidates (values)."""
    lines = [f"a=ice-ufrag:{username}", f"a=ice-pwd:{password}"]
    lines += ["m=audio 9 UDP/TLS/RTP/SAVPF 0", f"a=mid:{mid}"]
    lines += [f"{CANDIDATE}{value}" for value in candidates]
    return "\r\n".join([*lines, END]) + "\r\n"
