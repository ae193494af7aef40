"""The map of claims: laws of its layout, and what a reader can do with the picture."""

import itertools
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_sphinx_ext import PAGES, Project, text_of

from rederive_book import claims, claims_map, layered, verdict_shapes
from rederive_book.claims_map import Box

CHAPTERS = Path(__file__).parents[1] / "chapters"
BOOK = claims.load(CHAPTERS)
SVG = "{http://www.w3.org/2000/svg}"
STATES = ("holds", "amended", "refuted", "open", None)


@st.composite
def graphs(draw):
    """Up to twelve nodes, each using some of those before it."""
    count = draw(st.integers(1, 12))
    return {
        node: draw(st.lists(st.integers(0, node - 1), unique=True)) if node else []
        for node in range(count)
    }


def size(node):
    return 10.0 + node if isinstance(node, int) else 10.0


# ---------------------------------------------------------------------------- layout


@given(graphs())
def test_every_node_has_one_place_and_every_arrow_leads_one_way(uses):
    layout = layered.arrange(uses, size, gap=3.0)
    layer = layout.layer_of()
    placed = [node for nodes in layout.layers for node in nodes]
    assert sorted(n for n in placed if isinstance(n, int)) == sorted(uses)
    assert len(placed) == len(set(placed)) == len(layout.across)
    assert sorted((way[0], way[-1]) for way in layout.arrows) == sorted(
        (used, node) for node in uses for used in uses[node]
    )
    for way in layout.arrows:
        assert [layer[step] for step in way] == list(range(layer[way[0]], layer[way[-1]] + 1))


@given(graphs())
def test_a_node_stands_one_layer_behind_the_farthest_of_what_it_uses(uses):
    layer = layered.arrange(uses, size, gap=3.0).layer_of()
    for node, used in uses.items():
        assert layer[node] == 1 + max((layer[u] for u in used), default=-1)


@given(graphs(), st.integers(1, 3))
def test_neighbours_keep_their_distance_and_bands_do_not_mix(uses, number):
    def band(node):
        return node % number

    layout = layered.arrange(uses, size, gap=3.0, band=band, between=20.0)
    for nodes in layout.layers:
        for a, b in itertools.pairwise(nodes):
            needed = [size(n) if isinstance(n, int) else 6.0 for n in (a, b)]
            assert layout.across[b] - layout.across[a] >= sum(needed) / 2 + 3.0 - 1e-9
    spans = []
    for part in range(number):
        inside = [n for n in uses if band(n) == part]
        if inside:
            spans.append(
                (
                    min(layout.across[n] - size(n) / 2 for n in inside),
                    max(layout.across[n] + size(n) / 2 for n in inside),
                )
            )
    assert all(b[0] - a[1] >= 20.0 - 1e-9 for a, b in itertools.pairwise(spans))
    assert all(-1e-9 <= low and high <= layout.extent + 1e-9 for low, high in spans)


def test_sweeps_untangle_what_can_be_drawn_without_a_crossing():
    # A ladder whose upper rungs are given in the wrong order.
    uses = {"a": [], "b": [], "c": [], "z": ["c"], "y": ["b"], "x": ["a"]}
    assert layered.crossings(layered.arrange(uses, lambda n: 10.0, gap=2.0)) == 0


def test_a_single_chain_is_a_straight_line():
    layout = layered.arrange({i: [i - 1] if i else [] for i in range(6)}, lambda n: 10.0, gap=2.0)
    assert {round(place, 9) for place in layout.across.values()} == {5.0}


def test_no_nodes_are_no_drawing():
    assert layered.arrange({}, size, gap=1.0).layers == ()
    assert claims_map.draw([], "map-none", "Nothing") == ""


# ---------------------------------------------------------------------------- picture


def boxes_of(folder=None):
    """The real claims, as the site would show them."""
    own = BOOK.values() if folder is None else BOOK.of_folder(folder)
    return [
        Box(
            id=claim.id,
            label=claim.label,
            title=claims_map.plain(claim.title),
            verdict=claim.verdict,
            uses=claim.uses,
            name="Theorem 1.1",
            address=f"page.html#{claim.label}",
            band="" if folder else claim.folder,
        )
        for claim in own
    ]


def drawn(boxes):
    return ET.fromstring(
        claims_map.draw(boxes, "map-demo", "Map").replace("<svg", f'<svg xmlns="{SVG[1:-1]}"', 1)
    )


@pytest.mark.parametrize("folder", [None, *BOOK.folders])
def test_every_claim_is_a_link_with_a_title_inside_the_picture(folder):
    boxes = boxes_of(folder)
    svg = drawn(boxes)
    width, height = float(svg.get("width")), float(svg.get("height"))
    links = svg.findall(f"{SVG}a")
    assert [link.get("href") for link in links] == [box.address for box in boxes]
    for link, box in zip(links, boxes, strict=True):
        assert link.find(f"{SVG}title").text == f"{box.title}: {box.verdict}, Theorem 1.1"
        frame = link.find(f"{SVG}rect")
        x, y, w, h = (float(frame.get(key)) for key in ("x", "y", "width", "height"))
        assert 0 <= x and x + w <= width and 0 <= y and y + h <= height
        for line in link.iter(f"{SVG}tspan"):
            assert y < float(line.get("y")) < y + h


@pytest.mark.parametrize("folder", [None, *BOOK.folders])
def test_no_two_boxes_touch(folder):
    places = []
    for link in drawn(boxes_of(folder)).findall(f"{SVG}a"):
        frame = link.find(f"{SVG}rect")
        places.append([float(frame.get(key)) for key in ("x", "y", "width", "height")])
    for i, (x, y, w, h) in enumerate(places):
        for u, v, s, t in places[:i]:
            assert x + w < u or u + s < x or y + h < v or v + t < y


@pytest.mark.parametrize("folder", [None, *BOOK.folders])
def test_no_arrow_runs_behind_a_box(folder):
    svg = drawn(boxes_of(folder))
    frames = []
    for link in svg.findall(f"{SVG}a"):
        frame = link.find(f"{SVG}rect")
        frames.append([float(frame.get(key)) for key in ("x", "y", "width", "height")])
    for arrow in svg.findall(f"{SVG}path[@data-to]"):
        for px, py in corners(arrow.get("d")):
            for x, y, w, h in frames:
                assert not (x + 0.2 < px < x + w - 0.2 and y + 0.2 < py < y + h - 0.2)


def corners(path):
    """Points all along a path of straight lines and cubic curves."""
    at, found = None, []
    for letter, numbers in re.findall(r"([MLC])([^MLC]*)", path):
        flat = [float(number) for number in numbers.split()]
        steps = [at, *zip(flat[::2], flat[1::2], strict=True)] if letter != "M" else []
        for t in [i / 16 for i in range(17)]:
            points = steps
            while len(points) > 1:
                points = [
                    ((1 - t) * a[0] + t * b[0], (1 - t) * a[1] + t * b[1])
                    for a, b in itertools.pairwise(points)
                ]
            found += points
        at = (flat[-2], flat[-1])
    return found


def test_the_arrows_are_the_uses_and_no_others():
    boxes = boxes_of()
    arrows = [
        (p.get("data-from"), p.get("data-to")) for p in drawn(boxes).findall(f"{SVG}path[@data-to]")
    ]
    assert sorted(arrows) == sorted((used, c.id) for c in BOOK.values() for used in c.uses)


def test_verdicts_are_told_apart_without_colour():
    boxes = [Box(str(v), f"x-{v}", "A title", v) for v in STATES]
    svg = drawn(boxes)
    groups = svg.findall(f"{SVG}g")
    signs = [group.find(f"{SVG}text/{SVG}tspan").text.split()[0] for group in groups]
    assert len(set(signs)) == len(STATES)
    fills = [group.findall(f"{SVG}rect")[1].get("fill") for group in groups]
    patterns = {
        p.get("id"): ET.tostring(p[0]) if len(p) else b"" for p in svg.iter(f"{SVG}pattern")
    }
    assert len({patterns[fill[5:-1]] for fill in fills}) == len(STATES)
    assert svg.findall(f"{SVG}a") == []  # without an address there is no link


def test_the_legend_names_the_verdicts_that_there_are():
    shown = text_of(verdict_shapes.legend({"refuted": 1, "holds": 2, "open": 0}, "map-demo"))
    assert shown == "✓ holds (2) ✗ refuted (1)"


def test_the_narrower_way_is_taken():
    wide = [Box("root", "root", "Root", "holds")]
    wide += [Box(f"n{i}", f"n{i}", "Leaf", "holds", ("root",)) for i in range(9)]
    deep = [Box(f"n{i}", f"n{i}", "Step", "holds", (f"n{i - 1}",) if i else ()) for i in range(9)]
    for boxes in (wide, deep):
        svg = drawn(boxes)
        assert float(svg.get("width")) < float(svg.get("height"))


def test_titles_are_shown_in_plain_letters():
    assert claims_map.plain("A base with $x^2$ and *more*") == "A base with x^2 and more"
    (group,) = drawn([Box("a", "a", "less < more & <b>", None)]).findall(f"{SVG}g")
    assert "less < more & <b>" in group.find(f"{SVG}title").text


# ---------------------------------------------------------------------------- directive


@pytest.fixture
def project(tmp_path):
    made = Project(tmp_path)
    made.write("index.md", PAGES["index"].replace("results", "results\nmap"))
    made.write("map.md", "# Map\n\n```{claims-map}\n```\n")
    return made


def test_a_box_leads_to_its_theorem_under_its_number(project):
    html = project.build()["map"]
    boxes = re.findall(r'<a href="([^"]*)" class="rederive-box[^>]*>(.*?)</a>', html, re.DOTALL)
    assert [address for address, _ in boxes] == [
        f"chapters/demo/one.html#demo-{name}" for name in ("base", "false", "top")
    ]
    assert re.search(r"<title>A base with x\^2: amended, Theorem 1\.\d</title>", boxes[0][1])


def test_a_claim_whose_page_is_not_built_stays_a_box_without_a_link(project):
    html = project.build()["map"]
    assert re.search(r'<g class="rederive-box rederive-is-open" data-label="demo-far"', html)


def test_the_list_says_what_the_picture_says(project):
    html = project.build()["map"]
    folded = html.partition('<details class="rederive-map-list">')[2].partition("</details>")[0]
    shown = text_of(folded)
    assert re.search(
        r"A false one, Theorem 1\.\d ✗ refuted rests on "
        r"A base with \\\(x\^2\\\), Theorem 1\.\d ≈ amended",
        shown,
    )
    assert 'href="chapters/demo/one.html#demo-base"' in folded
    assert "On a page left out ? open" in shown


def test_the_map_follows_the_ledger(project):
    project.settle(base={"verdict": None, "untried": "left out", "checks": []})
    html = project.build()["map"]
    assert "A base with x^2: untried" in html and "– untried (1)" in text_of(html)


def test_the_map_of_a_chapter_shows_what_it_takes_from_others(project):
    project.write(
        "chapters/annex/claims.yml",
        "- id: annex.thing\n  title: In the annex\n  source: {paper: this-book}\n"
        "  statement: So.\n  verdict: holds\n  reading: plainly\n  uses: [demo.base]\n",
    )
    project.write("map.md", "# Map\n\n```{claims-map} annex\n```\n")
    html = project.build()["map"]
    assert re.findall(r'data-claim="([^"]*)"', html) == ["demo.base", "annex.thing"]
    assert "rederive-outside" in html and "other chapters" in html
    assert "✓ holds (1)" in text_of(html) and "≈ amended (1)" not in text_of(html)


def test_an_unknown_chapter_is_named(project):
    project.write("map.md", "# Map\n\n```{claims-map} nowhere\n```\n")
    project.build(warnings=r"map\.md:3: .*no claims in chapter 'nowhere'")


def test_the_map_needs_no_script_and_keeps_its_place(project):
    html = project.build()["map"]
    svg = re.search(r"<svg width=\"(\d+)\" height=\"(\d+)\" viewBox=\"0 0 (\d+) (\d+)\"", html)
    assert svg[1] == svg[3] and svg[2] == svg[4]  # its size is known before anything else
    assert len(set(re.findall(r'id="(map-book-[^"]*)"', html))) == len(
        re.findall(r'id="(map-book-[^"]*)"', html)
    )
