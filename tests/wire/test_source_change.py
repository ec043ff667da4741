"""(C17) Another face while the stream goes on, through the API of a whole job.

Judged by counters and thread time, since the machine may be busy: what each frame showed, which
thread made the new source, which networks there are, what was dropped.
"""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any, NamedTuple

import pytest

from livefuse.pipeline.steps import Pipeline
from tests.apis import RunningApi
from tests.faces import ASTRONAUT
from tests.wire.servers import wait_until

pytestmark = [pytest.mark.wire, pytest.mark.timeout(120)]

CONSENT = "consent=Eileen%20Collins%2C%20tests%2C%2090d"
BY_A_CHANGE = {"abandoned", "restarting", "encoder_failed", "pipeline_failed"}
OPERATIONS = ["detect", "align", "swap"]


class Shown(NamedTuple):
    """What became of one frame."""

    wanted: str
    source: str
    replaced: int
    is_covered: bool
    thread: str
    cpu_s: float  # of that thread so far


@pytest.fixture
def shown(monkeypatch):
    frames: list[Shown] = []
    finish = Pipeline.finish

    def note(self: Pipeline, state: Any) -> Any:
        outcome = finish(self, state)
        replaced = sum(face.is_replaced for face in state.faces)
        thread = threading.current_thread().name
        frames.append(
            Shown(
                state.token.source_face,
                state.source_shown,
                replaced,
                outcome.covered_whole,
                thread,
                time.thread_time(),
            )
        )
        return outcome

    monkeypatch.setattr(Pipeline, "finish", note)
    return frames


def change_face(api, **options):
    done = api.ask("PUT", f"/v1/jobs/main/source-face{options.pop('query', '')}", **options)
    assert done.status == 200, done.data
    return done.value["id"]


def note_makers(faces, monkeypatch):
    """Return where the names of the threads gather that open a face."""
    makers, load = [], faces.load_source

    def note(face_id, job_id=None):
        makers.append(threading.current_thread().name)
        return load(face_id, job_id)

    monkeypatch.setattr(faces, "load_source", note)
    return makers


def check_costs(shown, first):
    """See that the frames' thread worked no more on any frame since than on those before."""
    costs_ms = [1000 * (b.cpu_s - a.cpu_s) for a, b in itertools.pairwise(shown)]
    assert max(costs_ms[first:]) < 2 * max(costs_ms[:first]) + 20


def test_a_new_source_while_streaming(tmp_path, shown, monkeypatch):
    """Drawn, then a photo with its consent, then drawn, then the photo again."""
    with RunningApi(tmp_path, "governor.enabled=false") as api:
        makers = note_makers(api.manager.worker.faces, monkeypatch)
        spec = {"source": "demo:?size=480x270&fps=5", "operations": OPERATIONS}
        wish = {"id": "main", "spec": spec | {"source_face": "avatar:robot"}, "start": True}
        assert api.ask("POST", "/v1/jobs", wish).status == 201
        wait_until(lambda: sum(f.replaced for f in shown) > 5, 30, "the robot")
        cache = api.manager.worker._sessions
        networks, first = dict(cache._networks), len(shown)

        def wait_shown(face):
            start = len(shown)
            wait_until(lambda: sum(f.source == face for f in shown[start:]) > 3, 30, face)

        picture = {"body": ASTRONAUT.read_bytes(), "headers": {"Content-Type": "image/png"}}
        face = change_face(api, query=f"?{CONSENT}&name=eileen", **picture)
        wait_shown(face)
        created = cache.created
        for choice in ("avatar:fox", "eileen"):
            wait_shown(change_face(api, value={"face": choice}))
        after = api.ask("GET", "/v1/jobs/main/status").value
        api.ask("POST", "/v1/jobs/main/stop")

    since = shown[first:]
    assert [f for f in since if f.is_covered or not f.replaced] == []
    check_costs(shown, first)
    assert {key: cache._networks[key] for key in networks} == networks, "the same sessions"
    # A machine without time for frames drops some; the change itself costs their thread nothing.
    assert not BY_A_CHANGE & set(after["dropped"])
    assert not after["restarts"]
    assert cache.created == created, "a face that is enrolled needs no more networks"
    assert makers, "the photo was opened"
    assert not set(makers) & {f.thread for f in shown}, "made off the frames' path"
    # Until the new one is made the one before is shown, never none and never a third.
    order = [source for source, _ in itertools.groupby(f.source for f in shown)]
    assert order[-4:] == ["avatar:robot", face, "avatar:fox", face]
