r"""The uniform measure on the sphere under one repulsive head D = I: its energy and its stability.

For D = I the energy of a measure μ is E = ½∬e^{⟨x,y⟩} dμ dμ. The kernel is a function of ⟨x, y⟩, so
that spherical harmonics diagonalise it: those of degree ℓ have the eigenvalue

    m_ℓ = Γ(d/2) 2^{d/2−1} I_{ℓ+d/2−1}(1) > 0     (Funk and Hecke),

on the circle m_k = I_k(1), on S² the modified spherical Bessel function i_ℓ(1). All of them are
positive, so that the uniform measure is the only one of least energy. Numbers in and out.
"""

import math

import numpy as np
from scipy import special

from rederive import validation


@validation.representable
def kernel_eigenvalues(degrees, dim=3):
    r"""Eigenvalues of the kernel e^{⟨x,y⟩} on spherical harmonics.

    Parameters
    ----------
    degrees : int or array_like of int, shape (…)
        Degrees ℓ ≥ 0.
    dim : int
        Dimension d ≥ 2 of the space; the sphere is S^{d−1} with its uniform probability.

    Returns
    -------
    float or numpy.ndarray, shape (…)
        :math:`m_\ell = \Gamma(d/2)\,2^{d/2-1} I_{\ell+d/2-1}(1)`.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    References
    ----------
    C. Müller, Analysis of Spherical Symmetries in Euclidean Spaces, Springer 1998, §9.
    """
    degrees = validation.array(degrees, "degrees", dtype=int, empty=True)
    if (degrees < 0).any():
        validation.fail("degrees", "integers of at least 0", degrees)
    dim = validation.integer(dim, "dim", minimum=2)
    order = dim / 2 - 1
    found = math.gamma(dim / 2) * 2**order * special.iv(degrees + order, 1.0)
    return found if degrees.ndim else float(found)


def uniform_energy(dim=3):
    r"""Energy of the uniform measure under D = I, the least of all measures.

    Parameters
    ----------
    dim : int
        Dimension d ≥ 2 of the space.

    Returns
    -------
    float
        :math:`\frac12 m_0`: :math:`I_0(1)/2` on the circle, :math:`\sinh(1)/2` on S².

    Raises
    ------
    ValueError
        If the dimension is not an integer of at least 2.

    References
    ----------
    Derived in the chapter *flow*, after A. Massucco et al., arXiv:2605.18870.
    """
    return kernel_eigenvalues(0, dim) / 2


@validation.representable
def uniform_rates(degrees, dim=3):
    r"""Rates at which perturbations of the uniform measure decay under D = I.

    Parameters
    ----------
    degrees : int or array_like of int, shape (…)
        Degrees ℓ ≥ 0 of the perturbation.
    dim : int
        Dimension d ≥ 2 of the space.

    Returns
    -------
    float or numpy.ndarray, shape (…)
        :math:`\lambda_\ell = \ell(\ell+d-2)\,m_\ell/m_0`.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    References
    ----------
    Derived in the chapter *flow*, after A. Massucco et al., arXiv:2605.18870.
    """
    eigenvalues = kernel_eigenvalues(degrees, dim)
    degrees = np.asarray(degrees)
    return degrees * (degrees + dim - 2) * eigenvalues / kernel_eigenvalues(0, dim)


def polygon_energy(n):
    r"""Energy of n tokens at the corners of a regular polygon on the circle under D = I.

    Parameters
    ----------
    n : int
        Number of tokens, at least 1.

    Returns
    -------
    float
        :math:`\frac12\bigl[I_0(1) + 2\sum_{k\ge1} I_{kn}(1)\bigr]`: what the polygon misses to the
        least energy falls faster than exponentially in n.

    Raises
    ------
    ValueError
        If n is not a positive integer.

    References
    ----------
    Derived in the chapter *flow*, after A. Massucco et al., arXiv:2605.18870.
    """
    n = validation.integer(n, "n", minimum=1)
    multiples = np.arange(1, 40 // n + 2) * n
    return float(special.iv(0, 1.0) / 2 + special.iv(multiples, 1.0)[::-1].sum())
