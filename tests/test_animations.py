"""Laws of the animations: the picture moves where the tokens move, and stays light."""

import csv
import io
import re
import types
import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

from rederive_book import animations, figures

TIMES = np.linspace(0, 2, 5)
SVG = "{http://www.w3.org/2000/svg}"


def ring(frames=5, count=3):
    """Tokens that turn once around the equator."""
    angle = np.linspace(0, 2 * np.pi, frames)[:, None] + np.arange(count)
    return np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=-1)


def circles(svg):
    return [c for c in ElementTree.fromstring(svg).iter(f"{SVG}circle") if c.get("r") == "4"]


def test_the_view_is_a_change_of_orthonormal_coordinates():
    points = np.random.default_rng(1).standard_normal((7, 3))
    seen = animations.sphere_view(points, 17.0, 211.0)
    assert np.allclose(seen @ seen.T, points @ points.T)
    pole = animations.sphere_view([0, 0, 1.0], 90.0, 0.0)
    assert np.allclose(pole, [0, 0, 1])


def test_every_token_follows_its_frames():
    bundle, metadata = animations.mime_bundle({"a": ring()}, TIMES, "turn", view=(90.0, 0.0))
    drawn = circles(metadata["rederive_figure"]["svg"])
    assert len(drawn) == 3
    seen = animations.sphere_view(ring(), 90.0, 0.0)
    for token, circle in enumerate(drawn):
        moves = {a.get("attributeName"): a.get("values") for a in circle.iter(f"{SVG}animate")}
        x = [float(v) for v in moves["cx"].split(";")]
        expected = animations.SIZE / 2 + animations.RADIUS * seen[:, token, 0]
        assert np.allclose(x, expected, atol=0.05 + 1e-9)
    assert "<svg" in bundle["image/svg+xml"]  # the still


def test_the_far_side_is_pale():
    frames = np.array([[[1.0, 0, 0], [-1.0, 0, 0]]] * 5)
    _, metadata = animations.mime_bundle({"": frames}, TIMES, "sides", view=(0.0, 0.0))
    near, far = circles(metadata["rederive_figure"]["svg"])
    assert float(near.get("fill-opacity")) > 2 * float(far.get("fill-opacity"))
    assert not list(near.iter(f"{SVG}animate"))  # what stands still is not animated


def test_the_numbers_of_the_still_are_kept():
    panels = {"one": ring()[..., :2], "two & more": ring()[..., :2]}
    _, metadata = animations.mime_bundle(panels, TIMES, "b", snapshots=2)
    figure = metadata["rederive_figure"]
    rows = list(csv.DictReader(io.StringIO(figure["csv"])))
    assert {row["time"] for row in rows} == {"0.0", "2.0"}
    assert len(rows) == 2 * 2 * 3
    assert float(rows[1]["x"]) == ring()[0, 1, 0] and rows[1]["z"] == ""
    assert "two &amp; more" in figure["svg"]


def test_the_same_frames_give_the_same_bytes():
    assert animations.mime_bundle({"a": ring()}, TIMES, "c") == animations.mime_bundle(
        {"a": ring()}, TIMES, "c"
    )


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"panels": {}}, "panels"),
        ({"panels": {"a": ring()[0]}}, "panels"),
        ({"panels": {"a": ring() * np.nan}}, "finite"),
        ({"panels": {"a": ring(), "b": ring(count=4)}}, "equally many"),
        ({"times": [0.0]}, "times"),
        ({"times": TIMES[::-1]}, "times"),
        ({"groups": [0, 1]}, "groups"),
        ({"groups": [0, 1, 6]}, "groups"),
        ({"seconds": 0.0}, "seconds"),
        ({"snapshots": 9}, "snapshots"),
        ({"name": "No"}, "name"),
    ],
)
def test_bad_arguments_are_named(change, word):
    arguments = {"panels": {"a": ring()}, "times": TIMES, "name": "d"} | change
    with pytest.raises(ValueError, match=word):
        animations.mime_bundle(**arguments)


def test_an_animation_too_heavy_for_a_page_is_refused():
    frames = np.tile(ring(), (1, 1, 1))
    heavy = np.repeat(frames, 400, axis=1) + np.linspace(0, 1, 5)[:, None, None]
    many = np.repeat(heavy, 120, axis=0)
    with pytest.raises(ValueError, match="bytes"):
        animations.mime_bundle({"a": many}, np.arange(600.0), "e")


def test_the_site_hides_the_animation_until_its_script_shows_it():
    from docutils import nodes

    renderer = types.SimpleNamespace(render_image=lambda data: [nodes.image(uri="x.png")])
    figure = {"rederive_figure": {"name": "a", "csv": "x\n1\n", "svg": "<svg></svg>"}}
    data = types.SimpleNamespace(mime_type="image/png", output_metadata=figure)
    picture, behind = figures.FigureRenderer.handle_mime(renderer, data, False)
    assert isinstance(picture, nodes.image)
    assert re.search(r'<div class="rederive-animation" hidden><svg></svg></div>', behind.astext())
