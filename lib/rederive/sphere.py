"""The unit sphere S^{d−1}, on which tokens live.

Points are rows of a tensor (…, d) with norm 1. Tensors in, tensors out; dtype and device are kept.
The functions that make points take both and default to float64 on the CPU; whatever is random is
drawn there by NumPy and moved, so that every device sees the same numbers.
"""

import math

import numpy as np
import torch

from rederive import validation


def project(points, vectors):
    r"""Project vectors on the tangent spaces of the sphere.

    Parameters
    ----------
    points : torch.Tensor, shape (…, d)
        Points of norm 1.
    vectors : torch.Tensor, shape (…, d)
        Vectors of the surrounding space; leading axes broadcast.

    Returns
    -------
    torch.Tensor, shape (…, d)
        :math:`P_x u = u - \langle x, u\rangle x`.

    Raises
    ------
    ValueError
        If shapes, dtypes or devices do not fit, an entry is not finite, or a point is off the
        sphere.
    """
    points, vectors = _pair(points, vectors, "vectors")
    return _project(validation.on_sphere(points, "points"), vectors)


def retract(points):
    r"""Put vectors on the sphere by dividing by their norms.

    Parameters
    ----------
    points : torch.Tensor, shape (…, d)
        Vectors other than 0.

    Returns
    -------
    torch.Tensor, shape (…, d)
        :math:`x / |x|`, of norm 1 to rounding whatever the size of x.

    Raises
    ------
    ValueError
        If an entry is not finite or a vector is 0.
    """
    points = validation.tensor(points, "points", shape=(..., "d"))
    if validation.has_values(points) and not points.detach().ne(0).any(-1).all():
        validation.fail("points", "vectors other than 0", "a vector of zeros")
    return _retract(points / points.abs().amax(-1, keepdim=True))


def exponential(points, vectors):
    r"""Follow geodesics for unit time.

    Parameters
    ----------
    points : torch.Tensor, shape (…, d)
        Where to start, norm 1.
    vectors : torch.Tensor, shape (…, d)
        Tangent vectors: their part along the point is ignored.

    Returns
    -------
    torch.Tensor, shape (…, d)
        :math:`\cos(|u|)\,x + \frac{\sin|u|}{|u|}\,u` with the projected vector u.

    Raises
    ------
    ValueError
        As :func:`project`.
    """
    tangent = validation.squares_fit(project(points, vectors), "vectors")
    length = tangent.norm(dim=-1, keepdim=True)
    # torch.sinc(t) is sin(πt)/(πt), smooth at 0
    return _retract(length.cos() * points + torch.sinc(length / math.pi) * tangent)


def distance(first, second):
    r"""Geodesic distance, the angle between two points.

    Parameters
    ----------
    first, second : torch.Tensor, shape (…, d)
        Points of norm 1; leading axes broadcast.

    Returns
    -------
    torch.Tensor, shape (…)
        Angles in [0, π]: :math:`2\arctan2(|x-y|, |x+y|)`, right to rounding at both ends, where
        the arc cosine loses half the digits.

    Raises
    ------
    ValueError
        As :func:`project`.
    """
    first, second = _pair(first, second, "second", "first")
    validation.on_sphere(first, "first")
    validation.on_sphere(second, "second")
    return 2 * torch.atan2((first - second).norm(dim=-1), (first + second).norm(dim=-1))


def quasi_uniform(n, dim=3, *, dtype=torch.float64, device=None):
    r"""Points that are spread evenly over the sphere, the same every time.

    Parameters
    ----------
    n : int
        Number of points.
    dim : {2, 3}
        Dimension d of the space.
    dtype, device : torch.dtype and torch.device, optional
        Of the result.

    Returns
    -------
    torch.Tensor, shape (n, dim)
        The regular n-gon for d = 2. For d = 3 the Fibonacci points: heights
        :math:`1 - (2i+1)/n`, longitudes i times the golden angle :math:`\pi(3-\sqrt5)`.

    Raises
    ------
    ValueError
        If n is not a positive integer, or the dimension is another.
    """
    n = validation.integer(n, "n", minimum=1)
    dim = validation.one_of(dim, "dim", (2, 3))
    index = torch.arange(n, dtype=torch.float64)
    if dim == 2:
        angle = 2 * math.pi * index / n
        points = torch.stack([angle.cos(), angle.sin()], -1)
    else:
        angle = math.pi * (3 - 5**0.5) * index
        height = 1 - (2 * index + 1) / n
        radius = (1 - height.square()).sqrt()
        points = torch.stack([radius * angle.cos(), radius * angle.sin(), height], -1)
    return _placed(points, dtype, device)


def uniform(rng, n, dim=3, *, dtype=torch.float64, device=None):
    """Independent uniform points on the sphere.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the randomness comes from.
    n : int or tuple of int
        Number of points, or all leading axes.
    dim : int
        Dimension d ≥ 2 of the space.
    dtype, device : torch.dtype and torch.device, optional
        Of the result.

    Returns
    -------
    torch.Tensor, shape (n, dim)
        Normal vectors over their norms.

    Raises
    ------
    ValueError
        If an argument is out of its range.
    """
    return _moved(_normals(rng, n, dim), dtype, device)


@validation.representable
def octahedral(rng, n, dim=3, *, noise=0.05, dtype=torch.float64, device=None):
    """Points in clusters about the 2d ends of the coordinate axes.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the randomness comes from.
    n : int or tuple of int
        Number of points, or all leading axes.
    dim : int
        Dimension d ≥ 2 of the space.
    noise : float
        Standard deviation of the normal noise in every coordinate, before normalisation.
    dtype, device : torch.dtype and torch.device, optional
        Of the result.

    Returns
    -------
    torch.Tensor, shape (n, dim)
        Each point is near a random one of ±e₁, …, ±e_d.

    Raises
    ------
    ValueError
        If an argument is out of its range.
    """
    noise = validation.number(noise, "noise", minimum=0)
    points = noise * _normals(rng, n, dim)
    ends = np.concatenate([np.eye(dim), -np.eye(dim)])
    return _moved(points + ends[rng.integers(2 * dim, size=points.shape[:-1])], dtype, device)


def _normals(rng, n, dim):
    validation.generator(rng)
    dim = validation.integer(dim, "dim", minimum=2)
    leading = n if isinstance(n, tuple) else (n,)
    leading = tuple(validation.integer(size, "n", minimum=1) for size in leading)
    return rng.standard_normal((*leading, dim))


def _moved(points, dtype, device):
    unit = torch.from_numpy(points / np.linalg.norm(points, axis=-1, keepdims=True))
    return _retract(_placed(unit, dtype, device))


def _placed(points, dtype, device):
    return points.to(dtype=validation.floating(dtype), device=validation.device(device))


def _project(points, vectors):
    return vectors - (points * vectors).sum(-1, keepdim=True) * points


def _retract(points):
    return points / points.norm(dim=-1, keepdim=True)


def _pair(points, vectors, name, first="points"):
    points = validation.tensor(points, first, shape=(..., "d"))
    vectors = validation.tensor(vectors, name, shape=(..., points.shape[-1]), like=points)
    try:
        torch.broadcast_shapes(points.shape, vectors.shape)
    except RuntimeError:
        validation.fail(name, f"axes that broadcast with {tuple(points.shape)}", vectors)
    return points, vectors
