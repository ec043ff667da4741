"""Offers as texts: what they ask for. Pure. What we change in answers: answers.py.

Sources: RFC 8866 (SDP), RFC 8829 (JSEP), RFC 8839 (ICE in SDP), RFC 9725 (WHIP). aiortc parses what
is left; here it is checked first, so that a person reads a sentence instead of an assertion.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final, NamedTuple

from livefuse.errors import ConfigError, NotAcceptableError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from livefuse.rtc.guest import AllowsHost

MAX_BYTES: Final = 64 << 10
MAX_CANDIDATES: Final = 32
H264: Final = "H264"
VP8: Final = "VP8"
OPUS: Final = "OPUS"
CANDIDATE: Final = "a=candidate:"
END: Final = "a=end-of-candidates"
EXTENSION: Final = "a=extmap:"
_SENDING: Final = frozenset({"sendonly", "sendrecv"})
_RECEIVING: Final = frozenset({"recvonly", "sendrecv"})
_DIRECTIONS: Final = _SENDING | _RECEIVING | {"inactive"}
_MIN_WORDS: Final = 8


class Codec(NamedTuple):
    """One payload type: the codec's name in upper case, and its format parameters."""

    payload_type: int
    name: str
    parameters: dict[str, str]


class Media(NamedTuple):
    """One section: `kind` is audio, video or application, `mid` its name in the bundle.

    `extensions` are the numbers of RTP header extensions (RFC 8285) by their URI.
    """

    kind: str
    mid: str
    direction: str
    codecs: tuple[Codec, ...]
    extensions: dict[str, int]

    @property
    def is_sent(self) -> bool:
        """Whether whoever offers sends this."""
        return self.direction in _SENDING

    @property
    def is_received(self) -> bool:
        """Whether whoever offers wants to receive this."""
        return self.direction in _RECEIVING


class Candidate(NamedTuple):
    """Where the other end says to be: the attribute's value, and the section that it belongs to."""

    mid: str
    value: str

    @property
    def host(self) -> str:
        """The address: an IP, or a name ending in .local that stands for one."""
        return self.value.split()[4]

    @property
    def is_address(self) -> bool:
        """Whether the host is an IP address: names would have to be looked up."""
        try:
            ipaddress.ip_address(self.host)
        except ValueError:
            return False
        return True


class Offer(NamedTuple):
    """An offer: what it holds, and its text without candidates, which are added afterwards."""

    media: tuple[Media, ...]
    candidates: tuple[Candidate, ...]
    text: str

    def find(self, kind: str) -> Media | None:
        """Return the first section of `kind`."""
        return next((media for media in self.media if media.kind == kind), None)

    def leave_out(self, allows: AllowsHost | None) -> Offer:
        """Return the offer without the candidates that are not to be checked."""
        return self._replace(candidates=pick_candidates(self.candidates, allows))


def read_offer(text: str) -> Offer:
    """Return what `text` offers.

    Raises:
        ConfigError: it is no SDP, or lacks what every WebRTC offer has.
    """
    lines = split_lines(text)
    if not lines or lines[0] != "v=0":
        raise _malformed("it does not begin with v=0")
    session, sections = group_sections(lines)
    if not sections:
        raise _malformed("it offers neither sound nor pictures")
    media = []
    candidates: list[Candidate] = []
    for index, section in enumerate(sections):
        found = _read_media(session, section, index)
        media.append(found)
        candidates += _read_candidates(section, found.mid)
    kept = (line for line in lines if not line.startswith((CANDIDATE, END)))
    return Offer(tuple(media), tuple(candidates[:MAX_CANDIDATES]), "\r\n".join(kept) + "\r\n")


def pick_candidates(
    candidates: Iterable[Candidate], allows: AllowsHost | None
) -> tuple[Candidate, ...]:
    """Return those of `candidates` whose host `allows`, all where there is no such rule.

    Nobody is refused for the others: browsers name all that their machine has. Whoever can reach
    us is found by its own checks (peer-reflexive candidates, RFC 8445 section 7.3.1.3).
    """
    return tuple(one for one in candidates if allows is None or allows(one.host))


def check_publisher(offer: Offer) -> None:
    """Check that pictures are sent in a codec that is decoded here.

    Raises:
        NotAcceptableError: they are not; what to choose is said.
    """
    video, audio = offer.find("video"), offer.find("audio")
    if video is None or not video.is_sent:
        raise NotAcceptableError(
            "the offer sends no pictures", hint="a camera or a scene has to be sent, not only sound"
        )
    if not any(is_decodable(codec) for codec in video.codecs):
        raise NotAcceptableError(
            f"none of the offered video codecs ({_name(video)}) is decoded here",
            hint="choose H.264 or VP8",
        )
    _check_sound(audio)


def check_viewer(offer: Offer) -> None:
    """Check that pictures are wanted, in H.264.

    Raises:
        NotAcceptableError: they are not.
    """
    video, audio = offer.find("video"), offer.find("audio")
    if video is None or not video.is_received:
        raise NotAcceptableError(
            "the offer asks for no pictures", hint="offer to receive video, recvonly"
        )
    if not any(is_h264(codec) for codec in video.codecs):
        raise NotAcceptableError(
            f"the stream is H.264, and the offer has only {_name(video)}",
            hint="use a browser with H.264; Firefox fetches its own, OpenH264, some minutes after "
            "its first start: see about:addons, Plugins",
        )
    _check_sound(audio)


def is_h264(codec: Codec) -> bool:
    """Say whether `codec` is H.264 cut into packets as everybody does it today."""
    return codec.name == H264 and codec.parameters.get("packetization-mode") == "1"


def is_decodable(codec: Codec) -> bool:
    """Say whether pictures of `codec` can be taken."""
    return codec.name == VP8 or is_h264(codec)


def read_username(text: str) -> str:
    """Return the first ICE user name fragment of a description, "" when it has none."""
    lines = split_lines(text)
    return next((x.partition(":")[2] for x in lines if x.startswith("a=ice-ufrag:")), "")


def _read_media(session: list[str], section: list[str], index: int) -> Media:
    words = section[0][2:].split()
    if len(words) < 4 or not words[1].isdigit():  # noqa: PLR2004 - kind, port, protocol, formats
        raise _malformed(f"the line {section[0][:40]!r} cannot be read")
    kind, lines = words[0], session + section
    for name, what in (("a=ice-ufrag:", "ICE"), ("a=ice-pwd:", "ICE"), ("a=fingerprint:", "DTLS")):
        if not any(line.startswith(name) for line in lines):
            raise _malformed(f"its {kind} has no {what} credentials")
    if kind in ("audio", "video") and "a=rtcp-mux" not in section:
        raise _malformed(f"its {kind} has no rtcp-mux")
    direction = next((x[2:] for x in section if x[2:] in _DIRECTIONS), "sendrecv")
    mid = next((x[6:] for x in section if x.startswith("a=mid:")), str(index))
    return Media(kind, mid, direction, read_codecs(section), _read_extensions(section))


def read_codecs(section: list[str]) -> tuple[Codec, ...]:
    """Return the codecs of a section, in their order."""
    names: dict[int, str] = {}
    parameters: dict[int, dict[str, str]] = {}
    for line in section:
        number = read_payload_type(line, "a=rtpmap:")
        if number is not None:
            names[number] = line.partition(" ")[2].partition("/")[0].upper()
        number = read_payload_type(line, "a=fmtp:")
        if number is not None:
            pairs = (part.strip().partition("=") for part in line.partition(" ")[2].split(";"))
            parameters[number] = {key: value for key, _, value in pairs if key}
    unknown = next((number for number in parameters if number not in names), None)
    if unknown is not None:
        raise _malformed(f"it has parameters for the unknown payload type {unknown}")
    return tuple(Codec(n, name, parameters.get(n, {})) for n, name in names.items())


def _read_extensions(section: list[str]) -> dict[str, int]:
    found = {}
    for line in section:
        number, _, rest = line.removeprefix(EXTENSION).partition(" ")  # 3/recvonly URI attributes
        number = number.partition("/")[0]
        if line.startswith(EXTENSION) and number.isdigit() and rest:
            found[rest.partition(" ")[0]] = int(number)
    return found


def read_payload_type(line: str, prefix: str) -> int | None:
    """Return the number behind `prefix`, None in other lines."""
    if not line.startswith(prefix):
        return None
    number = line[len(prefix) :].split(" ", 1)[0]
    if not number.isdigit():
        raise _malformed(f"the line {line[:40]!r} cannot be read")
    return int(number)


def _read_candidates(section: list[str], mid: str) -> list[Candidate]:
    return [
        check_candidate(Candidate(mid, line.removeprefix(CANDIDATE)))
        for line in section
        if line.startswith(CANDIDATE)
    ]


def check_candidate(candidate: Candidate) -> Candidate:
    """Return `candidate`, or raise ConfigError when it cannot be read."""
    words = candidate.value.split()
    numbers = [words[at] for at in (1, 3, 5)] if len(words) >= _MIN_WORDS else [""]
    if not all(number.isdigit() for number in numbers) or words[6] != "typ":
        raise _malformed("one of its candidates cannot be read")
    return candidate


def _check_sound(audio: Media | None) -> None:
    if audio is not None and not any(codec.name == OPUS for codec in audio.codecs):
        raise NotAcceptableError(
            f"none of the offered audio codecs ({_name(audio)}) is known here", hint="choose Opus"
        )


def _name(media: Media) -> str:
    names = dict.fromkeys(codec.name for codec in media.codecs)
    auxiliary = ("RTX", "RED", "ULPFEC", "FLEXFEC-03", "CN", "TELEPHONE-EVENT")
    return ", ".join(name for name in names if name not in auxiliary) or "none"


def split_lines(text: str) -> list[str]:
    """Return the lines of `text` that hold something, or raise ConfigError when it is too long."""
    if len(text) > MAX_BYTES:
        raise _malformed("it is longer than 64 kB")
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def group_sections(lines: list[str]) -> tuple[list[str], list[list[str]]]:
    """Return the lines of the session, and those of each section."""
    session: list[str] = []
    sections: list[list[str]] = []
    for line in lines:
        if line.startswith("m="):
            sections.append([line])
        elif sections:
            sections[-1].append(line)
        else:
            session.append(line)
    return session, sections


def _malformed(why: str) -> ConfigError:
    return ConfigError(f"the offer is no usable SDP: {why}", hint="send application/sdp (RFC 9725)")
