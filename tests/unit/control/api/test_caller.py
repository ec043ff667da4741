"""The one rule of who may what, over every address and every role."""

import pytest

from livefuse.control.api.caller import (
    LADDER,
    LOCAL,
    ROLES,
    Caller,
    is_large_enough,
    may,
    sees,
    sees_urls,
)
from livefuse.control.api.guard import OPEN_PATHS
from livefuse.control.api.openapi import create_description
from livefuse.control.api.routes import ROUTES

OPERATOR, STREAMER, VIEWER = (Caller(f"k-{role}", role, role) for role in reversed(LADDER))
SCRAPER = Caller("k-scraper", "scraper", "prometheus")


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_an_operator_may_all_a_viewer_only_look_a_streamer_keeps_to_its_own(route):
    for owner in (None, "", "k-streamer", "k-of-somebody"):
        assert may(OPERATOR, route, owner)
        assert may(LOCAL, route, owner)
        assert may(VIEWER, route, owner) == (route.role == "viewer")
        is_own = owner in (None, "k-streamer")
        is_small = route.role in ("viewer", "streamer")
        assert may(STREAMER, route, owner) == (is_small and is_own)


def test_a_scraper_reads_the_metrics_and_nothing_else():
    """They name everybody's jobs: no business of streamers and viewers."""
    assert {route.path for route in ROUTES if may(SCRAPER, route, None)} == {"/metrics"}
    for caller in (VIEWER, STREAMER):
        assert not is_large_enough(caller, "scraper")
    assert is_large_enough(OPERATOR, "scraper")
    for role in LADDER:
        assert not is_large_enough(SCRAPER, role)
    assert not sees(SCRAPER, "k-scraper", is_running=True)
    assert not sees_urls(SCRAPER)


def test_nothing_is_changed_by_viewers_but_their_own_sessions():
    for route in ROUTES:
        if route.method not in ("GET", "OPTIONS") and "/whep" not in route.path:
            assert route.role != "viewer", route.path


def test_roles_grow():
    assert [is_large_enough(STREAMER, role) for role in LADDER] == [True, True, False]
    assert [is_large_enough(VIEWER, role) for role in LADDER] == [True, False, False]


def test_who_sees_which_jobs():
    assert sees(OPERATOR, "", is_running=False)
    assert sees(STREAMER, "k-streamer", is_running=False)
    assert not sees(STREAMER, "k-of-somebody", is_running=True)
    assert sees(VIEWER, "k-of-somebody", is_running=True)
    assert not sees(VIEWER, "k-of-somebody", is_running=False)


def test_the_description_names_the_role_of_every_operation():
    for path, methods in create_description()["paths"].items():
        for operation in methods.values():
            if path in OPEN_PATHS:
                assert "x-role" not in operation
            else:
                assert operation["x-role"] in ROLES
                assert "403" in operation["responses"]
