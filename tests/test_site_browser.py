"""What the built site keeps in a real browser: quiet, light, steady, reachable, on every screen.

The site is the one in ``_build/html``; `make check-site` looks at every page of it and fails where
there is no site or no browser. Otherwise some pages stand for all, and what is missing is told.
"""

import gzip
import os
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import browser
import pytest
from browser import visit

from rederive_book import chromium as installed

chromium = browser.chromium

ROOT = Path(__file__).parents[1]
SITE = ROOT / "_build" / "html"
REQUIRED = os.environ.get("CHECK_SITE") == "1"
SOME = (
    "chapters/index.html",
    "chapters/notation.html",
    "chapters/claims.html",
    "chapters/pooling/thresholds.html",
    "chapters/flow/settling.html",
    "chapters/hi/regression.html",
)
#: Pages with all that can have the focus: menu and buttons, map and cards, folds and notebooks.
BY_KEYBOARD = (
    "chapters/index.html",
    "chapters/pooling/index.html",
    "chapters/pooling/downstream.html",
)
PHONE, DESKTOP = (360, 740), (1440, 900)
MOST_BYTES = 250_000
MOST_SHIFT = 0.1
#: Loaded once for the whole site, and not counted: MathJax, fonts, the theme's icons.
BESIDE = ("_static/mathjax/", "_static/vendor/", "_static/scripts/fontawesome.js")
#: What may be wider than a phone and scrolls by itself.
WIDE = (
    "div.math, span.math, mjx-container, pre, div.highlight, table, "
    ".pst-scrollable-table-container, .rederive-map-box, .output, .rederive-statement, "
    ".rederive-wide, .rederive-animation"
)
#: Findings of axe that are the theme's own: rule, part of the selector, reason.
THEMES_OWN = (
    (
        "aria-required-children",
        ".citation-list",
        "docutils gives citations the role doc-biblioentry, which axe does not take for list items",
    ),
)

WATCH = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    if (!entry.hadRecentInput) {
      const names = entry.sources.map(({ node }) => node?.id || node?.className || node?.nodeName);
      window.shifts.push([entry.startTime, entry.value, String(names[0])]);
    }
  }
}).observe({ type: "layout-shift", buffered: true });
"""
SETTLED = """async () => {
  await window.MathJax?.startup?.promise;
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 200)));
}"""
# Boxes that scroll sideways, and what sticks out of the window where nothing scrolls.
SIDEWAYS = """(wide) => {
  const width = document.documentElement.clientWidth;
  const found = [];
  const root = document.scrollingElement;
  if (root.scrollWidth > width) {
    found.push(`the page is ${root.scrollWidth} wide`);
  }
  for (const element of document.querySelectorAll("main, main *")) {
    const style = getComputedStyle(element);
    const scrolls = ["auto", "scroll"].includes(style.overflowX);
    if (element.closest(wide)) {
      continue;
    }
    const name = `${element.localName}.${element.getAttribute("class") || ""}`;
    if (scrolls && element.scrollWidth > element.clientWidth + 1) {
      found.push(`${name} scrolls`);
    }
    const { left, right, width: own } = element.getBoundingClientRect();
    const hidden = own < 2 || style.visibility === "hidden" || style.clipPath !== "none";
    if (!hidden && (right > width + 1 || left < -1)) {
      found.push(`${name} reaches from ${Math.round(left)} to ${Math.round(right)}`);
    }
  }
  return found.slice(0, 6);
}"""
# Formulas that are set twice, or that go on beyond their box without a mark, and their sizes beside
# the text.
FORMULAS = """() => {
  const boxes = [...document.querySelectorAll("main span.math, main div.math > mjx-container")];
  const goesOn = (box) => box.clientWidth && box.scrollWidth > box.clientWidth + 2;
  const size = (element) => parseFloat(getComputedStyle(element).fontSize);
  const set = [...document.querySelectorAll("main .math > mjx-container")];
  const sizes = set.map((box) => (size(box) / size(box.parentElement)).toFixed(2));
  return {
    twice: document.querySelectorAll("mjx-container mjx-container").length,
    unmarked: boxes.filter((box) => goesOn(box) && !box.matches(".rederive-goes-on")).length,
    sizes: [...new Set(sizes)],
  };
}"""
AXE = """async (rules) => {
  const options = { preload: false, resultTypes: ["violations"] };
  if (rules) {
    options.runOnly = { type: "rule", values: rules };
  }
  const { violations } = await axe.run(document, options);
  return violations
    .filter(({ impact }) => ["serious", "critical"].includes(impact))
    .flatMap(({ id, nodes }) => nodes.map((node) => [id, node.target.join(" "), node.html]));
}"""
# The element that has the focus, whether that can be seen, and where the focus may go at all.
FOCUS = """() => {
  const element = document.activeElement;
  if (!element || element === document.body) {
    return null;
  }
  window.reached = (window.reached || new Set()).add(element);
  const parts = [element, ...element.querySelectorAll("rect, path, span")];
  const marked = parts.some((part) => {
    const style = getComputedStyle(part);
    return (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0)
      || style.boxShadow !== "none"
      || (part.matches("svg *") && parseFloat(style.strokeWidth) >= 3);
  });
  const seen = parts.some((part) => {
    const box = part.getBoundingClientRect();
    return box.width > 0 && box.height > 0;
  });
  return { marked, seen, name: element.outerHTML.slice(0, 120) };
}"""
MISSED = """() => [...document.querySelectorAll(
  "a[href], button:not([disabled]), input:not([disabled], [type=radio]), select, summary"
)].filter((element) => element.checkVisibility({ visibilityProperty: true })
  && element.tabIndex >= 0 && !window.reached.has(element)
).map((element) => element.outerHTML.slice(0, 120))"""


def pages():
    """Addresses of the pages to look at, relative to the site."""
    if not (SITE / "index.html").is_file():
        return []
    texts = sorted((SITE / "chapters").rglob("*.html"))
    every = [path.relative_to(SITE).as_posix() for path in texts]
    return [*every, "search.html"] if REQUIRED else [page for page in SOME if page in every]


PAGES = pages()


@pytest.fixture(scope="module")
def site(request):
    """Fails, or tells why nothing is looked at."""
    missing = installed.missing() if PAGES else "there is none in _build/html"
    line = f"the built site was not looked at in a browser: {missing}"
    if missing and REQUIRED:
        pytest.fail(line)
    if not PAGES:
        browser.leave_out(request, line)
    return request.getfixturevalue("chromium")


@pytest.fixture(scope="module")
def phone(site):
    """What happened while a page was read on a phone, by page; each is opened once."""

    @cache
    def report(name):
        requests, failed = [], []
        with visit(site, size=PHONE) as page:
            page.add_init_script(WATCH)
            page.on("request", lambda request: requests.append(request.url))
            page.on("requestfailed", lambda request: failed.append(request.url))
            page.goto((SITE / name).as_uri())
            page.evaluate(SETTLED)
            first = list(requests)
            shifts = page.evaluate("window.shifts")
            sideways = page.evaluate(SIDEWAYS, WIDE)
            formulas = page.evaluate(FORMULAS)
            # Down to the end, so that whatever is loaded when it is reached is loaded now.
            page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
            page.wait_for_timeout(200)
            wrong = page.locator("mjx-merror").all_inner_texts()
        return {
            **{"first": first, "requests": requests, "failed": failed, "shifts": shifts},
            **{"sideways": sideways, "wrong": wrong, "formulas": formulas},
        }

    return report


def file_of(url):
    """The file of the site behind an address."""
    return Path(unquote(urlsplit(url).path))


def session_shift(shifts):
    """Cumulative layout shift as browsers report it: the worst window of five seconds."""
    worst = window = 0.0
    start = last = -1e9
    for time, value, _ in shifts:
        if time - last > 1000 or time - start > 5000:
            start, window = time, 0.0
        window, last = window + value, time
        worst = max(worst, window)
    return worst


def axe(page, rules=None):
    """Serious and critical findings that are not the theme's own."""
    import axe_playwright_python

    script = Path(axe_playwright_python.__file__).with_name("axe.min.js")
    if not page.evaluate("'axe' in window"):
        page.evaluate(script.read_text(encoding="utf-8"))
    found = page.evaluate(AXE, rules)
    return [
        finding
        for finding in found
        if not any(finding[0] == rule and part in finding[1] for rule, part, _ in THEMES_OWN)
    ]


def test_site_is_there_or_a_line_says_that_it_is_not(site):
    assert PAGES


@pytest.mark.parametrize("name", PAGES)
def test_page_loads_everything_from_the_site_and_says_nothing_on_the_console(phone, name):
    report = phone(name)  # leaving the page asserts that the console is empty
    assert report["failed"] == []
    assert {urlsplit(url).scheme for url in report["requests"]} <= {"file", "data", "blob"}
    outside = [url for url in report["requests"] if url.startswith("file:")]
    assert all(file_of(url).is_relative_to(SITE) for url in outside)
    assert report["wrong"] == []


@pytest.mark.parametrize("name", PAGES)
def test_page_does_not_scroll_sideways_on_a_phone(phone, name):
    assert phone(name)["sideways"] == []


@pytest.mark.parametrize("name", PAGES)
def test_formulas_are_set_once_in_one_size_and_marked_where_they_go_on(phone, name):
    found = phone(name)["formulas"]
    assert found["twice"] == found["unmarked"] == 0
    assert found["sizes"] in ([], ["1.20"])


@pytest.mark.parametrize("name", PAGES)
def test_text_does_not_jump_while_a_page_loads(phone, name):
    shifts = phone(name)["shifts"]
    assert session_shift(shifts) <= MOST_SHIFT, sorted(shifts, key=lambda s: -s[1])[:3]


@pytest.mark.parametrize("name", PAGES)
def test_first_view_of_a_page_is_light(phone, name):
    urls = {url for url in phone(name)["first"] if url.startswith("file:")}
    files = {file_of(url) for url in urls}
    counted = {
        file.relative_to(SITE).as_posix(): len(gzip.compress(file.read_bytes(), 6))
        for file in files
        if not file.relative_to(SITE).as_posix().startswith(BESIDE)
    }
    assert sum(counted.values()) <= MOST_BYTES, sorted(counted.items(), key=lambda c: -c[1])[:5]


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious_in_the_light_and_no_faint_text_in_the_dark(site, name):
    with visit(site, size=DESKTOP) as page:
        # Formulas stay TeX, of the same colour: what MathJax makes of them is MathJax's, and a
        # page has thousands of its elements.
        page.route("**/_static/mathjax/*.js*", lambda route: route.fulfill(body=""))
        page.goto((SITE / name).as_uri())
        page.evaluate("document.documentElement.classList.add('rederive-set')")
        found = axe(page)
        page.evaluate("document.documentElement.dataset.theme = 'dark'")
        page.wait_for_timeout(300)
        found += [["in the dark", *finding] for finding in axe(page, ["color-contrast"])]
    assert found == []


@pytest.mark.parametrize("name", [page for page in PAGES if page in BY_KEYBOARD])
def test_keyboard_reaches_every_link_and_shows_where_it_is(site, name):
    with visit(site, size=DESKTOP) as page:
        page.goto((SITE / name).as_uri())
        page.evaluate(SETTLED)
        faint = []
        for count in range(3000):
            page.keyboard.press("Tab")
            focus = page.evaluate(FOCUS)
            if count == 0:
                assert "Skip to main content" in page.evaluate("document.activeElement.innerText")
                assert focus["seen"]
            if focus is None:
                break
            if not (focus["marked"] and focus["seen"]):
                faint.append(focus["name"])
        assert page.evaluate(MISSED) == [], "the keyboard does not reach these"
        assert faint == [], "these have the focus and do not show it"


@pytest.mark.parametrize("name", PAGES[:1])
def test_skip_link_leads_past_the_menu(site, name):
    with visit(site, size=DESKTOP) as page:
        page.goto((SITE / name).as_uri())
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('main') !== null")
