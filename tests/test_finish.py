"""Laws of the last touch on the built pages: lighter, steady, and nothing lost."""

import base64
import json
import re

import pytest

from rederive_book import finish, icons

CSV = "x,y\n1.0,2.0\n"
SVG = '<svg viewBox="0 0 600 344"><circle r="4"><animate dur="8s"></animate></circle></svg>'


@pytest.fixture
def page(tmp_path):
    file = tmp_path / "chapters" / "flow" / "settling.html"
    file.parent.mkdir(parents=True)
    return file


def test_numbers_of_a_figure_lie_in_a_file_that_the_page_links_to(page, tmp_path):
    data = base64.b64encode(CSV.encode()).decode()
    text = f'<a download="energy.csv" href="data:text/csv;charset=utf-8;base64,{data}">data</a>'
    made = finish.numbers_in_files(text, page, tmp_path)
    address = re.search(r'href="([^"]+)"', made)[1]
    assert (page.parent / address).read_text(encoding="utf-8") == CSV
    assert 'download="energy.csv"' in made and "base64" not in made


@pytest.mark.parametrize("hidden", ["hidden", 'hidden=""'])
def test_animation_lies_in_a_script_and_leaves_its_place_behind(page, tmp_path, hidden):
    text = f'<p>a</p><div class="rederive-animation" {hidden}>{SVG}</div><p>b</p>'
    made = finish.animations_in_files(text, page, tmp_path)
    assert "<svg" not in made and "aspect-ratio: 600 / 344" in made
    key, address = re.search(r'data-animation="([^"]+)" data-script="([^"]+)"', made).groups()
    script = (page.parent / address).read_text(encoding="utf-8")
    assert f'window.rederiveAnimations["{key}"] = {json.dumps(SVG)};' in script
    assert made.startswith("<p>a</p>") and made.endswith("<p>b</p>")


def test_two_animations_of_a_page_have_different_names(page, tmp_path):
    holder = f'<div class="rederive-animation" hidden>{SVG}</div>'
    made = finish.animations_in_files(holder * 2, page, tmp_path)
    assert len(set(re.findall(r'data-animation="([^"]+)"', made))) == 2


def test_only_the_search_page_loads_the_index_of_the_search(page, tmp_path):
    head = "".join(
        f'<script src="../{name}"></script>'
        for name in ("_static/searchtools.js", "_static/language_data.js", "searchindex.js")
    )
    kept = '<script src="../_static/doctools.js"></script>'
    assert finish.finish_page(head + kept, page, tmp_path) == kept
    search = tmp_path / "search.html"
    assert finish.finish_page(head + kept, search, tmp_path) == head + kept


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_picture_keeps_its_place_before_it_is_loaded(page, kind):
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(7, 3))
    figure.savefig(page.parent / f"figure.{kind}", dpi=100)
    plt.close(figure)
    text = f'<img alt="a &gt; b" src="figure.{kind}" style="width: 672px;"/>'
    made = finish.steady_pictures(text, page)
    assert 'loading="lazy"' in made and 'width="672" height="288"' in made
    assert 'alt="a &gt; b"' in made
    assert finish.steady_pictures(made, page) == made


def test_missing_picture_and_picture_without_a_width_stay_as_they_are(page):
    for text in ('<img src="none.png" style="width: 5px;"/>', '<img src="none.png"/>'):
        assert finish.steady_pictures(text, page) == text


def test_folds_of_the_menu_have_names_and_other_folds_stay():
    menu = '<details><summary><span class="toctree-toggle"><i></i></span></summary></details>'
    assert "<summary aria-label=" in finish.named_toggles(menu)
    assert finish.named_toggles("<summary>Solution</summary>") == "<summary>Solution</summary>"


ICONS = (
    'var p={0:[320,512,[],"30","M0 0"],moon:[384,512,[127769,9214],"f186","M22"],'
    '"xmark":[384,512,["close","times"],"f00d",["M1","M2"]],"github":[496,512,[],"f09b","M16"]};go(p)'
)


def test_icons_in_use_stay_by_name_or_by_another_name():
    assert icons.subset(ICONS, {"moon"}) == (
        'var p={moon:[384,512,[127769,9214],"f186","M22"],};go(p)'
    )
    assert '"xmark"' in icons.subset(ICONS, {"times"})
    assert icons.subset(ICONS, {"0", "moon", "xmark", "github"}) == ICONS


def test_icons_are_named_by_pages_and_scripts():
    texts = ['<i class="fa-solid fa-moon"></i>', 'add("fas fa-xmark")']
    assert icons.named(texts) >= {"moon", "xmark"}


def test_script_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="icons: expected a table of icons"):
        icons.subset("var p=1", {"moon"})


def test_the_icon_script_of_the_installed_theme_shrinks_to_a_tenth():
    from importlib import resources

    theme = resources.files("pydata_sphinx_theme") / "theme" / "pydata_sphinx_theme" / "static"
    script = (theme / icons.SCRIPT).read_text(encoding="utf-8")
    assert len(icons.subset(script, {"moon", "sun", "bars"})) < len(script) / 10
