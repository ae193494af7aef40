"""Planes in special position: at given angles, tilted towards a simplex, tight fusion frames.

H subspaces of dimension k are a *tight fusion frame* of R^r if their projectors have the mean
(k/r)·I. All frames returned here are orthonormal. Arrays in, NumPy arrays out.
"""

import numpy as np
import scipy.linalg

from rederive import validation
from rederive.diversity import check_cosines


def frames_at(cosines):
    """Two orthonormal frames whose ranges lie at given principal angles.

    Parameters
    ----------
    cosines : array_like, shape (k,)
        Cosines of the principal angles, in any order.

    Returns
    -------
    numpy.ndarray, shape (2, 2k, k)
        The first frame spans the first k coordinates.

    Raises
    ------
    ValueError
        If a cosine lies outside [0, 1].
    """
    cosines = check_cosines(cosines)
    if cosines.ndim != 1:
        validation.fail("cosines", "shape (k,)", f"shape {cosines.shape}")
    first = np.vstack([np.eye(len(cosines)), np.zeros((len(cosines), len(cosines)))])
    sines = np.sqrt((1 - cosines) * (1 + cosines))
    return np.stack([first, np.vstack([np.diag(cosines), np.diag(sines)])])


def tilted_heads(n_heads, head_dim, tilt):
    """Heads that lean out of a common plane in the directions of a regular simplex.

    Parameters
    ----------
    n_heads : int
        H ≥ 2.
    head_dim : int
        k ≥ 1.
    tilt : float
        Angle τ between each head and the common plane, in radians.

    Returns
    -------
    numpy.ndarray, shape (H, Hk, k)
        U_h = cos τ E + sin τ F_h, with E the first k coordinates and F_hᵀF_g = −I/(H − 1). All
        principal angles of a pair have the cosine |cos²τ − sin²τ/(H − 1)|: copies for τ = 0,
        orthogonal heads for cos²τ = 1/H. The mean projector acts on E as cos²τ.

    Raises
    ------
    ValueError
        If an argument is out of its range.
    """
    heads = validation.integer(n_heads, "n_heads", minimum=2)
    head_dim = validation.integer(head_dim, "head_dim", minimum=1)
    tilt = validation.number(tilt, "tilt")
    corners = scipy.linalg.helmert(heads).T / np.sqrt(1 - 1 / heads)
    lines = np.column_stack([np.full(heads, np.cos(tilt)), np.sin(tilt) * corners])
    return np.einsum("hi,jk->hijk", lines, np.eye(head_dim)).reshape(heads, -1, head_dim)


def tight_fusion_frame(n_heads, head_dim, target_rank):
    """H planes of dimension k in R^r whose mean projector is (k/r)·I, for k a divisor of r.

    Parameters
    ----------
    n_heads, head_dim, target_rank : int
        H ≥ 1, k ≥ 1 and r a multiple of k with r ≤ Hk.

    Returns
    -------
    numpy.ndarray, shape (H, r, k)
        Orthonormal frames: a real harmonic frame of H vectors in R^(r/k), each times the identity.

    Raises
    ------
    ValueError
        If an argument is out of its range or r is not a multiple of k.
    """
    heads = validation.integer(n_heads, "n_heads", minimum=1)
    head_dim = validation.integer(head_dim, "head_dim", minimum=1)
    rank = validation.integer(target_rank, "target_rank", minimum=1)
    blocks = rank // head_dim
    if rank % head_dim or blocks > heads:
        expected = f"a multiple of head_dim = {head_dim} up to {heads * head_dim}"
        validation.fail("target_rank", expected, rank)
    if blocks == heads:
        vectors = np.eye(heads)
    else:
        turns = 2 * np.pi / heads * np.outer(np.arange(heads), np.arange(1, blocks // 2 + 1))
        waves = [np.sqrt(2 / blocks) * np.cos(turns), np.sqrt(2 / blocks) * np.sin(turns)]
        constant = np.full((heads, blocks % 2), 1 / np.sqrt(blocks))
        vectors = np.column_stack([constant, *waves])
    return np.einsum("hi,jk->hijk", vectors, np.eye(head_dim)).reshape(heads, rank, head_dim)
