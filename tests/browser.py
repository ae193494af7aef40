"""A real browser for the tests: an installed Chromium, driven by Playwright.

A module whose tests need it says ``chromium = browser.chromium`` and asks for that fixture.
Where Playwright or a Chromium is missing the run prints one line that says so.
"""

import contextlib
from pathlib import Path

import pytest

from rederive_book import chromium as installed

STATIC = Path(__file__).parents[1] / "lib" / "rederive_book" / "static"

_told = []


def leave_out(request, line):
    """Print why tests are left out, once a run, and skip the one that asks."""
    if line not in _told:
        _told.append(line)
        plugins = request.config.pluginmanager
        with plugins.get_plugin("capturemanager").global_and_fixture_disabled():
            reporter = plugins.get_plugin("terminalreporter")
            reporter.ensure_newline()
            reporter.write_line(line)
    pytest.skip(line)


@pytest.fixture(scope="module")
def chromium(request):
    """The browser, started once a module; `visit` opens pages in it."""
    if missing := installed.missing():
        leave_out(request, f"tests in a real browser were left out: {missing}")
    with installed.browser() as started:
        yield started


@contextlib.contextmanager
def visit(browser, path=None, *, size=(800, 900), scripts=True, **context):
    """A page in a fresh context, which must close without an error on its console.

    Parameters
    ----------
    browser
        The fixture `chromium`.
    path : Path, optional
        A file to open; an empty page by default.
    size : (int, int)
        Width and height of the window.
    scripts : bool
        Whether scripts run.
    **context
        Further options of Playwright's ``new_context``, such as ``color_scheme``.
    """
    width, height = size
    inside = browser.new_context(
        viewport={"width": width, "height": height}, java_script_enabled=scripts, **context
    )
    errors = []
    try:
        page = inside.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
        if path is not None:
            page.goto(Path(path).as_uri())
        yield page
        assert errors == [], errors
    finally:
        inside.close()


@contextlib.contextmanager
def scripts_of(browser, *names):
    """An empty page with scripts of ``static/explorers``, to call their functions."""
    with visit(browser) as page:
        for name in names:
            page.add_script_tag(path=str(STATIC / "explorers" / name))
        yield page


def answers(page, explorer, function, arguments):
    """What a function of ``Rederive.explorers`` gives for each list of arguments."""
    call = "([name, f, all]) => all.map((one) => window.Rederive.explorers[name][f](...one))"
    return page.evaluate(call, [explorer, function, [list(one) for one in arguments]])
