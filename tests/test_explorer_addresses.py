"""What a reader set in an explorer stands in the address, and the address sets it again."""

import math

import browser
import pytest
from browser import scripts_of, visit
from test_explorers import built, expected_table, reach, table

from rederive_book import explorer_model, explorers

chromium = browser.chromium

NAMES = tuple(explorers.modules())
#: As on the pages: a plain anchor below, and one explorer whose figure has no name.
PAGE = "# Addresses\n\n" + "\n\n".join(
    f"{'<br>' * 80}\n\n```{{explorer}} {name}\n"
    + (f":name: explore-{name}\n\n" if name != "free-product" else "\n")
    + "Caption.\n```"
    for name in NAMES
)
PAGE += f"\n\n{'<br>' * 80}\n\n(plain)=\n\n## Plain\n\n{'<br>' * 80}\n"
STATE = "(root) => ({...root.explorer.state})"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return built(tmp_path_factory.mktemp("addresses"), PAGE)


def other_state(name):
    """A state that differs from the preset in every control that allows it."""
    state = {}
    for control in explorers.find(name).controls:
        if isinstance(control, explorer_model.Slider):
            far = control.low + 3 * control.step if control.scale == "linear" else 0.123
            state[control.name] = float(f"{far:.12g}")
        else:
            state[control.name] = control.options[-1][0]
    return state


def agree(found, expected):
    """The same controls; words are equal, and numbers to eleven digits."""
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        if isinstance(value, str):
            assert found[key] == value
        else:
            assert found[key] == pytest.approx(value, rel=1e-11), key


def settled(page):
    page.wait_for_function("new Promise((f) => requestAnimationFrame(() => f(true)))")


@pytest.mark.parametrize("name", NAMES)
def test_the_address_of_a_setting_gives_the_same_numbers(chromium, site, name):
    explorer, wanted = explorers.find(name), other_state(name)
    with visit(chromium, site, reduced_motion="reduce") as page:
        before = page.evaluate("history.length")
        root = reach(page, name)
        moved = []
        for key, value in wanted.items():
            for_one = f'[data-control="{key}"]'
            moved += [key] * (
                root.locator(for_one).first.is_enabled() and value != explorer.state[key]
            )
            if isinstance(value, str):
                root.locator(f'{for_one}[value="{value}"]').check()
            elif root.locator(for_one).is_enabled():
                control = next(c for c in explorer.controls if c.name == key)
                at = math.log10(value) if control.scale == "log" else value
                root.locator(for_one).evaluate(
                    "(input, at) => { input.value = at;"
                    " input.dispatchEvent(new Event('input', { bubbles: true })); }",
                    at,
                )
        settled(page)
        state, numbers = root.evaluate(STATE), table(root)
        page.wait_for_function("location.hash.includes('=')")
        address = page.url
        assert address.startswith(f"{site.as_uri()}#explorer-{name}:")
        assert page.evaluate("history.length") == before  # moving a slider leaves no way back
        assert all(state[key] != explorer.state[key] for key in moved)
    with visit(chromium, reduced_motion="reduce") as page:
        page.goto(address)
        page.wait_for_selector(f'.rx[data-explorer="{name}"][data-awake]')
        settled(page)
        root = page.locator(f'.rx[data-explorer="{name}"]')
        agree(root.evaluate(STATE), state)
        assert table(root) == numbers
        top = root.evaluate("(root) => root.getBoundingClientRect().top")
        assert -5 <= top <= 450  # on the screen
        assert page.url == address


def test_an_address_is_written_when_the_hand_rests_and_not_before(chromium, site):
    with visit(chromium, site) as page:
        root = reach(page, "free-product")
        page.evaluate(
            "() => { window.calls = 0; const replace = history.replaceState.bind(history);"
            " history.replaceState = (...all) => { window.calls += 1; replace(...all); }; }"
        )
        for value in range(12):
            root.evaluate("(root, theta) => root.explorer.set({ theta })", 1 + value / 20)
            page.wait_for_timeout(20)
        assert page.evaluate("window.calls") == 0
        page.wait_for_function("window.calls > 0")
        page.wait_for_timeout(500)
        assert page.evaluate("window.calls") == 1
        assert "theta=1.55" in page.url


WILD = [
    ("delta=NaN,gamma=,theta=none", {}),
    ("delta=Infinity,gamma=-Infinity,theta=1e999", {}),
    ("delta=99999,gamma=-3,theta=1e9", {"delta": 10.0, "gamma": 0.01, "theta": 10.0}),
    ("nothing=3,__proto__=4,constructor=5,toString=6", {}),
    ("q=50,T=2", {"q": 2.0, "T": 2.0}),
    ("T=3.7,theta=0.512", {"T": 4.0, "theta": 0.5}),
    ("theta=2=3,,=,;delta<script>alert(1)</script>", {}),
    ("theta=%3Cimg%20src=x%20onerror=alert(1)%3E", {}),
    ("delta=0.5,gamma=0.25" + ",x=1" * 2000, {}),
]


@pytest.mark.parametrize(("text", "changes"), WILD)
def test_wild_values_are_refused_quietly(chromium, site, text, changes):
    explorer = explorers.find("free-product")
    with visit(chromium) as page:  # leaving the page asserts that its console is empty
        page.goto(f"{site.as_uri()}#explorer-free-product:{text}")
        root = reach(page, "free-product")
        settled(page)
        state = {**explorer.state, **changes}
        agree(root.evaluate(STATE), state)
        assert table(root) == expected_table("free-product", state)


@pytest.mark.parametrize("end", ["#nowhere:delta=1", "#%E0%A4%A", "#:", "#plain:x", "#a:b:c=1"])
def test_addresses_that_call_no_explorer_do_nothing(chromium, site, end):
    with visit(chromium) as page:
        page.goto(site.as_uri() + end)
        page.wait_for_timeout(150)
        assert page.evaluate("window.scrollY") == 0
        assert page.evaluate("window.Rederive === undefined")


def test_words_that_are_no_choice_are_left_out(chromium, site):
    with visit(chromium) as page:
        page.goto(f"{site.as_uri()}#explore-pooling-weights:model=chain,mask=none,L=,phi=-0.6")
        root = reach(page, "pooling-weights")
        state = explorers.find("pooling-weights").state | {"model": "chain", "phi": -0.6}
        agree(root.evaluate(STATE), state)


def test_plain_anchors_and_new_addresses_work_on_an_open_page(chromium, site):
    with visit(chromium, site) as page:
        root = reach(page, "free-product")
        root.evaluate("(root) => root.explorer.set({ theta: 3 })")
        page.evaluate("location.hash = 'plain'")
        page.wait_for_timeout(600)
        assert page.url.endswith("#plain")  # what was about to be written is not
        page.evaluate("location.hash = 'explorer-free-product:theta=2,T=8'")
        page.wait_for_timeout(300)
        assert abs(root.evaluate("(root) => root.getBoundingClientRect().top")) < 300
        settled(page)
        assert root.evaluate(STATE)["theta"] == 2
        assert root.evaluate(STATE)["T"] == 8
        page.go_back()
        page.wait_for_timeout(100)
        assert page.url.endswith("#plain")


def test_what_is_written_is_read_again(chromium):
    """The two functions are inverse to each other on every preset of every explorer."""
    with scripts_of(chromium, "core.js") as page:
        for name in NAMES:
            explorer = explorers.find(name)
            sliders = (explorer_model.Slider,)
            controls = [
                {k: getattr(c, k) for k in ("name", "low", "high", "step", "scale")}
                if isinstance(c, sliders)
                else {"name": c.name}
                for c in explorer.controls
            ]
            words = {
                c.name: [value for value, _ in c.options]
                for c in explorer.controls
                if not isinstance(c, sliders)
            }
            for _, preset in (("", {}), *explorer.presets):
                state = {**explorer.state, **preset}
                found = page.evaluate(
                    "([controls, words, state]) => { const core = window.Rederive.core;"
                    " return core.fromAddress(controls, (key) => words[key],"
                    " core.toAddress(controls, state)); }",
                    [controls, words, state],
                )
                agree(found, state)
