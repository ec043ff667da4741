"""Places that are few: none has them all, but operators may."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.config import LimitsConfig
from livefuse.control.api.caller import LOCAL, Caller
from livefuse.control.api.shares import Places, count_share
from livefuse.errors import JobCapacityError, get_http_status

ONE, TWO = Caller("one", "viewer", "one"), Caller("two", "streamer", "two")
LIMITS = LimitsConfig()


@given(st.integers(1, 1000), st.floats(0.001, 1.0))
def test_a_share_is_one_place_at_least_and_all_only_where_that_is_said(places, share):
    limits = LimitsConfig(key_share=share)
    own = count_share(places, ONE, limits)
    assert 1 <= own <= places
    assert own == 1 or own <= places * share
    assert count_share(places, LOCAL, limits) == places


def test_one_key_leaves_places_to_others():
    places = Places("are watching", "close one")
    held = [places.hold(ONE, 4, LIMITS), places.hold(ONE, 4, LIMITS)]
    for one in held:
        one.__enter__()
    with pytest.raises(JobCapacityError, match="2 of the 4 places are this key's") as caught:
        places.hold(ONE, 4, LIMITS).__enter__()
    assert get_http_status(caught.value) == 503
    assert "limits.key_share" in caught.value.hint
    with places.hold(TWO, 4, LIMITS), places.hold(LOCAL, 4, LIMITS):
        assert places.taken == 4
        with pytest.raises(JobCapacityError, match="4 are watching"):
            places.hold(TWO, 4, LIMITS).__enter__()
    held[0].__exit__(None, None, None)
    with places.hold(ONE, 4, LIMITS):
        assert places.taken == 2
    held[1].__exit__(None, None, None)
    assert places.taken == 0


def test_an_operator_has_all_places():
    places = Places("are watching", "close one")
    with places.hold(LOCAL, 2, LIMITS), places.hold(LOCAL, 2, LIMITS):
        assert places.taken == 2
