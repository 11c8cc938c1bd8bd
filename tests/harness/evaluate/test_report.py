"""The report: one file that needs nothing else, looked at in a real browser, wide and narrow, light and dark."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rebalance_lab.harness.evaluate.comparison import Comparison, compare
from rebalance_lab.harness.evaluate.recommend.advice import recommend, sureness
from rebalance_lab.harness.evaluate.report.advice_section import advice_html
from rebalance_lab.harness.evaluate.report.drawings import drawing
from rebalance_lab.harness.evaluate.report.page import report_page
from rebalance_lab.harness.evaluate.report.tables import ranking_table
from rebalance_lab.harness.measure.ownership import timelines
from rebalance_lab.harness.scenario.model import TopicSpec
from rebalance_lab.harness.scenario.reader import load_scenario, parse_scenario
from tests.harness.small_scenarios import RESTART
from tests.paths import ROOT

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
STRATEGIES = ("classic/range", "classic/cooperative-sticky", "consumer/uniform+static")
NASTY = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    data = {
        **RESTART,
        "name": f"a deploy {NASTY}",
        "description": "What to look for.",
        "timeline": [
            {"at": "40s", "restart": {"members": "consumer-2", "downtime": "10s"}},
            {"at": "70s", "pause": {"members": "consumer-1", "for": "5s"}},
        ],
    }
    return compare(parse_scenario(data), STRATEGIES, range(1, 7), jobs=1)


@pytest.fixture(scope="module")
def page(comparison: Comparison) -> str:
    advice = recommend(comparison, now="classic/sticky")  # a migration with the longest names there are
    shown = advice_html(advice, sureness(advice, comparison), ["a note"])
    return report_page(comparison, command="rebalance-lab recommend x.yaml --html r.html", advice=shown, jobs=1)


class Outline(HTMLParser):
    """What a screen reader goes by, and what would reach for the network."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.headings: list[int] = []
        self.fetched: list[str] = []
        self.ids: list[str] = []
        self.bare_headers = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "th" and "scope" not in given:
            self.bare_headers += 1
        if "id" in given:
            self.ids.append(str(given["id"]))
        for name in ("src", "href"):
            if given.get(name) and not str(given[name]).startswith(("#", "data:")):
                self.fetched.append(str(given[name]))


def test_it_is_one_file_that_fetches_nothing(page: str) -> None:
    outline = Outline(page)
    assert outline.fetched == []
    assert "@import" not in page
    assert "url(" not in page
    assert "default-src 'none'" in page


def test_headings_go_down_step_by_step_and_tables_have_headers(page: str) -> None:
    outline = Outline(page)
    assert outline.headings[0] == 1
    assert outline.headings.count(1) == 1
    assert all(b <= a + 1 for a, b in zip(outline.headings, outline.headings[1:], strict=False))
    assert outline.bare_headers == 0
    assert len(outline.ids) == len(set(outline.ids))


def test_names_cannot_break_out_of_the_page(page: str) -> None:
    assert NASTY not in page
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL)
    assert data is not None
    assert len(json.loads(data[1])["runs"]) == 3


def test_it_says_where_it_comes_from(page: str, comparison: Comparison) -> None:
    assert "rebalance-lab recommend x.yaml --html r.html" in page
    assert "unowned_s=1, stalled_s=1" in page
    assert f"1 to 6; drawn: {comparison.typical_seed}" in page
    assert "Recommendation" in page


def test_who_costs_the_same_is_not_ranked_in_words(comparison: Comparison) -> None:
    """The first of several that tie is the first by its name only."""
    calm = replace(comparison.scenario, timeline=(), strategy=None)
    tie = report_page(compare(calm, ["range", "roundrobin", "sticky"], [1, 2], jobs=1), jobs=1)
    assert "Every strategy costs the same here: " in tie
    assert "best in 33% of the seeds" not in tie
    three = compare(replace(comparison.scenario, strategy=None), ["range", "roundrobin", "uniform"], [1], jobs=1)
    best = next(one for one in three.samples if one.strategy == three.ranking[0].strategy)
    second = three.ranking[1].strategy
    samples = tuple(replace(best, strategy=second) if one.strategy == second else one for one in three.samples)
    shown = report_page(replace(three, samples=samples), jobs=1)
    assert "In every seed it is the same with <code>" in shown
    assert f"Next is <code>{three.ranking[2].strategy}</code>" in shown


def test_bars_tell_costs_apart_also_where_the_best_costs_nothing() -> None:
    """A KIP-848 group moves nothing when a member without partitions goes; a classic one rebalances."""
    members, stop = {"c": {"count": 65, "topics": "t"}}, {"at": "5m", "stop": "c-1"}
    told = {"duration": "10m", "topics": {"t": {"partitions": 3}}, "members": members, "timeline": [stop]}
    found = compare(parse_scenario(told), ["consumer/uniform", "cooperative-sticky", "classic/range"], [2], jobs=1)
    free, *others = [one.score.median for one in found.ranking if one.score]
    assert free == 0 < others[0] < others[1] < 4 * others[0]
    assert 'class="over"' not in ranking_table(found)


def test_one_strategy_alone_is_not_the_best_of_anything(comparison: Comparison) -> None:
    alone = report_page(compare(comparison.scenario, ["classic/range"], [1], jobs=1), jobs=1)
    assert "</code> costs " in alone
    assert "best in" not in alone
    assert "Lowest cost" not in alone
    assert "Medians over one seed;" in alone


def test_what_a_list_leaves_out_is_said(comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "are not listed" not in report_page(comparison, jobs=1)
    monkeypatch.setattr("rebalance_lab.harness.evaluate.report.drawings.MOST_EVENTS", 8)
    drawn = drawing(comparison.scenario, "classic/range", 1)
    assert len(drawn["happenings"]) == 8
    assert f"{drawn['untold']} later changes of processes and of the group are not listed." in report_page(
        compare(comparison.scenario, ["classic/range"], [1], jobs=1), jobs=1
    )


def test_intervals_hold_as_much_ownership_as_the_costs_say(comparison: Comparison) -> None:
    for strategy in STRATEGIES:
        drawn = drawing(comparison.scenario, strategy, 3)
        gaps_s = sum(n * (end - start) for _, n, start, end in drawn["gaps"]) / 1_000
        assert gaps_s == pytest.approx(drawn["costs"]["unowned_s"])
        read_s = sum(n * (end - start) for _, _, n, start, end in drawn["reads"]) / 1_000
        assert 0 < read_s <= 6 * 120


def test_a_moment_is_answered_from_intervals() -> None:
    facts: list[dict[str, Any]] = [
        {"t": 0, "fact": "topic", "topic": "t", "partitions": 2},
        {"t": 1, "fact": "process", "member": "a", "is": "started"},
        {"t": 5, "fact": "reads", "member": "a", "partitions": {"t": [0, 1]}, "from": {"t": [0, 0]}},
        {"t": 9, "fact": "process", "member": "a", "is": "paused"},
        {"t": 20, "fact": "process", "member": "a", "is": "resumed"},
        {"t": 30, "fact": "stops", "member": "a", "partitions": {"t": [1]}, "at": {"t": [7]}},
        {"t": 40, "fact": "end", "quiet": False, "unread": {}},
        {"t": 40, "fact": "stops", "member": "a", "partitions": {"t": [0]}, "at": {"t": [9]}},
    ]
    lines = timelines(facts)
    assert lines.owners_at(10) == {"a": {"t": [0, 1]}}
    assert (lines.what_at("a", 10), lines.what_at("a", 25), lines.what_at("a", 0)) == ("paused", "running", "")
    assert lines.owners_at(40) == {"a": {"t": [0]}}
    assert lines.unowned_at(35) == {"t": [1]}


@pytest.mark.parametrize("name", ["rolling_deploy", "scale_out_3_to_30"])
def test_an_example_stays_small(name: str) -> None:
    scenario = load_scenario(ROOT / "examples" / "scenarios" / f"{name}.yaml")
    text = report_page(compare(scenario, STRATEGIES[:2], [1], jobs=1), jobs=1)
    assert len(text.encode()) < 500_000


def test_the_wheel_holds_what_the_page_is_made_of(tmp_path: Path) -> None:
    hatchling = pytest.importorskip("hatchling.builders.wheel", reason="hatchling is not installed")
    (built,) = hatchling.WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    names = zipfile.ZipFile(built).namelist()
    assert {
        f"rebalance_lab/harness/evaluate/report/{name}"
        for name in ("page.html", "style.css", "runs.js", "draw.js", "page.js")
    } <= set(names)


# In a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium on this machine: the report was not looked at in a browser")
    with sync_api.sync_playwright() as playwright:
        # A container's root has no sandbox to give.
        chromium = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def address(page: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(page, encoding="utf-8")
    return file.as_uri()


NOT_FOR_EVER = """(() => {
    const pen = CanvasRenderingContext2D.prototype, measure = pen.measureText;
    let calls = 0;
    pen.measureText = function (text) {
        if (++calls > 20000) throw new Error("measured for ever");
        return measure.call(this, text);
    };
})()"""
"""A page in a loop without end takes the whole browser with it: rather an error that a test can see."""


def opened(browser: Any, address: str, width: int, scheme: str, **more: Any) -> tuple[Any, list[str]]:
    tab = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme, **more)
    tab.add_init_script(NOT_FOR_EVER)
    troubles: list[str] = []
    tab.on("console", lambda message: troubles.append(message.text))
    tab.on("pageerror", lambda error: troubles.append(str(error)))
    tab.on("request", lambda request: None if request.url == address else troubles.append(request.url))
    tab.goto(address)
    tab.wait_for_timeout(200)
    return tab, troubles


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_renders_without_errors_or_sideways_scrolling(
    browser: Any, address: str, tmp_path: Path, width: int, scheme: str
) -> None:
    tab, troubles = opened(browser, address, width, scheme)
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    assert tab.locator("figure").count() == 4  # one a strategy, and the lag of all
    assert tab.locator(".ranking tbody tr").count() == 3
    assert tab.locator(".plot canvas").first.bounding_box()["width"] > width * 0.8
    assert painted(tab) > 20  # colours: the lanes are there
    tab.screenshot(path=str(tmp_path / f"{width}-{scheme}.png"), full_page=True)
    assert troubles == []


@pytest.mark.parametrize("width", [1280, 390])
def test_a_name_that_no_lane_has_room_for_is_cut_short(
    browser: Any, comparison: Comparison, tmp_path: Path, width: int
) -> None:
    """Names of a live group come from its clients, and are whatever those were configured with."""
    names = ("a name\nwith a line end, longer than a lane", "one\u2028more of the kind, as long", "x" * 100_000)
    members = tuple(replace(one, name=name) for one, name in zip(comparison.scenario.members, names, strict=True))
    scenario = replace(comparison.scenario, name="n" * 200, members=members, timeline=())
    odd = compare(scenario, ["classic/range"], [1], jobs=1)
    file = tmp_path / "report.html"
    file.write_text(report_page(odd, jobs=1), encoding="utf-8")
    tab, troubles = opened(browser, file.as_uri(), width, "light")
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    assert painted(tab) > 20
    assert troubles == []


def test_members_that_are_not_drawn_are_not_nobody(browser: Any, comparison: Comparison, tmp_path: Path) -> None:
    """Of 70 members 60 are drawn: what the others read is grey by partition, and has an owner nevertheless."""
    like = comparison.scenario.members[0]
    members = tuple(replace(like, name=f"member-{number}") for number in range(70))
    topics = tuple(replace(topic, partitions=70) for topic in comparison.scenario.topics)
    scenario = replace(comparison.scenario, members=members, topics=topics, timeline=())
    file = tmp_path / "report.html"
    file.write_text(report_page(compare(scenario, ["classic/range"], [1], jobs=1), jobs=1), encoding="utf-8")
    tab, troubles = opened(browser, file.as_uri(), 1280, "light")
    assert "10 more members are not drawn: by partition, what they read is grey." in tab.locator("#charts").inner_text()
    said = tab.evaluate(
        """() => {
            const canvas = document.querySelector('.plot canvas'), pen = canvas.getContext('2d');
            return new Set(new Uint32Array(pen.getImageData(0, 60, 120, canvas.height - 160).data.buffer)).size;
        }"""
    )
    assert said > 5  # names beside thin lanes
    tab.locator("[value=partition]").check(force=True)
    plot = tab.locator(".plot").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    told = set()
    for y in range(20, 440, 4):
        tab.mouse.move(box["x"] + 900, box["y"] + y)
        told.add(tab.locator("#tip").inner_text().split(": ")[-1])
    assert "no owner, or one that is not drawn" in told
    assert "no owner" not in told
    assert troubles == []


WRITTEN_DOWN = """(() => {
    const pen = CanvasRenderingContext2D.prototype, write = pen.fillText;
    window.written = [];
    pen.fillText = function (text, x, y) {
        const wide = this.measureText(text).width, part = { left: 0, start: 0, center: 0.5, right: 1, end: 1 };
        const from = x - wide * part[this.textAlign];
        window.written.push({ text, y, from, to: from + wide, room: this.canvas.clientWidth });
        return write.call(this, text, x, y);
    };
})()"""


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("days", [1, 10, 3_650])
def test_the_times_of_a_long_run_do_not_cover_each_other(
    browser: Any, comparison: Comparison, tmp_path: Path, days: int, width: int
) -> None:
    scenario = replace(
        comparison.scenario,
        duration_ms=days * 86_400_000,
        timeline=(),
        topics=(TopicSpec(name="orders", partitions=1),),
    )
    file = tmp_path / "report.html"
    file.write_text(report_page(compare(scenario, ["classic/range"], [1], jobs=1), jobs=1), encoding="utf-8")
    tab = browser.new_page(viewport={"width": width, "height": 844})
    tab.add_init_script(WRITTEN_DOWN)
    tab.goto(file.as_uri())
    tab.locator("[data-do=all]").click()
    tab.wait_for_timeout(200)  # until that is drawn
    tab.evaluate("window.written.length = 0")
    tab.locator("[value=partition]").check(force=True)
    tab.wait_for_timeout(200)
    rows: dict[float, dict[float, Any]] = {}
    for one in tab.evaluate("window.written"):  # perhaps drawn more than once
        if re.match(r"[0-9]+:[0-9]{2}", one["text"]):
            rows.setdefault(one["y"], {})[one["from"]] = one
    assert rows
    for row in rows.values():
        times = [row[x] for x in sorted(row)]
        assert 2 <= len(times) < 20
        assert all(a["to"] < b["from"] for a, b in pairwise(times))
        assert max(one["to"] for one in times) <= times[0]["room"]


def painted(tab: Any) -> int:
    """How many colours the first chart has."""
    count: int = tab.evaluate(
        """() => {
            const canvas = document.querySelector('.plot canvas'), pen = canvas.getContext('2d');
            const pixels = new Uint32Array(pen.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
            return new Set(pixels).size;
        }"""
    )
    return count


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_what_it_stands_on(browser: Any, address: str, scheme: str) -> None:
    tab, _ = opened(browser, address, 1280, scheme)
    colours = tab.evaluate(
        """() => Object.fromEntries(['ink', 'soft', 'accent', 'gap', 'mark', 'paper', 'card', 'now'].map(
            (name) => [name, getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim()]))"""
    )
    for text in ("ink", "soft", "accent", "gap", "mark"):
        for ground in ("paper", "card", "now"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)


def contrast(one: str, other: str) -> float:
    """WCAG's."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_keyboard_asks_about_a_moment_and_zooms(browser: Any, address: str) -> None:
    tab, troubles = opened(browser, address, 1280, "light")
    whole = tab.locator("#range").inner_text()
    plot = tab.locator(".plot").first
    plot.focus()
    assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        tab.keyboard.press(key)
    said = tab.locator("#tip").inner_text()
    assert "consumer-" in said
    assert "reads" in said
    tab.keyboard.press("+")
    assert tab.locator("#range").inner_text() != whole
    tab.keyboard.press("Escape")
    assert not tab.locator("#tip").is_visible()
    assert troubles == []


def test_a_mouse_a_finger_the_events_and_the_other_view(browser: Any, address: str) -> None:
    tab, troubles = opened(browser, address, 390, "light", has_touch=True)
    box = tab.locator(".plot").first.bounding_box()
    tab.evaluate(f"scrollTo({{top: {box['y'] - 100}, behavior: 'instant'}})")
    tab.wait_for_timeout(200)
    tab.touchscreen.tap(200, 100 + 60)
    assert tab.locator("#tip").is_visible()
    tab.locator("#jump").select_option(index=1)
    assert "of 2:00" in tab.locator("#range").inner_text()
    tab.locator("[value=partition]").check(force=True)
    tab.wait_for_timeout(100)
    assert painted(tab) > 5
    tab.locator("[data-do=all]").click()
    assert tab.locator("#range").inner_text() == "0:00 to 2:00 of 2:00"
    assert tab.evaluate("document.documentElement.scrollWidth") == 390
    assert troubles == []
