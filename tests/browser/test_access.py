"""For everybody: keyboard, screen reader, phone, dark and light, English and Chinese."""

from __future__ import annotations

import pytest

from tests.browser.axe import list_faults, load_axe

pytestmark = [pytest.mark.wire, pytest.mark.timeout(180)]
TABS = ("studio", "monitor", "outputs")


@pytest.fixture(scope="module")
def axe(request):
    return load_axe(request.config.cache.mkdir("axe"))


def open_everything(visitor, api):
    """Show controls of every kind; two presses in a row are two changes."""
    visitor.find("#operation-swap").click()
    visitor.find("#operation-beautify").click()
    wanted = {"swap", "beautify", "blur"}
    visitor.wait(
        lambda: wanted <= set(api.ask("GET", "/v1/jobs/main/token").value["operations"]), "both"
    )
    for summary in visitor.find("#controls summary").all()[:3]:
        summary.click()


@pytest.mark.parametrize(
    ("locale", "schemes"), [("en-GB", ("dark", "light")), ("zh-CN", ("light",))]
)
def test_nothing_keeps_anybody_out(visit, api, drawn, axe, locale, schemes):
    """axe-core finds nothing serious in any view, in either scheme."""
    visitor = visit(camera=False, locale=locale)
    visitor.wait_playing()
    open_everything(visitor, api)
    for scheme in schemes:
        visitor.page.emulate_media(color_scheme=scheme)
        for tab in TABS:
            visitor.find(f"#tab-{tab}").click()
            visitor.page.wait_for_timeout(400)  # figures, and colours on their way
            assert list_faults(visitor.page, axe) == [], (scheme, tab)


def test_a_page_without_a_job_and_without_a_key(visit, empty, axe):
    visitor = visit(camera=False)
    visitor.wait_text("#stage-said", "No stream is running yet")
    for tab in TABS:
        visitor.find(f"#tab-{tab}").click()
        assert list_faults(visitor.page, axe) == [], tab
    closed = visit(f"{empty.server.base_url}/", camera=False, expects=("status of 401",))
    closed.wait_text("#key-form", "key")
    assert list_faults(closed.page, axe) == []
    closed.page.evaluate("document.body.append(document.createElement('button'))")
    assert [fault["id"] for fault in list_faults(closed.page, axe)] == ["button-name"]


def test_by_keyboard_alone(visit, api, drawn):
    """Tabs go by arrows, and everything is reached in the order in which it is read."""
    visitor = visit(camera=False)
    visitor.wait_playing()
    keyboard = visitor.page.keyboard
    visitor.find("#tab-studio").focus()
    keyboard.press("ArrowRight")
    assert visitor.find("#monitor").is_visible()
    keyboard.press("End")
    assert visitor.find("#outputs").is_visible()
    keyboard.press("ArrowRight")
    assert visitor.find("#studio").is_visible()
    visitor.page.reload()
    visitor.wait_playing()
    visitor.page.evaluate(
        """() => {
          window.reached = [];
          document.addEventListener("focusin", (event) => window.reached.push(event.target.id));
        }"""
    )
    for _ in range(26):
        keyboard.press("Tab")
    reached = visitor.page.evaluate("window.reached")
    wanted = ["cover", "language", "tab-studio", "start-camera", "address", "operation-detect"]
    places = [reached.index(name) for name in wanted]
    assert places == sorted(places)
    assert reached.index("operation-detect") < reached.index("operation-blur")
    visitor.find("#operation-background").focus()
    keyboard.press("Space")
    visitor.wait(
        lambda: "background" in api.ask("GET", "/v1/jobs/main/token").value["operations"], "it"
    )
    assert visitor.page.evaluate("document.activeElement.id") == "operation-background"
    # The first thing that Tab finds leads past the header.
    visitor.page.reload()
    keyboard.press("Tab")
    keyboard.press("Enter")
    assert visitor.page.evaluate("document.activeElement.id") == "view"


def test_a_phone_has_room_for_it(visit, api, drawn):
    """At 360 px nothing has to be pushed sideways, in any view, in either language."""
    visitor = visit(camera=False, viewport={"width": 360, "height": 740}, has_touch=True)
    visitor.wait_playing()
    open_everything(visitor, api)
    for _language in range(2):
        for tab in TABS:
            visitor.find(f"#tab-{tab}").click()
            visitor.page.wait_for_timeout(300)
            assert visitor.page.evaluate("document.documentElement.scrollWidth") == 360, tab
        visitor.find("#language").click()
        visitor.wait_playing()


def test_both_languages(visit, api, drawn):
    """The browser's language at first; what was chosen is kept; looks have Chinese names."""
    visitor = visit(camera=False, locale="zh-CN")
    visitor.wait_text("#tab-studio", "工作台")
    assert visitor.find("html").get_attribute("lang") == "zh-CN"
    assert "自然" in visitor.find("#look").text_content()
    visitor.find("#language").click()
    visitor.wait_text("#tab-studio", "Studio")
    visitor.page.reload()
    visitor.wait_text("#tab-studio", "Studio")
    assert "Natural" in visitor.find("#look").text_content()


def test_dark_and_light(visit, api, drawn):
    visitor = visit(camera=False, color_scheme="light")
    read = "getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number)"
    assert min(visitor.page.evaluate(read)) > 200
    visitor.page.emulate_media(color_scheme="dark")
    assert max(visitor.page.evaluate(read)) < 60
