"""The figures of a job, in words and drawn; the page costs the job next to nothing (C06)."""

from __future__ import annotations

import re
import statistics
import time

import msgspec
import pytest

pytestmark = [pytest.mark.wire, pytest.mark.timeout(120)]
HZ = 4  # as the page asks for: livefuse/control/web/api.js
_COUNT_INK = """id => {
  const canvas = document.getElementById(id);
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let inked = 0;
  for (let i = 3; i < data.length; i += 4) inked += data[i] > 0;
  return inked;
}"""


def test_the_figures(visit, api, drawn):
    visitor = visit(camera=False, expects=("Canvas2D",))  # what reading it back brings
    visitor.wait_playing()
    visitor.find("#tab-monitor").click()
    visitor.wait_text("#steps", "find faces")
    assert re.search(r"blur\s+\d+\.\d\s+\d+\.\d", visitor.read("#steps"))
    facts = visitor.read("#facts")
    assert re.search(r"State\s+Online", facts)
    assert re.search(r"Spared under load\s+nothing", facts)
    assert re.search(r"Input: demo:\S+\s+live\s+0", visitor.read("#lines"))
    assert "(1 watching)" in visitor.read("#lines")
    assert re.search(r"find faces\s+\w", visitor.read("#token-log"))
    grid = visitor.page.evaluate(_COUNT_INK, "chart-latency")
    visitor.wait(
        lambda: visitor.page.evaluate(_COUNT_INK, "chart-latency") > grid + 20, "a line that grows"
    )
    visitor.find("#token-log").locator("xpath=../..").locator("summary").click()
    assert '"operations"' in visitor.read("pre.token")


def test_a_tab_that_is_opened_before_there_is_anything_in_it(visit, api, drawn):
    """The catalogue takes its time; the figures come all the same."""
    visitor = visit(camera=False)
    held = []

    def hold(route):
        held.append(route)

    visitor.page.route("**/v1/catalogue*", hold)
    visitor.page.reload(wait_until="commit")
    visitor.wait(lambda: held, "the catalogue is asked for")
    visitor.find("#tab-monitor").click()
    assert visitor.read("#monitor") == ""
    held[0].continue_()
    visitor.wait_text("#facts", "Online")


def test_load_in_words(visit, api, drawn):
    """What is spared, why, and what was given up: sentences, not names (figures made up)."""
    visitor = visit(camera=False)
    visitor.find("#tab-monitor").click()
    visitor.wait_text("#facts", "Online")
    status = api.ask("GET", "/v1/jobs/main/status").value
    status |= {
        "rung": "detect_5th",
        "load": {"changes": {"deadline": 2, "head_room": 1}, "pressures": ["thermal"]},
        "dropped": {"late": 7, "pipeline_busy": 3},
        "health": "DEGRADED_INPUT",
        "health_reason": "the input sends nothing, the last picture is 2.0 s old",
    }
    visitor.page.evaluate("status => { JSON.parse = () => structuredClone(status); }", status)
    facts = visitor.wait_text("#facts", "every 5th picture")
    assert "frames took longer than a frame's time (2×)" in facts
    assert "the machine is hot" in facts
    drops = visitor.read("#drops")
    assert re.search(r"came too late to be shown\s+7\s+faces took too long\s+3", drops)
    assert visitor.read("#health").startswith("Input in trouble: the input sends nothing")


def test_figures_cost_little(api, drawn):
    """(C06) What figures cost a job: below 2 % of a core, by the thread's own time."""
    api.wait_frames("main", 30)
    job = api.manager.get_running("main")
    costs_s = []
    for _ in range(40):
        started_s = time.thread_time()
        msgspec.json.encode(job.statistics())
        costs_s.append(time.thread_time() - started_s)
    share = HZ * statistics.median(costs_s)
    print(f"figures cost {100 * share:.2f} % of a core")
    assert share < 0.02


def test_it_asks_seldom(visit, api, drawn):
    """(C06) Five figures a second at most, a look at the jobs every 3 s, nothing else."""
    visitor = visit(camera=False)
    visitor.wait_playing()
    visitor.page.evaluate(
        """() => {
          window.heard = 0;
          const parse = JSON.parse;
          JSON.parse = (text) => { window.heard += 1; return parse(text); };
        }"""
    )
    visitor.asked.clear()
    visitor.page.wait_for_timeout(3000)
    assert 1 <= visitor.page.evaluate("window.heard") <= 17
    assert {re.sub(r".*:\d+", "", url) for url in visitor.asked} <= {"/v1/jobs"}
    assert len(visitor.asked) <= 2
    assert api.server._api.watchers.taken == 1
    visitor.page.goto("about:blank")
    visitor.wait(lambda: api.server._api.watchers.taken == 0, "the page has left")
