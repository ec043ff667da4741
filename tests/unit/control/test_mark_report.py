"""What `livefuse mark read` says, in words."""

from typing import Any

from livefuse.control.mark_report import (
    LabelLine,
    LumaLine,
    MarkReport,
    SeiLines,
    count_verdicts,
    create_job,
    format_utc,
    tell,
)
from livefuse.mark_ids import number_job

NUMBER = number_job("studio")


def create_report(**changes):
    return MarkReport(source="a.mp4", seconds=10.0, windows=5, **changes)


def create_line(**changes):
    usual: dict[str, Any] = {
        "job": create_job(NUMBER, {}), "key": "this install", "z": 12.34, "windows": 5,
        "first_s": 0.0, "last_s": 9.9, "scale": 1.0, "is_mirrored": False,
    }  # fmt: skip
    return LumaLine(**(usual | changes))


def test_nothing_is_said_plainly():
    lines = list(tell(create_report()))
    assert lines[-1] == "no mark was found"
    assert create_report().survived == []


def test_all_that_survived_is_named():
    report = create_report(
        luma=[create_line()],
        sei=SeiLines(keyframes=2, verdicts={"valid": 2}),
        label=LabelLine(windows=5, score=0.93),
        metadata={"comment": "AI-modified"},
    )
    text = "\n".join(tell(report))
    assert len(report.survived) == 4
    assert "in 5 of 5 windows, 0.0 to 9.9 s, z 12.3" in text
    assert "2 of 2 signed with a key that is known here" in text
    assert "score 0.93" in text
    assert "comment: AI-modified" in text


def test_a_name_is_told_only_for_its_own_number():
    names = {NUMBER: "studio"}
    assert str(create_job(NUMBER, names)) == f"job studio ({NUMBER:08x})"
    assert str(create_job(NUMBER ^ 1, names)) == f"job {NUMBER ^ 1:08x}"


def test_a_forged_record_is_no_proof_and_is_told():
    sei = SeiLines(keyframes=3, verdicts=count_verdicts(["altered", "missing", "pasted"]))
    text = "\n".join(tell(create_report(sei=sei)))
    assert "damaged or forged" in text
    assert "pasted" in text
    assert "1 of 3 without a record" in text
    assert create_report(sei=sei).survived == ["the record on keyframes"]


def test_keyframes_without_records_are_no_find():
    sei = SeiLines(keyframes=4, verdicts={"missing": 4})
    assert not create_report(sei=sei).survived
    assert "none on 4" in "\n".join(tell(create_report(sei=sei)))


def test_a_mirror_is_told():
    text = "\n".join(tell(create_report(luma=[create_line(is_mirrored=True)])))
    assert "mirrored" in text


def test_times_that_no_calendar_has_do_no_harm():
    assert format_utc(1_800_000_000_000_000) == "2027-01-15 08:00:00 UTC"
    assert format_utc(2**64 - 1) == f"{2**64 - 1} us"
