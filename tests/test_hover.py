"""What a reader does with references, map and figures, in a real browser on a small site."""

import re

import pytest
from browser import chromium, visit  # noqa: F401
from test_sphinx_ext import PAGES, Project, tried

THEOREM = (
    "# Theorems\n\n```{prf:theorem} Title\n:label: demo-base\n\nLet $x^2=1$.\n```\n\n"
    "```{prf:theorem} Other\n:label: demo-false\n\nBy {prf:ref}`demo-base`.\n```\n\n"
    + "Text.\n\n"
    * 60
)
RESULTS = (
    "# Results\n\nSee {prf:ref}`demo-base` and [elsewhere](chapters/demo/one).\n\n"
    "```{claims-map}\n```\n"
)
POP = "#rederive-statement"
REFERENCE = "p a[href$='#demo-base']"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A site with a map, references, and a figure."""
    project = Project(tmp_path_factory.mktemp("site"))
    project.write("chapters/demo/one.md", THEOREM)
    project.write("results.md", RESULTS)
    project.write("index.md", PAGES["index"])
    tried(project)
    project.settle()
    project.build(
        extensions=[
            *("myst_nb", "sphinx_proof", "rederive_book.mathjax", "rederive_book.sphinx_ext"),
        ],
        source_suffix={".md": "myst-nb", ".ipynb": "myst-nb"},
        nb_execution_mode="off",
        myst_update_mathjax=True,
    )
    return project.out / "html"


@pytest.fixture
def results(chromium, site):  # noqa: F811
    with visit(chromium, site / "results.html") as page:
        yield page


def test_the_pointer_brings_the_statement_with_its_formula_typeset(results):
    results.hover(REFERENCE)
    results.wait_for_selector(f"{POP} mjx-container")
    shown = results.inner_text(POP)
    assert re.match(r"Theorem 1\.1 +Title", shown) and "\\(" not in shown
    assert results.get_attribute(REFERENCE, "aria-describedby") == POP[1:]
    assert results.get_attribute(POP, "role") == "tooltip"
    assert results.locator(f"{POP} a").count() == 0


def test_the_statement_stays_under_the_pointer_and_goes_with_it(results):
    results.hover(REFERENCE)
    results.wait_for_selector(POP, state="visible")
    results.hover(POP)
    results.wait_for_timeout(500)
    assert results.is_visible(POP)
    results.mouse.move(1, 1)
    results.wait_for_selector(POP, state="hidden")
    assert results.get_attribute(REFERENCE, "aria-describedby") is None


def test_the_keyboard_brings_it_and_escape_sends_it_away(results):
    results.focus("body")
    for _ in range(60):
        results.keyboard.press("Tab")
        if results.evaluate(f"document.activeElement.matches({REFERENCE!r})"):
            break
    results.wait_for_selector(POP, state="visible")
    results.keyboard.press("Escape")
    assert results.is_hidden(POP)
    results.keyboard.press("Enter")
    results.wait_for_url("**/one.html#demo-base")


def test_it_stays_within_the_window_and_moves_nothing(chromium, site):  # noqa: F811
    with visit(chromium, site / "results.html", size=(360, 640)) as page:
        before = page.evaluate("document.documentElement.scrollHeight")
        page.hover(REFERENCE)
        page.wait_for_selector(f"{POP} mjx-container")
        box = page.locator(POP).bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 360
        assert page.evaluate("document.documentElement.scrollHeight") == before


def test_a_statement_on_the_page_itself_is_shown_too(chromium, site):  # noqa: F811
    with visit(chromium, site / "chapters/demo/one.html") as page:
        assert page.locator("#rederive-statements").count() == 0
        page.hover("p a[href='#demo-base']")
        page.wait_for_selector(POP, state="visible")
        assert "Title" in page.inner_text(POP)
        assert page.locator("[id='demo-base']").count() == 1  # the copy has no anchor


def test_a_box_of_the_map_shows_its_statement_and_lights_its_arrows(results):
    results.hover("a.rederive-box[data-label='demo-base']")
    results.wait_for_selector(POP, state="visible")
    lit = results.locator(".rederive-arrow.rederive-lit")
    assert lit.evaluate_all("all => all.map((a) => a.dataset.to)") == ["demo.false"]
    label = results.get_attribute("a.rederive-box[data-label='demo-base']", "aria-label")
    assert label.startswith("A base with x^2: amended, Theorem 1.1")


def test_a_tap_follows_the_link_and_shows_nothing(chromium, site):  # noqa: F811
    with visit(chromium, site / "results.html", has_touch=True) as page:
        page.tap(REFERENCE)
        page.wait_for_url("**/one.html#demo-base")


def test_a_long_press_shows_the_statement_and_stays(chromium, site):  # noqa: F811
    with visit(chromium, site / "results.html", has_touch=True) as page:
        box = page.locator(REFERENCE).first.bounding_box()
        finger = {"x": box["x"] + 5, "y": box["y"] + 5}
        touch = page.context.new_cdp_session(page)
        touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [finger]})
        page.wait_for_selector(POP, state="visible")
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        page.wait_for_timeout(300)
        assert page.url.endswith("results.html") and page.is_visible(POP)
        page.tap("h1")
        page.wait_for_selector(POP, state="hidden")


def test_the_link_of_a_figure_opens_the_fold_of_its_code(chromium, site):  # noqa: F811
    with visit(chromium, site / "chapters/demo/one.html") as page:
        fold = page.locator("details:has(#code-demo)")
        assert fold.get_attribute("open") is None
        page.click("a.rederive-to-code")
        page.wait_for_selector("details[open] #code-demo")
        fold.evaluate("fold => { fold.open = false; }")
        page.click("a.rederive-to-code")  # the address does not change
        page.wait_for_selector("details[open] #code-demo")
        assert page.locator("#code-demo").bounding_box()["y"] < 900


def test_an_address_with_the_anchor_opens_the_fold(chromium, site):  # noqa: F811
    with visit(chromium) as page:
        page.goto((site / "chapters/demo/one.html").as_uri() + "#code-demo")
        page.wait_for_selector("details[open] #code-demo")


def test_without_scripts_the_map_is_there_with_titles_and_links(chromium, site):  # noqa: F811
    with visit(chromium, site / "results.html", scripts=False) as page:
        assert page.locator("a.rederive-box title").count() == 2
        frame = page.locator(".rederive-map-box")
        frame.evaluate("box => { box.style.width = '100px'; }")
        assert frame.evaluate("box => getComputedStyle(box).overflowX") == "auto"
        assert frame.evaluate("box => box.scrollWidth > box.clientWidth")
        page.click("a.rederive-box[data-label='demo-base']")
        page.wait_for_url("**/one.html#demo-base")
