"""What a job did, and why it ended, is there again after the daemon was started anew."""

from __future__ import annotations

import pytest

from tests.daemons import TINY, RunningDaemon

pytestmark = [pytest.mark.wire, pytest.mark.timeout(120)]


def test_ends_outlive_the_daemon(tmp_path):
    broken = tmp_path / "broken.mp4"
    broken.write_text("no film at all")
    daemon = RunningDaemon(tmp_path).start()
    try:
        done = daemon.run_job(TINY, "done")
        daemon.wait_frames(done, 5)
        assert daemon.ask("POST", f"/v1/jobs/{done}/stop").value["state"] == "stopped"
        made = daemon.ask("POST", "/v1/jobs", {"id": "bad", "spec": TINY | {"source": str(broken)}})
        assert made.status == 201, made.data
        daemon.ask("POST", "/v1/jobs/bad/start")
        daemon.wait_state("bad", "failed")
        before = {name: daemon.get_job(name) for name in ("done", "bad")}
        daemon.kill()
        daemon.start()
        assert {name: daemon.get_job(name) for name in before} == before
        stopped, failed = before["done"], before["bad"]
        assert stopped["statistics"]["frames_out"] >= 5
        assert stopped["statistics"]["seconds"] > 0
        assert "dropped" in stopped["statistics"]
        assert failed["error"]
        assert failed["error_type"].startswith("Ingest")
        assert [change["after"] for change in stopped["changes"]][-2:] == ["stopping", "stopped"]
        assert failed["changes"][-1]["reason"] == failed["error"]
        assert daemon.ask("GET", "/v1/jobs/done/status").value == stopped["statistics"]
        listed = daemon.ask("GET", "/v1/jobs").value["jobs"]
        assert all(one["changes"] == [] for one in listed)
    finally:
        daemon.stop()
