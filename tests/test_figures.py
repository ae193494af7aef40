"""Laws of the figure helper: nothing plotted is lost, and everybody can tell the colours apart."""

import base64
import csv
import io
import itertools
import struct
import types
import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from rederive_book import figures

CURVES = ("theory", "measured", "rejected", "second", "third", "fourth", "fifth")
# Machado, Oliveira & Fernandes (2009), severity 1, acting on linear RGB.
SIGHT = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
         [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
         [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
         [0.004733, 0.691367, 0.303900]]
    ),
}  # fmt: skip


def linear(colour):
    rgb = np.array(matplotlib.colors.to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast(a, b):
    """Contrast ratio of two colours as the web accessibility guidelines define it."""
    high, low = sorted((linear(c) @ [0.2126, 0.7152, 0.0722] for c in (a, b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def lab(rgb):
    """CIE L*a*b* of linear RGB under D65."""
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    ratio = to_xyz @ np.clip(rgb, 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.fixture
def figure():
    figures.use_style()
    fig, ax = plt.subplots()
    ax.plot([0, 1], [1, 3], **figures.STYLES["theory"])
    yield fig
    plt.close(fig)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_floats_survive_the_csv_bit_for_bit(values):
    rows = list(csv.reader(io.StringIO(figures.csv_text({"x": np.array(values)}))))
    assert [float(cell) for (cell,) in rows[1:]] == values


def test_columns_keep_order_types_and_their_own_length():
    text = figures.csv_text({"n": [1, 2], "y, z": [0.1], "who": ["a", 'b "c"'], "ok": [True]})
    rows = list(csv.reader(io.StringIO(text)))
    assert rows == [["n", "y, z", "who", "ok"], ["1", "0.1", "a", "True"], ["2", "", 'b "c"', ""]]


def test_nan_is_an_empty_cell():
    text = figures.csv_text({"x": [1.5, float("nan")], "n": [1, 2]})
    assert text == "x,n\n1.5,1\n,2\n"


@pytest.mark.parametrize(
    ("data", "word"),
    [
        ({}, "data"),
        ({"x": [np.inf]}, "finite"),
        ({"x": [[1.0], [2.0]]}, "one-dimensional"),
        ({"x": 3.0}, "one-dimensional"),
        ({"x": [1j]}, "real"),
        ({"x": np.array([None])}, "real"),
    ],
)
def test_columns_that_cannot_be_written_are_refused(data, word):
    with pytest.raises(ValueError, match=word):
        figures.csv_text(data)


@pytest.mark.parametrize("name", ["", "Upper", "a b", "a_b", "../a", "é"])
def test_names_are_plain(figure, name):
    with pytest.raises(ValueError, match="name"):
        figures.mime_bundle(figure, name, {"x": [1.0]})


def test_bundle_holds_one_picture_and_the_numbers(figure):
    bundle, metadata = figures.mime_bundle(figure, "a-1", {"x": [1.0, 2.0]})
    root = ElementTree.fromstring(bundle["image/svg+xml"])
    width = float(root.attrib["viewBox"].split()[2])
    assert width == pytest.approx(figure.get_figwidth() * 72)
    assert metadata["image/svg+xml"]["width"] == round(figure.get_figwidth() * 96)
    assert metadata["rederive_figure"] == {"name": "a-1", "csv": "x\n1.0\n2.0\n"}
    assert "text/html" not in bundle  # a second rendering would hide the picture


def test_a_power_of_ten_beside_an_axis_is_typeset_and_other_labels_are_plain():
    labels = []
    for scale in (1.0, 1e7):
        fig, axes = plt.subplots()
        axes.plot([0, 1], [0, scale])
        _, _ = figures.mime_bundle(fig, "scaled", {"x": [1.0]})
        labels.append(
            (axes.yaxis.get_offset_text().get_text(), axes.get_xticklabels()[1].get_text())
        )
        plt.close(fig)
    (none, plain), (power, still_plain) = labels
    assert none == ""
    assert "times" in power and "10^{7}" in power
    assert plain == still_plain and "$" not in plain


def test_a_picture_too_heavy_as_vectors_is_sent_as_pixels(figure):
    points = np.random.default_rng(1).standard_normal((2, 9000))
    figure.axes[0].plot(*points, ".")
    bundle, metadata = figures.mime_bundle(figure, "many", {"x": points[0]})
    assert sorted(bundle) == ["image/png", "text/plain"]
    png = base64.b64decode(bundle["image/png"])
    assert png.startswith(b"\x89PNG")
    pixels, _ = struct.unpack(">II", png[16:24])
    assert pixels == round(figure.get_figwidth() * figures.DPI)
    assert metadata["image/png"]["width"] == round(figure.get_figwidth() * 96)


def test_the_same_figure_gives_the_same_bytes(figure):
    assert figures.mime_bundle(figure, "a", {"x": [1.0]}) == figures.mime_bundle(
        figure, "a", {"x": [1.0]}
    )


def test_every_text_is_at_least_nine_points(figure):
    figure.axes[0].set(title="title", xlabel="x", ylabel="y")
    figure.axes[0].legend(["a"], title="legend")
    figure.draw_without_rendering()
    sizes = [
        text.get_fontsize()
        for text in figure.findobj(matplotlib.text.Text)
        if text.get_text().strip()
    ]
    assert len(sizes) > 8
    assert min(sizes) >= 9
    assert matplotlib.rcParams["legend.fontsize"] >= 9


def test_a_kernel_shows_the_figure_exactly_once():
    import nbformat
    from nbclient import NotebookClient

    code = (
        "from rederive_book import figures\nimport matplotlib.pyplot as plt\nfigures.use_style()\n"
        "fig, ax = plt.subplots()\nax.plot([0, 1])\nfigures.show(fig, 'once', {'y': [0, 1]})"
    )
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    NotebookClient(book, timeout=120, kernel_name="python3").execute()
    (output,) = book.cells[0].outputs
    assert output.output_type == "display_data"
    assert "image/svg+xml" in output.data
    assert output.metadata["rederive_figure"]["csv"] == "y\n0\n1\n"


def test_the_site_puts_the_link_behind_the_picture_and_leaves_other_outputs_alone():
    from docutils import nodes

    renderer = types.SimpleNamespace(render_image=lambda data: [nodes.image(uri="x.png")])
    figure = {"rederive_figure": {"name": "a", "csv": "x\n1\n"}}

    def handle(mime_type, metadata, inline=False):
        data = types.SimpleNamespace(mime_type=mime_type, output_metadata=metadata)
        return figures.FigureRenderer.handle_mime(renderer, data, inline)

    for mime_type in ("image/png", "image/svg+xml"):
        picture, link = handle(mime_type, figure)
        assert isinstance(picture, nodes.image)
    html = link.astext()
    assert 'class="rederive-download"' in html
    assert 'download="a.csv"' in html
    assert base64.b64decode(html.split("base64,")[1].split('"')[0]) == b"x\n1\n"
    assert handle("text/plain", figure) is None
    assert handle("image/png", {}) is None
    assert handle("image/png", figure, inline=True) is None


@pytest.mark.parametrize("name", [*CURVES, "ink"])
def test_curves_stand_out_from_the_card(name):
    # 3:1 is what the web accessibility guidelines ask of graphics, 4.5:1 of text
    needed = 4.5 if name == "ink" else 3.0
    assert contrast(figures.PALETTE[name], figures.PALETTE["face"]) >= needed


@pytest.mark.parametrize("sight", SIGHT)
def test_curves_are_told_apart_by_every_eye(sight):
    # a difference of 2.3 in L*a*b* is just noticeable side by side; ten is seen at a glance
    seen = {name: lab(SIGHT[sight] @ linear(figures.PALETTE[name])) for name in CURVES}
    for a, b in itertools.combinations(CURVES, 2):
        assert np.linalg.norm(seen[a] - seen[b]) > 10, (a, b)
