"""The page in a real browser: what a person does with it, without errors, sideways scrolling or barriers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.service.conftest import GROUP, Running
from tests.harness.evaluate.test_report import BROWSERS, NOT_FOR_EVER

PASTED = {"strategy": "classic/sticky", "group": {**GROUP, "topics": {"orders": {"partitions": 6}}}}
SCENARIO = """
name: a short deploy
duration: 3m
strategy: classic/range
topics: {orders: {partitions: 6, rate: 60/s}}
members: {consumer: {count: 3, topics: orders}}
timeline: [{at: 1m, rolling restart: {downtime: 5s, gap: 5s}}]
"""
SIZES = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium on this machine: the service's page was not looked at in a browser")
    with sync_api.sync_playwright() as playwright:
        # A container's root has no sandbox to give.
        chromium = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser: Any, running: Running) -> Iterator[Open]:
    troubles: list[str] = []
    contexts = []

    def go(width: int = 1280, scheme: str = "light", refusals: bool = False) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            permissions=["clipboard-read", "clipboard-write"],
        )
        contexts.append(context)
        tab = context.new_page()
        tab.set_default_timeout(30_000)
        # Chromium itself reports every 4xx there.
        tab.on(
            "console", lambda told: None if refusals and "status of 422" in told.text else troubles.append(told.text)
        )
        tab.on("pageerror", lambda error: troubles.append(str(error)))
        tab.on(
            "request",
            lambda request: None if request.url.startswith((running.url, "data:")) else troubles.append(request.url),
        )
        tab.goto(running.url)
        tab.wait_for_selector(".matrix")
        return tab

    yield go
    for context in contexts:
        context.close()
    assert troubles == []


def paste(tab: Any, text: str) -> None:
    tab.locator("[name=how][value=text]").check(force=True)
    tab.locator("#document").fill(text)


def until(tab: Any, holds: str) -> None:
    """Playwright's own waiting is a string made into code, which the page's policy forbids, as it should."""
    for _ in range(300):
        if tab.evaluate(holds):
            return
        tab.wait_for_timeout(100)
    raise AssertionError(f"it did not come to pass: {holds}")


def test_from_a_pasted_group_to_the_matrix_and_another_strategy(opened: Open) -> None:
    tab = opened()
    paste(tab, json.dumps(PASTED["group"]))
    tab.wait_for_selector("text=pod-c")
    tab.locator("#strategy").select_option("classic/sticky")
    until(tab, "document.querySelector('#assignment .figures').textContent.includes('4kept')")
    kept, got, lost = (tab.locator(f".matrix .cell.{state}").count() for state in ("kept", "got", "lost"))
    assert (kept, got, lost) == (4, 2, 2)
    tab.locator("#strategy").select_option("classic/range")
    until(tab, "document.querySelectorAll('.matrix .cell.kept').length !== 4")
    assert tab.locator(".moves li").count() > 0
    tab.locator("#tab-compare").click()
    tab.wait_for_selector("#comparison tbody tr")
    rows = [row.split("\t") for row in tab.locator("#comparison tbody").inner_text().split("\n")]
    assert [row[0] for row in rows][:3] == ["classic/range", "classic/roundrobin", "classic/sticky"]
    assert rows[2][1:4] == ["2", "4", "2"]  # a member has, kept, moved
    assert len(rows) == 7
    tab.get_by_label("Show the assignment of consumer/uniform").click()
    assert tab.locator("#strategy").input_value() == "consumer/uniform"


def test_a_wrong_document_is_told_with_its_path(opened: Open) -> None:
    tab = opened(refusals=True)
    paste(tab, '{"topics": {"orders": {"partitions": -1}}, "members": {}}')
    tab.wait_for_selector("#assignment .problem")
    assert "group.topics.orders.partitions" in tab.locator("#assignment .problem").inner_text()
    paste(tab, "{oops")
    until(tab, "document.getElementById('document-problem').textContent.startsWith('not JSON')")


@pytest.fixture
def dropped(tmp_path: Path) -> Path:
    file = tmp_path / "snapshot.json"
    file.write_text(
        json.dumps({"topics": {"dropped": {"partitions": 3}}, "members": {"solo": {"topics": ["dropped"]}}})
    )
    return file


def test_the_form_a_file_and_a_drop_say_the_same(opened: Open, dropped: Path) -> None:
    tab = opened()
    tab.locator("#add-member").click()
    until(tab, "document.querySelectorAll('.matrix tbody tr').length === 5")
    tab.locator("#members .remove").last.click()
    until(tab, "document.querySelectorAll('.matrix tbody tr').length === 4")
    tab.locator("#file").set_input_files(dropped)
    tab.wait_for_selector(".matrix >> text=solo")
    assert tab.locator("#topics input").first.input_value() == "dropped"
    tab.evaluate(
        """() => {
            const data = new DataTransfer();
            const group = {topics: {t: {partitions: 2}}, members: {falls: {topics: ['t']}}};
            data.items.add(new File([JSON.stringify(group)], 'group.json'));
            window.dispatchEvent(new DragEvent('drop', {dataTransfer: data}));
        }"""
    )
    tab.wait_for_selector(".matrix >> text=falls")


def test_a_scenario_runs_to_its_end_and_plays(opened: Open) -> None:
    tab = opened()
    paste(tab, SCENARIO)
    tab.locator("#tab-simulate").click()
    tab.locator("#run-strategy").select_option("classic/cooperative-sticky")
    tab.locator("#run").click()
    tab.wait_for_selector("#play")
    assert "0:00 of 3:00" in tab.locator(".clock").inner_text()
    tab.locator("input[type=range]").focus()
    tab.keyboard.press("End")
    assert "3:00 of 3:00" in tab.locator(".clock").inner_text()
    assert tab.locator(".moment").inner_text().count("orders") >= 3
    tab.keyboard.press("Home")
    tab.locator("#play").click()
    until(tab, "document.querySelector('.clock').textContent.startsWith('0:1')")  # it moves
    tab.locator("#play").click()
    assert tab.locator("#play").inner_text() == "Play"


def test_a_name_that_no_lane_has_room_for_is_cut_short(opened: Open) -> None:
    tab = opened()
    name = "a name\nwith a line end\u2028and another, longer than a lane"
    paste(tab, json.dumps({"topics": {"t": {"partitions": 2}}, "members": {name: {"topics": ["t"]}}}))
    tab.evaluate(NOT_FOR_EVER)
    tab.locator("#tab-simulate").click()
    tab.locator("#run").click()
    tab.wait_for_selector("#play")
    assert "0:00 of" in tab.locator(".clock").inner_text()


def test_a_recommendation_is_read_and_its_properties_copied(opened: Open) -> None:
    tab = opened()
    paste(tab, SCENARIO)
    tab.locator("#tab-recommend").click()
    tab.locator("#seeds").fill("1")
    tab.locator("#now").select_option("classic/range")
    tab.locator("#ask").click()
    tab.wait_for_selector(".verdict")
    assert tab.locator("#advice tbody tr").count() == 7
    tab.get_by_label("Copy the properties for Java clients").click()
    tab.wait_for_selector("text=Copied")
    copied = tab.evaluate("navigator.clipboard.readText()")
    assert copied == tab.locator(".paste pre").first.inner_text()
    assert "group.protocol=" in copied


def test_the_keyboard_is_enough(opened: Open) -> None:
    tab = opened()
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    tab.locator("#tab-assign").focus()
    tab.keyboard.press("ArrowRight")
    assert tab.evaluate("document.activeElement.id") == "tab-compare"
    tab.wait_for_selector("#comparison table")
    tab.keyboard.press("End")
    assert tab.locator("#panel-recommend").is_visible()
    assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_names_are_text_and_never_markup(opened: Open) -> None:
    tab = opened()
    nasty = "<img src=x onerror=alert(1)>"
    paste(tab, json.dumps({"topics": {"t": {"partitions": 2}}, "members": {nasty: {"topics": ["t"]}}}))
    until(tab, "document.querySelectorAll('.matrix tbody tr').length === 1")
    assert tab.locator(".matrix tbody th").inner_text() == nasty
    assert tab.locator("img").count() == 0


INHERITED = ("constructor", "toString", "__proto__", "hasOwnProperty")
"""Every plain object of JavaScript has these without being told."""


def test_names_that_every_object_has_are_names_like_others(opened: Open) -> None:
    tab = opened()
    topics = {name: {"partitions": 2} for name in (*INHERITED, "orders")}
    members = {name: {"topics": list(topics), "owned": {"__proto__": [0]}} for name in INHERITED}
    members["plain"] = {"topics": ["orders"]}
    paste(tab, json.dumps({"topics": topics, "members": members}))
    until(tab, "document.querySelectorAll('.matrix tbody tr').length === 5")
    assert tab.locator(".matrix .cell.kept, .matrix .cell.got").count() == 10
    assert sorted(tab.locator(".matrix tbody th").all_inner_texts()) == sorted([*INHERITED, "plain"])
    tab.locator("[name=how][value=form]").check(force=True)  # through the form and back
    until(tab, "document.querySelectorAll('.matrix tbody tr').length === 5")
    tab.locator("[name=how][value=text]").check(force=True)
    assert json.loads(tab.locator("#document").input_value())["topics"] == topics
    read = json.loads(tab.locator("#document").input_value())["members"]
    assert set(read) == set(members)
    assert all(read[name]["owned"] == {"__proto__": [0]} for name in INHERITED)
    tab.locator("#tab-compare").click()
    tab.wait_for_selector("#comparison tbody tr")
    tab.evaluate(NOT_FOR_EVER)
    tab.locator("#tab-simulate").click()
    tab.locator("#run").click()
    tab.wait_for_selector("#play")
    assert "constructor" in tab.locator(".moment").inner_text()


def test_a_member_without_one_of_such_topics_is_drawn(opened: Open) -> None:
    tab = opened()
    for name in INHERITED:
        topics = {name: {"partitions": 2}, "orders": {"partitions": 1}}
        members = {f"of {name}": {"topics": [name]}, "other": {"topics": ["orders"]}}
        paste(tab, json.dumps({"topics": topics, "members": members}))
        tab.wait_for_selector(f".matrix >> text=of {name}")
        assert tab.locator(".matrix .cell.got").count() == 3


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_no_barriers_and_no_sideways_scrolling(opened: Open, tmp_path: Path, width: int, scheme: str) -> None:
    """axe-core on every view, and a screenshot of each."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    ).Axe()
    tab = opened(width, scheme)
    for view in ("assign", "compare", "simulate", "recommend"):
        tab.locator(f"#tab-{view}").click()
        if view == "compare":
            tab.wait_for_selector("#comparison table")
        elif view == "simulate":
            paste(tab, SCENARIO)
            tab.locator("#run").click()
            tab.wait_for_selector("#play")
        elif view == "recommend":
            tab.locator("#seeds").fill("1")
            tab.locator("#ask").click()
            tab.wait_for_selector(".verdict")
        assert tab.evaluate("document.documentElement.scrollWidth") == width, view
        assert "[object" not in tab.locator("main").inner_text()
        tab.screenshot(path=str(tmp_path / f"{view}-{width}-{scheme}.png"), full_page=True)
        found = axe.run(tab).response["violations"]
        serious = [one for one in found if one["impact"] in ("serious", "critical")]
        assert [(one["id"], one["nodes"][0]["html"]) for one in serious] == [], view


def test_it_is_served_whole_and_with_a_policy(client: httpx.Client) -> None:
    page = client.get("/")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    for name in (
        "style.css",
        "app.js",
        "api.js",
        "dom.js",
        "group.js",
        "matrix.js",
        "compare.js",
        "timeline.js",
        "advice.js",
    ):
        part = client.get(f"/page/{name}")
        assert part.status_code == 200
        assert "://" not in part.text.replace("http://www.w3.org", "")  # nothing comes from elsewhere
        assert client.get(f"/page/{name}", headers={"if-none-match": part.headers["etag"]}).status_code == 304
    assert client.get("/page/..%2Fapp.py").status_code == 404
