"""Laws of the explorers: their scripts give the library's numbers, at once and on every screen."""

import itertools
import math

import browser
import numpy as np
import pytest
from browser import answers, scripts_of, visit
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from rederive import free_probability, product_curve
from rederive_book import explorer_free_product as free_product
from rederive_book import explorer_html, explorer_model, explorer_picture, explorers
from rederive_book import explorer_pooling_weights as pooling_weights

chromium = browser.chromium

NAMES = ("free-product", "pooling-weights")
LIMIT = 16.0  # milliseconds a move may take

CAPTION = "Moving a slider moves $q$.\n\nA second paragraph."
PAGE = "# Explorers\n\n" + "\n\n".join(
    f"{'<br>' * 200}\n\n```{{explorer}} {name}\n:name: try-{name}\n\n{CAPTION}\n```"
    for name in NAMES
)


def agree(found, expected):
    """Numbers agree to nine digits; zero, infinity, words and what is missing agree exactly."""
    if expected is None or isinstance(expected, str) or math.isinf(expected):
        assert found == expected
    else:
        assert abs(found - expected) <= 1e-9 * abs(expected), (found, expected)


def free_product_states():
    """Both ratios at and near their ends and near the hard edge, with all ends of the others."""
    ratios = (0.01, 0.5, 0.999, 1.0, 1.001, 10.0)
    others = [(0.0, 0.05, 1.0), (0.0, 1.0, 1.0), (10.0, 0.05, 64.0), (10.0, 64.0, 64.0)]
    others += [(1.3, 1.75, 16.0), (0.2, 0.3, 2.0)]
    for (delta, gamma), (theta, q, length) in itertools.product(
        itertools.product(ratios, ratios), others
    ):
        yield dict(delta=delta, gamma=gamma, theta=theta, q=q, T=length)
    rng = np.random.default_rng(7)
    for _ in range(200):
        delta, gamma = 10 ** rng.uniform(-2, 1, 2)
        length = float(rng.integers(1, 65))
        theta, q = rng.uniform(0, 10), rng.uniform(0.05, length)
        yield dict(delta=delta, gamma=gamma, theta=theta, q=q, T=length)
    for _, preset in free_product.EXPLORER.presets:
        yield dict(preset)


def pooling_states():
    """Every model, mask and length with the ends of what it uses."""
    base = pooling_weights.EXPLORER.state
    for mask, length in itertools.product(("strict", "diagonal"), (2, 3, 16, 63, 64)):
        uses = [dict(model="prefix", L=L) for L in sorted({1, 2, length // 2, length} - {0})]
        uses += [dict(model="decaying", rate=rate) for rate in (0.0, 0.05, 2.0, 8.0)]
        uses += [
            dict(model="chain", phi=phi)
            for phi in (-1.0, -0.98, -0.6, -0.02, 0.0, 0.02, 0.6, 0.98, 1.0)
        ]
        for use in uses:
            yield {**base, **use, "mask": mask, "T": length, "tau": 0.0}
    rng = np.random.default_rng(8)
    for _ in range(200):
        length = int(rng.integers(2, 65))
        yield dict(
            model=str(rng.choice(["prefix", "decaying", "chain"])),
            mask=str(rng.choice(["strict", "diagonal"])),
            T=length,
            L=int(rng.integers(1, length + 1)),
            phi=float(np.round(rng.uniform(-1, 1), 2)),
            rate=float(rng.uniform(0, 8)),
            tau=float(rng.choice([0.0, 8.0, rng.uniform(0, 8)])),
        )
    for _, preset in pooling_weights.EXPLORER.presets:
        yield dict(preset)


STATES = {"free-product": free_product_states, "pooling-weights": pooling_states}


@pytest.mark.parametrize("name", NAMES)
def test_the_scripts_give_the_numbers_of_the_library(chromium, name):
    states = list(STATES[name]())
    assert len(states) >= 300
    for control in explorers.find(name).controls:  # every end of every slider is among them
        if isinstance(control, explorer_model.Slider):
            values = {state[control.name] for state in states}
            assert {control.low, control.high} <= values, control.name
        else:
            assert {value for value, _ in control.options} == {s[control.name] for s in states}
    with scripts_of(chromium, f"{name}.math.js") as page:
        found = answers(page, name, "evaluate", [[state] for state in states])
    for state, numbers in zip(states, found, strict=True):
        expected = explorers.find(name).evaluate(state)
        assert numbers.keys() == expected.keys()
        for key, value in expected.items():
            try:
                agree(numbers[key], value)
            except AssertionError as error:
                raise AssertionError(f"{key} at {state}: {error}") from None


def test_the_density_is_that_of_the_library(chromium):
    pairs = list(itertools.product((0.01, 0.3, 0.999, 1.0, 1.001, 10.0), repeat=2))
    with scripts_of(chromium, "free-product.math.js") as page:
        found = answers(page, "free-product", "density", [[*pair, 33] for pair in pairs])
    for pair, curve in zip(pairs, found, strict=True):
        x, density = free_probability.FreeMPProduct(*pair).curve(33)
        for here, there in zip([*curve["x"], *curve["density"]], [*x, *density], strict=True):
            agree(here, there)


def test_the_critical_points_are_those_of_the_library(chromium):
    pairs = list(itertools.product((0.01, 0.3, 1.0, 1.001, 10.0), repeat=2))
    with scripts_of(chromium, "free-product.math.js") as page:
        found = answers(page, "free-product", "criticalPoints", pairs)
    for pair, points in zip(pairs, found, strict=True):
        least, _, most = product_curve.edge_points(*pair)
        agree(points["least"], least)
        agree(points["spike"], most)


def test_the_weights_are_those_of_the_library(chromium):
    states = list(pooling_states())
    with scripts_of(chromium, "pooling-weights.math.js") as page:
        found = answers(page, "pooling-weights", "weights", [[state] for state in states])
    for state, weights in zip(states, found, strict=True):
        for name, expected in pooling_weights.weights(state).items():
            # each has norm one; an entry is known as well as the whole vector
            assert np.abs(np.array(weights[name]) - expected).max() < 1e-9, (name, state)


def test_both_languages_write_numbers_alike(chromium):
    rng = np.random.default_rng(9)
    values = [0.0, 1.0, -1.0, 1.0625, 12.625, 0.5, 999.96, 99999.9, 1e5, 1e-3, 9.9996e-4, 1e300]
    values += [math.inf, -math.inf, 123456.5, -2.5e-7]
    values += [float(v) for v in rng.standard_normal(200) * 10.0 ** rng.integers(-8, 9, 200)]
    with scripts_of(chromium, "core.js") as page:
        found = page.evaluate("(all) => all.map(window.Rederive.core.numberText)", values)
        assert page.evaluate("window.Rederive.core.numberText(null)") == "none"
    assert found == [explorer_model.number_text(value) for value in values]
    assert explorer_model.number_text(None) == "none"


def test_both_languages_choose_the_same_ticks(chromium):
    rng = np.random.default_rng(10)
    ends = [float(v) for v in 10 ** rng.uniform(-3, 4, 60)]
    counts = [float(v) for v in rng.uniform(2, 9, 60)]
    with scripts_of(chromium, "plot.js") as page:
        found = page.evaluate(
            "([ends, counts]) => ends.map((end, i) =>"
            " [window.Rederive.plot.ticks(0, end, counts[i]), window.Rederive.plot.roundUp(end)])",
            [ends, counts],
        )
    for end, count, (ticks, rounded) in zip(ends, counts, found, strict=True):
        assert np.allclose(ticks, explorer_picture.ticks(0, end, count), rtol=1e-12, atol=0)
        assert rounded == pytest.approx(explorer_picture.round_up(end), rel=1e-12)
        assert len(ticks) <= count + 1 and end <= rounded * (1 + 1e-9) <= 1.5 * end


# --- on a page -------------------------------------------------------------------------------


def built(root, text=PAGE):
    """A page with the explorers, built by Sphinx with every warning an error."""
    source = root / "source"
    source.mkdir(parents=True)
    (source / "index.md").write_text(text, encoding="utf-8")
    with patch_docutils(source), docutils_namespace():
        app = Sphinx(
            str(source),
            None,
            str(root / "html"),
            str(root / "doctrees"),
            "html",
            confoverrides={
                "extensions": ["myst_parser", "rederive_book.mathjax", "rederive_book.explorers"],
                "myst_enable_extensions": ["dollarmath"],
                "html_static_path": [str(explorers.SCRIPTS.parent)],
                "html_theme": "basic",
                "project": "P",
                "numfig": True,
            },
            status=None,
            warningiserror=True,
        )
        app.build()
    return root / "html" / "index.html"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return built(tmp_path_factory.mktemp("explorers"))


def reach(page, name):
    """Scroll to an explorer and wait until it is awake."""
    root = page.locator(f'.rx[data-explorer="{name}"]')
    root.scroll_into_view_if_needed()
    page.wait_for_selector(f'.rx[data-explorer="{name}"][data-awake]')
    return root


def table(root):
    cells = root.locator("[data-number]")
    return cells.evaluate_all("(all) => all.map((c) => [c.dataset.number, c.textContent])")


def expected_table(name, state):
    numbers = explorers.find(name).evaluate(state)
    rows = explorers.find(name).numbers
    return [[row.key, explorer_model.number_text(numbers[row.key])] for row in rows]


@pytest.mark.parametrize("name", NAMES)
def test_without_scripts_the_picture_and_the_numbers_stand(chromium, site, name):
    with visit(chromium, site, scripts=False) as page:
        root = page.locator(f'.rx[data-explorer="{name}"]')
        assert root.locator(".rx-stage svg").is_visible()
        assert not root.locator("input").first.is_visible()
        assert not root.locator("button").first.is_visible()
        assert table(root) == expected_table(name, explorers.find(name).state)


def test_scripts_come_when_the_explorer_is_reached(chromium, site):
    with visit(chromium, site) as page:
        page.wait_for_load_state("load")
        page.wait_for_timeout(300)
        assert page.evaluate("window.Rederive === undefined")
        reach(page, "free-product")
        assert page.evaluate("Object.keys(window.Rederive.explorers)") == ["free-product"]
        reach(page, "pooling-weights")


@pytest.mark.parametrize("width", [360, 800, 1440])
@pytest.mark.parametrize("name", NAMES)
def test_waking_up_moves_nothing_and_changes_no_number(chromium, site, name, width):
    with visit(chromium, site, size=(width, 800)) as page:
        root = page.locator(f'.rx[data-explorer="{name}"]')
        before = root.evaluate("(root) => root.getBoundingClientRect().height")
        reach(page, name)
        page.wait_for_timeout(100)
        assert root.evaluate("(root) => root.getBoundingClientRect().height") == before
        assert root.locator(".rx-stage > svg").count() == 1
        assert table(root) == expected_table(name, explorers.find(name).state)
        overhang = """(root) => [...root.querySelectorAll(":scope, :scope *:not(svg *)")].filter(
            (e) => e.getBoundingClientRect().right
              > root.closest("figure").parentElement.getBoundingClientRect().right + 0.5
          ).map((e) => e.outerHTML)"""
        assert root.evaluate(overhang) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_preset_shows_the_numbers_of_the_library(chromium, site, name):
    explorer = explorers.find(name)
    with visit(chromium, site) as page:
        root = reach(page, name)
        for words, state in explorer.presets:
            root.get_by_role("button", name=words, exact=True).click()
            page.wait_for_function("new Promise((f) => requestAnimationFrame(() => f(true)))")
            assert table(root) == expected_table(name, {**explorer.state, **state}), words


@pytest.mark.parametrize("name", NAMES)
def test_the_keyboard_moves_every_slider_to_its_ends(chromium, site, name):
    explorer = explorers.find(name)
    with visit(chromium, site) as page:
        root = reach(page, name)
        state = explorer.state
        for control in explorer.controls:
            if not isinstance(control, explorer_model.Slider):
                continue
            slider = root.locator(f'input[data-control="{control.name}"]')
            for key, end in (("Home", control.low), ("End", control.high)):
                slider.focus()
                page.keyboard.press(key)
                state[control.name] = min(end, state[control.most]) if control.most else end
                for other in explorer.controls:  # another that may not exceed this one
                    if getattr(other, "most", "") == control.name:
                        state[other.name] = min(state[other.name], end)
                assert page.evaluate(
                    "(name) => ({...document.querySelector("
                    '`.rx[data-explorer="${name}"]`).explorer.state})',
                    name,
                ) == pytest.approx(state)
                page.wait_for_function("new Promise((f) => requestAnimationFrame(() => f(true)))")
                assert table(root) == expected_table(name, state), (control.name, key)


def test_a_ratio_can_be_put_at_one(chromium, site):
    with visit(chromium, site) as page:
        root = reach(page, "free-product")
        for control in ("delta", "gamma"):
            slider = root.locator(f'input[data-control="{control}"]')
            slider.fill("0")
            assert root.evaluate("(root, key) => root.explorer.state[key]", control) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_move_answers_within_a_frame(chromium, site, name):
    explorer = explorers.find(name)
    sliders = [c for c in explorer.controls if isinstance(c, explorer_model.Slider)]
    moves = [
        {slider.name: slider.low + share * (slider.high - slider.low)}
        for slider in sliders
        for share in np.linspace(0, 1, 12).tolist()
    ]
    whole = {s.name for s in sliders if s.step == 1 and s.scale == "linear"}
    moves = [{k: float(round(v)) if k in whole else v for k, v in m.items()} for m in moves]
    with visit(chromium, site) as page:
        root = reach(page, name)
        times = root.evaluate(
            "(root, rounds) => rounds.map((moves) => moves.map((move) => {"
            " const start = performance.now(); root.explorer.set(move); root.explorer.draw();"
            " document.body.getBoundingClientRect(); return performance.now() - start; }))",
            [moves] * 9,
        )
    times = np.min(times, axis=0)  # of the same move: what else the machine does is left out
    print(f"{name}: {np.median(times):.2f} ms median, {max(times):.2f} ms at most")
    assert np.quantile(times, 0.9) < LIMIT


def test_the_dark_is_readable(chromium, site):
    """Letters and lines keep a contrast of 4.5 and 3 to the card, in light and dark."""
    read = """(root) => {
      const of = (k) => getComputedStyle(root).getPropertyValue(`--rx-${k}`).trim();
      return Object.fromEntries(["ink", "muted", "face", "theory", "measured", "second", "third",
        "fourth", "fifth", "rejected"].map((k) => [k, of(k)]));
    }"""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return np.dot([0.2126, 0.7152, 0.0722], linear)

    with visit(chromium, site) as page:
        for theme in ("light", "dark"):
            page.evaluate("(theme) => { document.documentElement.dataset.theme = theme; }", theme)
            colours = page.locator(".rx").first.evaluate(read)
            face = luminance(colours.pop("face"))
            for name, colour in colours.items():
                bright, dim = sorted((luminance(colour), face), reverse=True)
                least = 3 if name == "fifth" else 4.5  # the fifth colour writes no words
                assert (bright + 0.05) / (dim + 0.05) >= least, (theme, name)


def test_the_page_holds_a_numbered_figure_with_its_caption(site):
    text = site.read_text(encoding="utf-8")
    assert text.count('<figure class="rederive-explorer') == len(NAMES)
    assert 'id="try-free-product"' in text and "Fig. 2" in text
    assert text.count("A second paragraph.") == len(NAMES)
    assert "<script" not in text[text.index("<figure") : text.rindex("</figure>")]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("```{explorer} nothing-of-that-name\n\nC.\n```", "there is no explorer"),
        ("```{explorer} picture\n\nC.\n```", "there is no explorer"),
        ("```{explorer} ../core\n\nC.\n```", "there is no explorer"),
        ("```{explorer} free-product\n```", "no caption"),
        ("```{explorer} free-product\n\n- a list\n```", "starts with a paragraph"),
    ],
)
def test_mistakes_on_a_page_are_named(tmp_path, text, word):
    with pytest.raises(Exception, match=word):
        built(tmp_path, f"# P\n\n{text}\n")


@pytest.mark.parametrize("name", NAMES)
def test_the_settings_are_within_their_ends(name):
    explorer = explorers.find(name)
    assert (explorers.SCRIPTS / explorer.scripts[-1]).exists()
    assert explorer.name == name and {"", *(c.name for c in explorer.controls)} >= {
        getattr(c, "most", "") for c in explorer.controls
    }
    for state in (explorer.state, *(state for _, state in explorer.presets)):
        for control in explorer.controls:
            value = {**explorer.state, **state}[control.name]
            if isinstance(control, explorer_model.Slider):
                assert control.low <= value <= control.high
                places = [explorer_html.position(control, v) for v in (control.low, value)]
                steps = (places[1] - places[0]) / control.step
                assert control.scale == "log" or abs(steps - round(steps)) < 1e-6
            else:
                assert value in dict(control.options)
    assert {row.key for row in explorer.numbers} <= set(explorer.evaluate(explorer.state))
