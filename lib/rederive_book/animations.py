"""Animations of tokens: scalable pictures that move by themselves, with a still beside them.

An animation is an SVG whose circles carry their own paths (SMIL), so that the browser plays it
without a plug-in, a video or a library. It travels in the metadata of the still that `show`
displays; on the site `rederive_book.figures.FigureRenderer` puts it behind the still, and the
script ``rederive-animations.js`` shows it, with a button that pauses it. Print, a reader without
scripts and one who asked for less motion see the still.

Tokens in three dimensions are drawn as seen from far away, those on the far side pale; tokens in
two dimensions as they lie in the plane.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np

from rederive_book import figures

__all__ = ["mime_bundle", "show", "sphere_view"]

SIZE = 300  # the side of one panel, in units of the SVG
RADIUS = 128.0
LIMIT = 2_000_000  # bytes
COLOURS = ("theory", "measured", "second", "third", "fourth", "fifth")


def sphere_view(tokens, elevation: float = 20.0, azimuth: float = 30.0) -> np.ndarray:
    """Horizontal and vertical position, and depth towards the reader, of points in space.

    Parameters
    ----------
    tokens : array-like (..., 3)
    elevation, azimuth : float
        Where the reader stands, in degrees above the equator and along it.

    Returns
    -------
    numpy.ndarray (..., 3)
        An orthogonal change of coordinates: right, up, and towards the reader.
    """
    e, a = math.radians(elevation), math.radians(azimuth)
    right = [-math.sin(a), math.cos(a), 0.0]
    up = [-math.sin(e) * math.cos(a), -math.sin(e) * math.sin(a), math.cos(e)]
    near = [math.cos(e) * math.cos(a), math.cos(e) * math.sin(a), math.sin(e)]
    return np.asarray(tokens, dtype=float) @ np.array([right, up, near]).T


def _paths(panels: Mapping[str, object], times: object, groups: object, view: tuple) -> tuple:
    """Panels as (title, projected frames), the times, and the group of every token; all checked."""
    times = np.asarray(times, dtype=float)
    if times.ndim != 1 or times.size < 2 or not (np.diff(times) > 0).all():
        raise ValueError(f"times: expected at least two increasing numbers, got {times!r}")
    if not isinstance(panels, Mapping) or not panels:
        raise ValueError(f"panels: expected a mapping of title to frames, got {panels!r}")
    projected = []
    for title, frames in panels.items():
        frames = np.asarray(frames, dtype=float)
        if frames.ndim != 3 or frames.shape[0] != times.size or frames.shape[2] not in (2, 3):
            raise ValueError(
                f"panels[{title!r}]: expected shape ({times.size}, n, 2 or 3), got {frames.shape}"
            )
        if not np.isfinite(frames).all():
            raise ValueError(f"panels[{title!r}]: expected finite numbers")
        if frames.shape[2] == 3:
            frames = sphere_view(frames, *view)
        else:
            frames = np.concatenate([frames, np.ones((*frames.shape[:2], 1))], axis=2)
        projected.append((str(title), frames))
    counts = {frames.shape[1] for _, frames in projected}
    if len(counts) != 1:
        raise ValueError(f"panels: expected equally many tokens in each, got {sorted(counts)}")
    (count,) = counts
    groups = np.zeros(count, dtype=int) if groups is None else np.asarray(groups)
    if groups.shape != (count,) or not np.issubdtype(groups.dtype, np.integer):
        raise ValueError(f"groups: expected {count} integers, got shape {groups.shape}")
    if groups.min() < 0 or groups.max() >= len(COLOURS):
        raise ValueError(f"groups: expected integers from 0 to {len(COLOURS) - 1}")
    return projected, times, groups


def _animate(attribute: str, values: np.ndarray, digits: int, seconds: float) -> str:
    """The element that moves one attribute, or nothing where it stands still."""
    texts = [f"{value:.{digits}f}" for value in values]
    if len(set(texts)) == 1:
        return ""
    return (
        f'<animate attributeName="{attribute}" dur="{seconds:g}s" repeatCount="indefinite" '
        f'values="{";".join(texts)}"/>'
    )


def _svg(projected: list, times: np.ndarray, groups: np.ndarray, seconds: float, name: str) -> str:
    face, ink, faint = (figures.PALETTE[key] for key in ("face", "ink", "faint"))
    width, height = SIZE * len(projected), SIZE + 44
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="animation {name}" font-family="DejaVu Sans, sans-serif" font-size="13">'
        f'<rect width="{width}" height="{height}" fill="{face}"/>'
    ]
    for column, (title, frames) in enumerate(projected):
        left = SIZE * column + SIZE / 2
        top = SIZE / 2 + 20
        parts.append(
            f'<text x="{left - RADIUS:.0f}" y="18" fill="{ink}">{_escaped(title)}</text>'
            f'<circle cx="{left:g}" cy="{top:g}" r="{RADIUS:g}" fill="none" stroke="{faint}"/>'
        )
        for token in range(frames.shape[1]):
            x = left + RADIUS * frames[:, token, 0]
            y = top - RADIUS * frames[:, token, 1]
            shade = np.where(frames[:, token, 2] >= 0, 1.0, 0.25)
            colour = figures.PALETTE[COLOURS[groups[token]]]
            parts.append(
                f'<circle cx="{x[0]:.1f}" cy="{y[0]:.1f}" r="4" fill="{colour}" '
                f'fill-opacity="{shade[0]:g}">'
                + _animate("cx", x, 1, seconds)
                + _animate("cy", y, 1, seconds)
                + _animate("fill-opacity", shade, 2, seconds)
                + "</circle>"
            )
    bar = width - 160
    parts.append(
        f'<text x="8" y="{height - 8}" fill="{ink}">t = {times[0]:g}</text>'
        f'<text x="{width - 8}" y="{height - 8}" fill="{ink}" text-anchor="end">'
        f"{times[-1]:g}</text>"
        f'<rect x="80" y="{height - 14}" width="{bar}" height="4" fill="{faint}"/>'
        f'<rect x="80" y="{height - 14}" width="0" height="4" fill="{ink}">'
        f'<animate attributeName="width" dur="{seconds:g}s" repeatCount="indefinite" '
        f'from="0" to="{bar}"/></rect></svg>'
    )
    return "".join(parts)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _still(projected: list, times: np.ndarray, groups: np.ndarray, moments: list[int]):
    """A row of snapshots for each panel."""
    rows, columns = len(projected), len(moments)
    fig, axes = plt.subplots(
        rows, columns, figsize=(figures.WIDTH, 0.3 + 1.95 * rows), squeeze=False
    )
    colours = np.array([figures.PALETTE[COLOURS[g]] for g in groups])
    for line, (row, (title, frames)) in enumerate(zip(axes, projected, strict=True)):
        for ax, moment in zip(row, moments, strict=True):
            x, y, depth = frames[moment].T
            ax.add_patch(plt.Circle((0, 0), 1, fill=False, color=figures.PALETTE["faint"]))
            ax.scatter(x, y, s=12, c=colours, alpha=np.where(depth >= 0, 1.0, 0.25), linewidths=0)
            ax.set(xlim=(-1.08, 1.08), ylim=(-1.08, 1.08), aspect="equal")
            ax.set_axis_off()
            if line == 0:
                ax.set_title(f"$t={times[moment]:.3g}$", loc="center")
        if rows > 1 or title:
            row[0].text(-1.08, -1.3, title, fontsize=9.5)
    return fig


def mime_bundle(
    panels: Mapping[str, object],
    times: object,
    name: str,
    *,
    groups: object = None,
    seconds: float = 8.0,
    view: tuple[float, float] = (20.0, 30.0),
    snapshots: int = 4,
) -> tuple[dict, dict]:
    """Return what `show` displays: the output's data by MIME type, and its metadata."""
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError(f"seconds: expected a positive number, got {seconds}")
    projected, times, groups = _paths(panels, times, groups, view)
    if not 2 <= snapshots <= times.size:
        raise ValueError(f"snapshots: expected from 2 to {times.size}, got {snapshots}")
    moments = [round(i * (times.size - 1) / (snapshots - 1)) for i in range(snapshots)]
    svg = _svg(projected, times, groups, seconds, name)
    if len(svg) > LIMIT:
        raise ValueError(f"panels: the animation has {len(svg)} bytes, more than {LIMIT}")
    columns: dict[str, list] = {"panel": [], "time": [], "token": []}
    place: dict[str, list] = {axis: [] for axis in "xyz"}
    for title, frames in panels.items():
        for moment in moments:
            for token, point in enumerate(np.asarray(frames, dtype=float)[moment]):
                columns["panel"].append(str(title))
                columns["time"].append(float(times[moment]))
                columns["token"].append(token)
                for axis, value in zip("xyz", [*point, math.nan], strict=False):
                    place[axis].append(float(value))
    fig = _still(projected, times, groups, moments)
    bundle, metadata = figures.mime_bundle(fig, name, columns | place)
    plt.close(fig)
    metadata[figures.METADATA_KEY]["svg"] = svg
    return bundle, metadata


def show(panels: Mapping[str, object], times: object, name: str, **options) -> None:
    """Display an animation of tokens, with a still of it and the numbers of the still.

    Parameters
    ----------
    panels : mapping of str to array-like (F, n, 2) or (F, n, 3)
        Title to frames, drawn side by side: tokens on the circle or the sphere of radius one.
    times : array-like (F,)
        The time of each frame, increasing and evenly spaced if time is to run evenly.
    name : str
        Letters a–z, digits and hyphens; names the CSV file.
    groups : array-like of int (n,), optional
        The colour of each token, 0 to 5.
    seconds : float, optional
        How long one pass takes.
    view : (float, float), optional
        Elevation and azimuth of the reader in degrees, for tokens in space.
    snapshots : int, optional
        How many moments the still shows, the first and the last among them.

    Raises
    ------
    ValueError
        For shapes that do not fit together, numbers that are not finite, or an animation of more
        than two million bytes.
    """
    from IPython.display import display

    bundle, metadata = mime_bundle(panels, times, name, **options)
    display(bundle, raw=True, metadata=metadata)
