"""Room for one viewer more, by all that watch and by those of its key."""

import pytest

from livefuse.errors import JobCapacityError
from livefuse.publish.whep_viewer import Viewer, check_room
from livefuse.rtc.guest import ANYBODY, Guest


def test_a_key_has_its_share_and_others_the_rest():
    guest = Guest("one", most=2)
    check_room([], guest, 4)
    check_room(["one", "two"], guest, 4)
    with pytest.raises(JobCapacityError, match="2 of the 4 viewers are this key's") as caught:
        check_room(["one", "one"], guest, 4)
    assert "limits.key_share" in caught.value.hint
    check_room(["one", "one"], Guest("two", most=2), 4)


def test_nobody_is_let_in_where_all_places_are_taken():
    for guest in (Guest("three", most=2), ANYBODY):
        with pytest.raises(JobCapacityError, match="2 viewers are watching already"):
            check_room(["one", "two"], guest, 2)


def test_a_program_s_own_calls_have_all_places():
    check_room(["", "", ""], ANYBODY, 4)


def test_a_viewer_that_has_no_session_yet_is_hung_up_on_without_one():
    viewer = Viewer("one")
    viewer.hang_up()
    assert viewer.dropped == 0
