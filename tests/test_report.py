"""The page as a file and in a real browser."""

import functools
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import tiny_runs

from latentbit.analyze.stored import Analysis, dumps
from latentbit.report import distinct_names, page, write_report
from latentbit.report.markup import look_up
from latentbit.runs import RunDirectory

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


@functools.cache
def html() -> str:
    analyses = [tiny_runs.analysis(), tiny_runs.float_analysis()]
    directories = [RunDirectory(tiny_runs.baseline()), RunDirectory(tiny_runs.float_run())]
    return page(analyses, directories)


class Values(HTMLParser):
    """Collects (key, value, text) of every element that carries a number."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[list[str]] = []
        self.inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.inside = "data-key" in named
        if self.inside:
            self.found.append([named["data-key"] or "", named["data-value"] or "", ""])

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.found[-1][2] += data

    def handle_endtag(self, tag: str) -> None:
        self.inside = False


def test_every_number_is_that_of_the_json() -> None:
    stored = {
        one.name: json.loads(dumps(one.numbers)) for one in (tiny_runs.analysis(), tiny_runs.float_analysis())
    }
    values = Values()
    values.feed(html())
    assert len(values.found) > 150
    for key, value, shown in values.found:
        run, _, path = key.partition("/")
        expected = look_up(stored[run], path)
        assert float(value) == expected, key
        digits = re.sub(r"[^\d.eE+-]", "", shown)
        places = len(digits.partition(".")[2])
        factors = (1, 100, 1e-3, 1e-6)
        assert any(f"{factor * expected:.{places}f}" == digits for factor in factors), (key, shown, expected)


def test_nothing_is_fetched() -> None:
    outside = re.findall(r'(?:src|href)="(?!#|data:)([^"]*)"|url\((?!#|data:)([^)]*)\)|@import', html())
    assert outside == []


HOSTILE = """<script>document.title='hit'</script><img src=x onerror="document.title='hit'">'&quot;$\\frac$"""


@functools.cache
def hostile_html() -> str:
    """A page of runs whose every name tries to be markup: of run, recipe, network, data set, classes, layers."""
    one = tiny_runs.analysis()
    numbers = json.loads(dumps(one.numbers).replace("stages.", "<script>alert(1)</script>"))
    numbers |= {key: HOSTILE for key in ("run", "recipe", "network", "dataset", "method", "loss")}
    numbers["classes"] = [f"{HOSTILE}{i}" for i in range(10)]
    folder = Path(tempfile.mkdtemp(prefix="<script>alert(2)<"))
    (folder / "recipe.toml").write_text(f"# </pre>{HOSTILE}\n")
    (folder / "environment.json").write_text(json.dumps({HOSTILE: HOSTILE}))
    try:
        other = Analysis(numbers | {"run": "plain"}, one.arrays)
        return page([Analysis(numbers, one.arrays), other], [RunDirectory(folder)] * 2)
    finally:
        shutil.rmtree(folder)


class Tags(HTMLParser):
    """Counts scripts and images, and attributes that would run something."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts = self.images = 0
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        self.images += tag == "img"
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def test_hostile_names_stay_text() -> None:
    tags = Tags()
    tags.feed(hostile_html())
    assert (tags.scripts, tags.images, tags.handlers) == (1, 0, [])  # the page's own script
    assert "&lt;script&gt;document.title" in hostile_html()


def called(*facts: tuple[str, str, str]) -> list[str]:
    one = tiny_runs.analysis()
    keys = ("run", "method", "loss")
    runs = [Analysis(one.numbers | dict(zip(keys, values, strict=True)), one.arrays) for values in facts]
    return [run.name for run in distinct_names(runs)]


def test_runs_are_called_by_what_tells_them_apart() -> None:
    long, longer = "cifar10_resnet18_compact_quick", "cifar10_resnet18_compact_baseline_quick"
    assert called((long, "sign", "label_aware")) == [long]
    assert called((longer, "sign", "baseline"), (long, "sign", "label_aware")) == ["baseline", "label_aware"]
    assert called(("seed0", "sign", "baseline"), ("seed0", "irnet", "baseline")) == ["sign", "irnet"]
    three = [("a", "sign", "baseline"), ("a", "sign", "instance"), ("a", "irnet", "instance")]
    assert called(*three) == ["sign baseline", "sign instance", "irnet instance"]
    assert called(("a", "sign", "baseline"), ("b", "sign", "baseline")) == ["a", "b"]
    assert called(*[("a", "sign", "baseline")] * 3) == ["a", "a (2)", "a (3)"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine: the report was not opened in a browser")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, "--disable-sync"])
        yield opened
        opened.close()


SMALLEST_TEXT = """Math.min(...[...document.querySelectorAll('body *')]
    .filter((one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())
        && one.getClientRects().length)
    .map((one) => parseFloat(getComputedStyle(one).fontSize)
        * (one.ownerSVGElement ? Math.hypot(one.getScreenCTM().a, one.getScreenCTM().b) : 1)))"""
"""Pixels on the screen, inside of figures too."""


def test_nothing_is_cut_or_folded_on_paper(browser: Any, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    out.write_text(html())
    tab = browser.new_page(
        viewport={"width": 718, "height": 1000}, color_scheme="dark"
    )  # A4 without its margins
    tab.goto(out.as_uri())
    tab.emulate_media(media="print")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.evaluate("document.querySelectorAll('details:not([open])').length") == 0
    too_wide = tab.evaluate(
        "[...document.querySelectorAll('table, pre, svg')].filter((one) => one.getBoundingClientRect().right > 718"
        " || one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent.slice(0, 80))"
    )
    assert too_wide == []
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.evaluate("document.querySelector('details pre').getBoundingClientRect().height") > 100
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert tab.evaluate("document.querySelectorAll('details[open]').length") == 0
    tab.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_opens_from_disk(browser: Any, tmp_path: Path, width: int, scheme: str) -> None:
    out = tmp_path / "report.html"
    out.write_text(html())
    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    problems: list[str] = []
    tab.on("console", lambda message: problems.append(message.text))
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on(
        "request", lambda request: problems.append(request.url) if request.url.startswith("http") else None
    )
    tab.goto(out.as_uri())
    tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    pictures = tab.evaluate(
        """Promise.all([...document.querySelectorAll('image, img')].map((one) => new Promise((done) => {
            const probe = new Image();
            probe.onload = () => done(probe.naturalWidth > 0);
            probe.onerror = () => done(false);
            probe.src = one.href ? one.href.baseVal : one.src;
        })))"""
    )
    assert len(pictures) >= 8 and all(pictures)  # maps, matrices, sheets, points
    assert tab.evaluate(SMALLEST_TEXT) >= 11
    unnamed = tab.evaluate("[...document.querySelectorAll('figure svg')].filter((s) => !s.ariaLabel).length")
    assert unnamed == 0 and problems == []
    ink = tab.evaluate("getComputedStyle(document.querySelector('figure svg text')).fill")
    lightness = sum(map(int, re.findall(r"\d+", ink)[:3]))
    assert (lightness > 380) == (scheme == "dark")
    tab.close()


def test_hostile_names_run_nothing_in_a_browser(browser: Any, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    out.write_text(hostile_html())
    tab = browser.new_page()
    dialogs: list[str] = []
    tab.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    tab.goto(out.as_uri())
    assert tab.title() != "hit" and HOSTILE in tab.title() and dialogs == []
    assert tab.locator("h3", has_text=HOSTILE).count() >= 1
    assert tab.evaluate("document.querySelectorAll('script').length") == 1
    tab.close()


def test_tables_sort(browser: Any, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    directories = [RunDirectory(tiny_runs.baseline())]
    write_report([tiny_runs.analysis()], directories, out)
    tab = browser.new_page()
    tab.goto(out.as_uri())
    column = "#reconstruction tbody td:nth-child(3)"
    button = tab.locator("#reconstruction thead th:nth-child(3) button")
    errors = list(tiny_runs.analysis().numbers["reconstruction"]["layers"].values())
    read = f"[...document.querySelectorAll('{column}')].map((cell) => Number(cell.dataset.value))"
    assert tab.evaluate(read) == errors
    button.click()
    assert tab.evaluate(read) == sorted(errors, reverse=True)
    button.focus()
    tab.keyboard.press("Enter")
    assert tab.evaluate(read) == sorted(errors)
    assert tab.locator("#reconstruction thead th:nth-child(3)").get_attribute("aria-sort") == "ascending"
    tab.close()
