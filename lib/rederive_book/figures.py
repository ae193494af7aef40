"""Figures of the book: one style, one palette, and the plotted numbers beside every picture.

A page calls `use_style` once, draws with matplotlib, and hands the finished figure to `show`
together with the numbers that it plots. The picture is displayed exactly once, so the caption in
the cell's ``mystnb.figure`` metadata applies to it; the numbers travel as CSV in the metadata of
the same output (key ``rederive_figure``). On the site `FigureRenderer` turns them into a small
download link between picture and caption. A figure cell displays nothing else.

Conventions: a theory is a line, a measurement points with bars, a rejected prediction a dashed
grey line (`STYLES`).
"""

from __future__ import annotations

import base64
import csv
import gzip
import io
import math
import numbers
import re

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

__all__ = ["PALETTE", "STYLES", "FigureRenderer", "csv_text", "mime_bundle", "show", "use_style"]

METADATA_KEY = "rederive_figure"
WIDTH = 7.0  # inches; at 96 CSS pixels to the inch this is the width of the text column
DPI = 200  # of pictures that are sent as pixels
HEAVIEST = 60_000  # bytes of a compressed vector picture: what pixels of that size take

#: Named colours, after Okabe and Ito, darkened where needed to stand out from the off-white card.
PALETTE = {
    "theory": "#0072B2",  # blue: what is derived
    "measured": "#D04A00",  # vermilion: what is measured
    "rejected": "#858585",  # grey: what is put on trial and does not hold
    "second": "#006B4E",  # green: a second curve or sample
    "third": "#A13C78",  # purple: a third
    "fourth": "#5C2E00",  # brown: a fourth
    "fifth": "#3A8FC4",  # sky: a fifth
    "ink": "#22262B",
    "faint": "#C9C6BF",
    "face": "#FBFAF6",
}

#: Keyword arguments for ``Axes.plot`` (theory, rejected) and ``Axes.errorbar`` (measured).
STYLES = {
    "theory": {"color": PALETTE["theory"], "linewidth": 1.8, "zorder": 2},
    "rejected": {
        "color": PALETTE["rejected"],
        "linewidth": 1.6,
        "linestyle": (0, (5, 3)),
        "zorder": 1.5,
    },
    "measured": {
        "color": PALETTE["measured"],
        "linestyle": "none",
        "marker": "o",
        "markersize": 4.5,
        "elinewidth": 1.2,
        "capsize": 2.5,
        "zorder": 3,
    },
}


def use_style() -> None:
    """Set matplotlib's defaults to the style of the book (fonts of 9 points and more)."""
    cycle = [PALETTE[k] for k in ("theory", "measured", "second", "third", "fourth", "fifth")]
    ink, face = PALETTE["ink"], PALETTE["face"]
    mpl.rcParams.update(
        {
            "figure.figsize": (WIDTH, 3.4),
            "figure.dpi": 100,
            "figure.facecolor": face,
            "figure.constrained_layout.use": True,
            "savefig.facecolor": face,
            "savefig.dpi": DPI,
            "axes.facecolor": face,
            "axes.edgecolor": ink,
            "axes.labelcolor": ink,
            "axes.linewidth": 0.6,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": 10.5,
            "axes.titlelocation": "left",
            "axes.labelsize": 10,
            "axes.prop_cycle": mpl.cycler(color=cycle),
            "font.size": 10,
            "font.family": "sans-serif",
            "font.sans-serif": ["DejaVu Sans"],
            "mathtext.fontset": "dejavusans",
            "text.color": ink,
            "xtick.color": ink,
            "ytick.color": ink,
            "xtick.labelsize": 9,
            "ytick.labelsize": 9,
            "xtick.major.width": 0.6,
            "ytick.major.width": 0.6,
            "legend.fontsize": 9,
            "legend.frameon": False,
            "lines.linewidth": 1.8,
            "grid.color": PALETTE["faint"],
            "grid.linewidth": 0.5,
        }
    )


def _column(name: str, values: object) -> list[str]:
    """Cells of one column: integers as such, floats with every digit, NaN empty, text as given."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"data[{name!r}]: expected a one-dimensional column, got {array.shape}")
    cells = []
    for value in array.tolist():
        if isinstance(value, str | bool | numbers.Integral):
            cells.append(str(value))
        elif isinstance(value, numbers.Real):
            if math.isinf(value):
                raise ValueError(f"data[{name!r}]: expected finite numbers or NaN, got {value}")
            cells.append("" if math.isnan(value) else repr(float(value)))
        else:
            kind = type(value).__name__
            raise ValueError(f"data[{name!r}]: expected real numbers or text, got {kind}")
    return cells


def csv_text(data: dict[str, object]) -> str:
    """Write columns as CSV.

    Parameters
    ----------
    data : dict of str to one-dimensional array-like
        The columns, in order. Their lengths may differ: short ones end in empty cells.

    Returns
    -------
    str
        A header line and one line a row. Floats are written so that reading them gives the same
        bits (up to 17 digits); NaN becomes an empty cell.

    Raises
    ------
    ValueError
        If there is no column, or one is not one-dimensional, infinite, or neither real nor text.
    """
    if not isinstance(data, dict) or not data:
        raise ValueError(f"data: expected a dict of at least one column, got {data!r}")
    columns = [_column(str(name), values) for name, values in data.items()]
    rows = max(len(column) for column in columns)
    columns = [column + [""] * (rows - len(column)) for column in columns]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([str(name) for name in data])
    writer.writerows(zip(*columns, strict=True))
    return buffer.getvalue()


def _download_link(name: str, text: str) -> str:
    encoded = base64.b64encode(text.encode("utf-8")).decode("ascii")
    return (
        f'<div class="rederive-download"><a download="{name}.csv" '
        f'href="data:text/csv;charset=utf-8;base64,{encoded}">data (CSV)</a></div>'
    )


def mime_bundle(fig: mpl.figure.Figure, name: str, data: dict[str, object]) -> tuple[dict, dict]:
    """Return what `show` displays: the output's data by MIME type, and its metadata."""
    if not re.fullmatch(r"[a-z0-9-]+", name):
        raise ValueError(f"name: expected letters a-z, digits and hyphens, got {name!r}")
    text = csv_text(data)
    mime_type, picture = _picture(fig, name)
    width = round(fig.get_figwidth() * 96)
    bundle = {mime_type: picture, "text/plain": f"figure {name}"}
    return bundle, {mime_type: {"width": width}, METADATA_KEY: {"name": name, "csv": text}}


def _picture(fig: mpl.figure.Figure, name: str) -> tuple[str, str]:
    """A figure as vectors, or as pixels where vectors would be heavy to send."""
    vectors, pixels = io.StringIO(), io.BytesIO()
    # The salt keeps names within the file the same from build to build.
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "path"}):
        fig.savefig(vectors, format="svg", metadata={"Date": None, "Creator": None})
        if _typeset_powers(fig):
            vectors = io.StringIO()
            fig.savefig(vectors, format="svg", metadata={"Date": None, "Creator": None})
    if len(gzip.compress(vectors.getvalue().encode("utf-8"))) <= HEAVIEST:
        return "image/svg+xml", vectors.getvalue()
    fig.savefig(pixels, format="png", dpi=DPI, metadata={"Software": None})
    return "image/png", base64.b64encode(pixels.getvalue()).decode("ascii")


def _typeset_powers(fig: mpl.figure.Figure) -> bool:
    """Have axes with a common power of ten write ×10⁵ for 1e5; whether there are any.

    Only these: to typeset every label of every axis takes longer than all else about a figure.
    """
    powers = [
        axis
        for axes in fig.axes
        for axis in (axes.xaxis, axes.yaxis)
        if "e" in axis.get_offset_text().get_text()
    ]
    for axis in powers:
        axis.get_major_formatter().set_useMathText(True)
    return bool(powers)


def show(fig: mpl.figure.Figure, name: str, data: dict[str, object]) -> None:
    """Display a figure once and keep the numbers that it plots beside it.

    Parameters
    ----------
    fig : matplotlib.figure.Figure
        The finished figure. It is closed, so that the notebook does not display it again.
    name : str
        Letters a–z, digits and hyphens; names the CSV file.
    data : dict of str to one-dimensional array-like
        The plotted columns, see `csv_text`.

    Raises
    ------
    ValueError
        For a name or column that cannot be written.
    """
    from IPython.display import display

    bundle, metadata = mime_bundle(fig, name, data)
    plt.close(fig)
    display(bundle, raw=True, metadata=metadata)


def _animation(svg: str) -> str:
    """The moving picture behind its still; shown, with a button, by ``rederive-animations.js``."""
    return f'<div class="rederive-animation" hidden>{svg}</div>'


class FigureRenderer:
    """Adds the download link, and the animation if there is one, to a figure's picture.

    MyST-NB finds it through the entry-point group ``myst_nb.mime_renderers``. Without it the
    picture is rendered all the same, without a link.
    """

    mime_priority_overrides = ()

    @staticmethod
    def handle_mime(renderer, data, inline):
        """Return the picture's nodes followed by the link, or None for any other output."""
        figure = data.output_metadata.get(METADATA_KEY)
        if inline or figure is None or data.mime_type not in ("image/svg+xml", "image/png"):
            return None
        from docutils import nodes

        behind = _animation(figure["svg"]) if "svg" in figure else ""
        behind += _download_link(figure["name"], figure["csv"])
        return [*renderer.render_image(data), nodes.raw("", behind, format="html")]
