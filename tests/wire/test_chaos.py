"""A short chaos run with a fixed seed: what scripts/chaos does for ten minutes."""

from __future__ import annotations

import pytest

from tests.chaos.plan import make_plan
from tests.chaos.run import run_chaos
from tests.chaos.verdict import judge
from tests.wire.servers import require

pytestmark = [pytest.mark.wire, pytest.mark.timeout(600)]

SECONDS = 52.0
SEED = 20
KINDS = ("camera_kill", "server_kill", "sender_kill", "step_raise", "thread_kill", "freeze")
# Never bare, in order, playable: strictly. How soon it is well again is another thing on a machine
# that has other work.
SLACK_S = 5.0


def test_nothing_gets_out_bare_or_out_of_order_whatever_breaks(tmp_path):
    """C21, C32, C33, C36 at once: camera, server, sender, steps, threads, all of livefuse break."""
    require("gst-rtsp-server", "nginx", "nginx-rtmp", "ffmpeg")
    plan = make_plan(SEED, SECONDS, ("detect", "blur"), KINDS, calm_s=(2.0, 4.0))
    assert len({fault.kind for fault in plan}) >= 5
    outcome = run_chaos(tmp_path, plan, SECONDS)
    verdict = judge(outcome, variant="blur", slack_s=SLACK_S)
    assert verdict.is_kept(), f"\n{verdict.format()}"
    assert verdict.bare["steady"].looked >= 50
    assert len(verdict.tracks["steady"].seen) >= 300
