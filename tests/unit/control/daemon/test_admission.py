"""One job more, or a sentence that says what is free."""

from hypothesis import given
from hypothesis import strategies as st

from livefuse.control.daemon.admission import (
    YOUNG_S,
    Demand,
    Room,
    Running,
    add_up,
    estimate_demand,
    find_shortage,
)

BLUR = ("detect", "blur")
SWAP = ("detect", "align", "swap", "enhance")
GB = 1 << 30
ROOM = Room(2.0, 8 * GB)


def running(cores, kind=BLUR, age_s=60.0, *, is_for_files=False):
    measured = None if cores is None else Demand(cores, 300 << 20)
    return Running(kind, age_s, is_for_files, measured)


def judge(jobs, kind=BLUR, room=ROOM, known=None):
    known = known or {}
    demand = estimate_demand(kind, known, is_for_files=False)
    return find_shortage(demand, room, jobs, known)


def test_more_operations_need_more():
    light, heavy = (estimate_demand(kind, {}, is_for_files=False) for kind in (BLUR, SWAP))
    assert 0.2 < light.cores < heavy.cores < 2.0


def test_what_such_jobs_have_used_counts_for_more_than_a_guess():
    known: dict[tuple[str, ...], Demand] = {BLUR: Demand(1.4, 1)}
    assert estimate_demand(BLUR, known, is_for_files=False) == Demand(1.4, 1)
    assert judge([running(0.7)], known=known) == "it needs about 1.4 cores and 1.3 of 2.0 are free"


def test_a_job_too_many_is_told_what_is_free():
    assert judge([running(0.8)]) == ""
    assert judge([running(0.9), running(0.9)]) == (
        "it needs about 0.4 cores and 0.2 of 2.0 are free"
    )


def test_the_first_job_always_fits():
    assert judge([], SWAP, Room(0.1, 0, 1)) == ""


def test_a_job_that_has_just_started_counts_before_it_is_measured():
    assert judge([running(None, SWAP, 1.0)] * 2, SWAP) != ""
    assert judge([running(0.05, SWAP, YOUNG_S + 1)] * 2, SWAP) == ""


def test_what_works_on_files_gives_way():
    assert judge([running(1.9, is_for_files=True)], SWAP) == ""
    assert judge([running(1.9)], SWAP) != ""


def test_memory_and_encodes_are_bounded_too():
    assert "MB of memory" in judge([running(0.1)], room=Room(16.0, 400 << 20))
    assert judge([running(0.1)], room=Room(16.0, None)) == ""
    said = judge([running(0.1)] * 3, room=Room(16.0, 8 * GB, 3))
    assert said == "3 of 3 streams are encoded already"


JOBS = st.lists(
    st.builds(
        running,
        st.none() | st.floats(0.0, 4.0),
        st.sampled_from([BLUR, SWAP, ()]),
        st.floats(0.0, 100.0),
        is_for_files=st.booleans(),
    ),
    max_size=8,
)


@given(JOBS, st.floats(0.1, 64.0))
def test_what_runs_more_never_makes_room(jobs, cores):
    room = Room(cores, 8 * GB)
    more = [*jobs, running(0.3)]
    assert add_up(more, {}).cores >= add_up(jobs, {}).cores
    if jobs and judge(jobs, room=room):
        assert judge(more, room=room)
