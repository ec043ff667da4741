"""What a new configuration changes, and for whom."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.config import SECTIONS, Config
from livefuse.control.api.views import Spec
from livefuse.control.daemon.reload import (
    RULES,
    Changes,
    Rule,
    compare,
    find_rule,
    take_over,
)

KEYS = [
    (section, field.name)
    for section, kind in SECTIONS.items()
    for field in msgspec.structs.fields(kind)
]
PASSING = Spec(source="test:", operations=())
BLURRED = Spec(source="test:", operations=("detect", "blur"))
SWAPPED = Spec(
    source="rtsp://cam/1", operations=("detect", "align", "swap"), source_face="avatar:fox"
)
PUSHED = Spec(source="whip:", operations=(), targets=("rtmp://h/live/key",))
RECORDED = Spec(source="demo:", operations=("background",), targets=("a.mp4",))
JOBS = {
    "passing": PASSING,
    "blurred": BLURRED,
    "swapped": SWAPPED,
    "pushed": PUSHED,
    "recorded": RECORDED,
}


class Other:
    """Differs from any value."""


def change(config: Config, section: str, key: str, value: Any = None) -> Config:
    """Return `config` with another value at one place; that it would fit is not looked at."""
    changed = msgspec.structs.replace(
        getattr(config, section), **{key: Other() if value is None else value}
    )
    return msgspec.structs.replace(config, **{section: changed})


def test_every_section_and_key_stands_in_one_group():
    assert RULES.keys() == SECTIONS.keys()
    for section, kind in SECTIONS.items():
        found = RULES[section]
        if not isinstance(found, Rule):
            assert list(found) == [field.name for field in msgspec.structs.fields(kind)]
            assert len({each.kind for each in found.values()}) > 1, f"{section} is of one kind"


@pytest.mark.parametrize(("section", "key"), KEYS)
def test_a_change_is_found_and_only_what_may_be_is_taken_over(section: str, key: str) -> None:
    before = Config()
    after = change(before, section, key)
    changes = compare(before, after)
    name = f"{section}.{key}"
    assert [*changes.at_once, *changes.jobs, *changes.daemon] == [name]
    taken = take_over(before, after)
    kind = find_rule(section, key).kind
    assert getattr(changes, kind) == (name,)
    assert (taken == before) is (kind == "daemon")
    assert compare(taken, after).daemon == changes.daemon
    assert changes.applied_sections == ([] if kind == "daemon" else [section])
    if kind != "jobs":
        assert not any(changes.concern(spec) for spec in JOBS.values())


@pytest.mark.parametrize(
    ("name", "concerned"),
    [
        ("blur.style", "blurred swapped"),
        ("swap.grain", "swapped"),
        ("detect.every_n", "blurred swapped"),
        ("background.strength", "recorded"),
        ("rtmp.stall_ms", "pushed"),
        ("record.overwrite", "recorded"),
        ("refuse.face_margin", "swapped"),
        ("models.precision", "blurred swapped recorded"),
        ("access.networks", "swapped pushed recorded"),
        ("webrtc.opus_kbps", "passing blurred swapped pushed recorded"),
        ("encode.bitrate_kbps", "passing blurred swapped pushed recorded"),
        ("http.viewer_queue_bytes", "passing blurred swapped pushed recorded"),
        ("http.max_viewers", ""),
        ("http.port", ""),
        ("daemon.spare_workers", ""),
        ("log.level", ""),
    ],
)
def test_jobs_that_have_it_are_concerned(name: str, concerned: str) -> None:
    changes = compare(Config(), change(Config(), *name.split(".")))
    assert [job for job, spec in JOBS.items() if changes.concern(spec)] == concerned.split()


def test_nothing_differs_from_itself() -> None:
    changes = compare(Config(), Config())
    assert changes == Changes()
    assert changes.applied_sections == []
    assert not changes.concern(SWAPPED)


@given(st.lists(st.sampled_from(KEYS), unique=True, max_size=12))
def test_many_changes_are_those_of_each(keys: list[tuple[str, str]]) -> None:
    after = before = Config()
    for section, key in keys:
        after = change(after, section, key)
    changes = compare(before, after)
    assert {f"{s}.{k}" for s, k in keys} == {*changes.at_once, *changes.jobs, *changes.daemon}
    for spec in JOBS.values():
        each = [compare(before, change(before, *key)).concern(spec) for key in keys]
        assert changes.concern(spec) is any(each)
    taken = compare(before, take_over(before, after))
    assert taken == Changes(changes.at_once, changes.jobs)
