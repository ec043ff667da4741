"""Answers as texts: what we change in those that aiortc makes. Pure."""

from __future__ import annotations

from livefuse.rtc.sdp import (
    CANDIDATE,
    H264,
    VP8,
    group_sections,
    read_codecs,
    read_payload_type,
    split_lines,
)


def raise_start_bitrate(answer: str, start_kbps: int, max_kbps: int) -> str:
    """Return `answer` with a hint to Chromium at which rate to start sending pictures.

    Without transport-wide feedback it begins at 300 kb/s and needs 20 s to get anywhere. Others
    pass over the x-google parameters.
    """
    rates = (
        f"x-google-min-bitrate={min(start_kbps, 300)};x-google-start-bitrate={start_kbps}"
        f";x-google-max-bitrate={max(max_kbps, start_kbps)}"
    )
    lines = split_lines(answer)
    _, sections = group_sections(lines)
    wanted = {
        codec.payload_type
        for section in sections
        if section[0].startswith("m=video")
        for codec in read_codecs(section)
        if codec.name in (H264, VP8)
    }
    changed: list[str] = []
    for line in lines:
        number = read_payload_type(line, "a=fmtp:")
        if number in wanted:
            wanted.discard(number)
            line = f"{line};{rates}"  # noqa: PLW2901 - the line as it goes on
        changed.append(line)
    for number in sorted(wanted):  # VP8 has no parameters of its own
        at = next(i for i, line in enumerate(changed) if line.startswith(f"a=rtpmap:{number} "))
        changed.insert(at + 1, f"a=fmtp:{number} {rates}")
    return "\r\n".join(changed) + "\r\n"


def announce_address(answer: str, address: str) -> str:
    """Return `answer` with `address` in its host candidates: how we are reached from outside."""
    changed = []
    for line in split_lines(answer):
        words = line.split(" ")
        if line.startswith(CANDIDATE) and words[6:8] == ["typ", "host"]:
            words[4] = address
        changed.append(" ".join(words))
    return "\r\n".join(changed) + "\r\n"
