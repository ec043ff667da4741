"""What the page's controls do to a running job, and what they say when they are refused."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from tests.faces import ASTRONAUT

pytestmark = [pytest.mark.wire, pytest.mark.timeout(120)]


def get_token(api, job="main"):
    return api.ask("GET", f"/v1/jobs/{job}/token").value


def wait_token(visitor, api, condition, what):
    return visitor.wait(lambda: condition(token := get_token(api)) and token, what)


def test_switches_keep_the_order_and_bring_what_they_need(visit, api, drawn):
    visitor = visit(camera=False)
    visitor.wait(lambda: visitor.find("#operation-blur").is_checked(), "the token")
    assert visitor.read("#whom") != ""
    visitor.find("#operation-swap").click()
    token = wait_token(visitor, api, lambda t: "swap" in t["operations"], "the swap")
    assert token["operations"] == ["detect", "align", "swap", "blur"]
    assert token["source_face"] == "avatar:robot"
    assert "for Another face" in visitor.read("#operations-list li:nth-child(2)")
    visitor.find("#face").select_option("avatar:fox")
    wait_token(visitor, api, lambda t: t["source_face"] == "avatar:fox", "the fox")
    # One new face at a time.
    visitor.find("#operation-puppet").click()
    token = wait_token(visitor, api, lambda t: "puppet" in t["operations"], "the puppet")
    assert token["operations"] == ["detect", "align", "puppet", "blur"]
    visitor.find("#blend").fill("0.4")
    wait_token(visitor, api, lambda t: t["parameters"]["blend_ratio"] == 0.4, "the share")
    assert visitor.read("output[for=blend]") == "40 %"
    visitor.find("#face").select_option("")
    token = wait_token(visitor, api, lambda t: not t["source_face"], "no face")
    assert token["operations"] == ["detect", "align", "blur"]
    # What needs it goes with it.
    visitor.find("#operation-detect").click()
    wait_token(visitor, api, lambda t: t["operations"] == [], "nothing is done")


def test_a_look_and_single_amounts(visit, api, drawn):
    visitor = visit(camera=False)
    visitor.wait(lambda: visitor.find("#operation-blur").is_checked(), "the token")
    assert not visitor.find("#look").is_visible()  # of an operation that is off
    visitor.find("#operation-beautify").click()
    wait_token(visitor, api, lambda t: "beautify" in t["operations"], "it")
    looks = {k["name"]: k["parameters"] for k in api.ask("GET", "/v1/catalogue").value["looks"]}
    for name in ("natural", "soft_japanese"):  # the first comes with the switch
        if name != "natural":
            visitor.find("#look").select_option(name)
        wait_token(
            visitor, api, lambda t, n=name: t["parameters"]["beautify"] == looks[n], "the look"
        )
    visitor.find("summary", has_text="Shape").click()
    visitor.find("#amount-smile").fill("0.3")
    wait_token(visitor, api, lambda t: t["parameters"]["beautify"].get("smile") == 0.3, "a smile")
    visitor.wait(lambda: visitor.find("#look").input_value() == "*", "it is no look's any more")
    visitor.find("summary", has_text="Colours").click()
    visitor.find("#amount-lip_color").fill("#aa3344")
    wait_token(
        visitor,
        api,
        lambda t: t["parameters"]["beautify"].get("lip_color") == "#aa3344",
        "a colour",
    )


def test_what_others_change_is_shown(visit, api, drawn):
    visitor = visit(camera=False)
    visitor.wait(lambda: visitor.find("#operation-blur").is_checked(), "the token")
    patch = {"operations": ["detect", "align"], "parameters": {"select": "largest"}}
    assert api.ask("PATCH", "/v1/jobs/main/token", patch).status == 200
    visitor.wait(lambda: visitor.find("#operation-align").is_checked(), "the other's change")
    assert not visitor.find("#operation-blur").is_checked()


def test_a_picture_with_consent(visit, api, drawn):
    """(C17) Without consent it is refused in words; with it the face is shown and listed."""
    visitor = visit(camera=False, expects=("status of 403",))
    visitor.wait(lambda: visitor.find("#operation-blur").is_checked(), "the token")
    visitor.find("#operation-swap").click()
    visitor.find("summary", has_text="A person's picture").click()
    visitor.find("#use-picture").click()
    visitor.wait_text(".drop .problem", "Choose a file first")
    visitor.find("#picture").set_input_files(str(ASTRONAUT))
    visitor.find("#use-picture").click()
    visitor.wait_text(".drop .problem", "consent")
    visitor.find("#consent-who").fill("Eileen Collins")
    visitor.find("#consent-what").fill("livefuse tests, this page")
    visitor.find("#consent-until").fill((date.today() + timedelta(days=30)).isoformat())  # noqa: DTZ011 - what a person types
    visitor.find("#picture-name").fill("Eileen")
    visitor.find("#use-picture").click()
    token = wait_token(visitor, api, lambda t: not t["source_face"].startswith("avatar:"), "it")
    visitor.wait(
        lambda: visitor.find("#face").input_value() == token["source_face"], "it is chosen"
    )
    shown = visitor.find("#face option:checked").inner_text()
    assert "has agreed" in shown
    assert visitor.read(".drop .problem") == ""
    assert "swap" in token["operations"]


def test_what_is_refused_is_said_and_taken_back(visit, api, drawn):
    visitor = visit(camera=False, expects=("status of 4",))
    visitor.wait(lambda: visitor.find("#operation-blur").is_checked(), "the token")
    visitor.find("#operation-swap").click()
    wait_token(visitor, api, lambda t: "swap" in t["operations"], "the swap")
    visitor.page.evaluate("face.add(new Option('nobody', 'nobody-at-all'))")
    visitor.find("#face").select_option("nobody-at-all")
    said = visitor.wait_text("#controls .problem:not([hidden])", "nobody")
    assert "Traceback" not in said
    visitor.wait(lambda: visitor.find("#face").input_value() == "avatar:robot", "it is taken back")


def test_a_streams_address(visit, empty):
    """A stream instead of a camera: what cannot be opened says so and is started again."""
    visitor = visit(camera=False, expects=("status of 4",))
    visitor.find("#open-stream").click()
    visitor.wait_text("#source-problem", "Where is the stream")
    visitor.find("#address").fill("gopher://127.0.0.1/")
    visitor.page.keyboard.press("Enter")
    visitor.wait_text("#source-problem", "gopher")
    visitor.find("#address").fill("demo:?size=320x180")
    visitor.page.keyboard.press("Enter")
    visitor.wait_playing()
    assert visitor.read("#source-problem") == ""
    (job,) = empty.ask("GET", "/v1/jobs").value["jobs"]
    assert job["spec"]["operations"] == ["detect", "blur"]
    empty.ask("POST", f"/v1/jobs/{job['id']}/stop")
    visitor.wait_text("#stage-said", "This stream is stopped")
    visitor.wait_text("#health", "Stopped")
    assert visitor.find("#controls").get_attribute("inert") is not None  # nothing to be changed
    visitor.find("#start-again").click()
    visitor.wait_text("#health", "Online")
    visitor.wait_playing()


def test_a_job_that_fails(visit, empty, tmp_path):
    visitor = visit(camera=False)
    visitor.find("#address").fill(str(tmp_path / "nothing.mp4"))
    visitor.page.keyboard.press("Enter")
    said = visitor.wait_text("#stage-said, #source-problem:not([hidden])", "nothing.mp4")
    assert "failed" in said or "no such file" in said.lower()


def test_targets_come_and_go(visit, api, drawn):
    """(C40) A target of a running job is added and removed; a bad one is refused in words."""
    visitor = visit(camera=False, expects=("status of 4",))
    visitor.wait_playing()
    visitor.find("#tab-outputs").click()
    assert visitor.read("#targets") == "No target yet: the picture is only watched."
    visitor.find("#target").fill("nowhere://127.0.0.1/")
    visitor.find("#add-target").click()
    visitor.wait_text("#target-problem", "nowhere")
    visitor.find("#target").fill("show.mkv")
    visitor.find("#add-target").click()
    visitor.wait_text("#targets", "show.mkv")
    assert visitor.read("#target-problem") == ""
    visitor.find("#targets button").click()
    visitor.wait_text("#targets", "No target yet")
    visitor.find("#copy-ffplay + button").click()
    visitor.wait_text("#copy-ffplay + button", "Copied")
    copied = visitor.page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("ffplay ")
    assert f"{api.server.base_url}/v1/jobs/main/live.flv?key=" in copied
