"""The density of MP_δ ⊠ MP_γ: the library against its peers, in one run on one thread.

Run ``python benchmarks/bench_free_product.py``. The density is asked for at 2001 points from edge
to edge, δ = ½, γ = ¼. The contestants take turns in an order that is drawn anew each round; medians
of the processor time are printed. Goals: at least 100 times as fast as a loop over numpy.roots and
at least 8 times as fast as the eigenvalues of a batch of companion matrices, with errors of at most
1e-12 of the maximum. Errors are measured against 40 digits (mpmath). The package freealg works with
curves of any degree and fits them to samples; it is timed as it is meant to be used, as is a plain
fixed-point iteration at a small distance from the axis, which blurs the edges.
"""

import sys

import mpmath
import numpy as np
from threadpoolctl import threadpool_limits
from timing import medians

from rederive.free_probability import FreeMPProduct

DELTA, GAMMA, POINTS = 0.5, 0.25, 2001


def exact(x):
    """The density from the roots of the cubic in 40 digits."""
    with mpmath.workdps(40):
        total, product = mpmath.mpf(DELTA) + GAMMA, mpmath.mpf(DELTA) * GAMMA
        coefficients = [1, 1 + total - mpmath.mpf(x), total + product, product]
        roots = mpmath.polyroots(coefficients, maxsteps=200, extraprec=80)
        return float(max(abs((1 / root).imag) for root in roots) / (mpmath.pi * mpmath.mpf(x)))


def roots_loop(x):
    """One call of numpy.roots a point."""
    total, product = DELTA + GAMMA, DELTA * GAMMA
    found = np.empty_like(x)
    for i, at in enumerate(x):
        roots = np.roots((1, 1 + total - at, total + product, product))
        found[i] = np.abs((1 / roots).imag).max() / (np.pi * at)
    return found


def companions(x):
    """Eigenvalues of all companion matrices in one call."""
    total, product = DELTA + GAMMA, DELTA * GAMMA
    matrices = np.zeros((len(x), 3, 3))
    matrices[:, 0, 0] = x - 1 - total
    matrices[:, 0, 1], matrices[:, 0, 2] = -total - product, -product
    matrices[:, 1, 0] = matrices[:, 2, 1] = 1
    roots = np.linalg.eigvals(matrices)
    return np.abs((1 / roots).imag).max(axis=1) / (np.pi * x)


def fixed_point(x, height=1e-6, tolerance=1e-10, limit=50_000):
    """Layer by layer a little above the axis: ℓ = z/(1 + γm), then m of the inner layer at ℓ."""
    z = x + 1j * height
    m = -1j * np.ones_like(z)
    for _ in range(limit):
        shifted = z / (1 + GAMMA * m) - 1 - DELTA
        root = np.sqrt(shifted * shifted - 4 * DELTA)
        new = (shifted - root) / (2 * DELTA)
        new = np.where(new.imag < 0, new, (shifted + root) / (2 * DELTA))
        step = np.abs(new - m).max()
        m = new
        if step < tolerance:
            break
    return -m.imag / (np.pi * x)


def freealg_density(law):
    """A function of freealg, given the exact transform; it is fitted and compiled beforehand."""
    import freealg

    form = freealg.AlgebraicForm(
        lambda z: -law.stieltjes(z),
        support=[law.support()],
        inv_stieltjes_opt={"delta": 1e-9},
    )
    form.fit(deg_m=3, deg_z=2)
    return form.density


def main():
    """Print the table and the ratios; the exit code tells whether the goals are met."""
    law = FreeMPProduct(DELTA, GAMMA)
    x = np.linspace(*law.support(), POINTS + 2)[1:-1]
    some = np.arange(0, POINTS, 40)
    truth = np.array([exact(at) for at in x[some]])
    quick = {
        "rederive, pdf": lambda: law.pdf(x),
        "rederive, cdf": lambda: law.cdf(x),
        "rederive, curve": lambda: law.curve(POINTS),
        "companion eigenvalues": lambda: companions(x),
        "numpy.roots in a loop": lambda: roots_loop(x),
    }
    slow = {"fixed point": lambda: fixed_point(x)}
    with threadpool_limits(1):
        try:
            density = freealg_density(law)
            slow["freealg"] = lambda: density(x)
        except ImportError:
            print("freealg is not installed: left out")
        found = medians(quick, 41) | medians(slow, 3)
        errors = {
            name: np.abs(function()[some] - truth).max() / truth.max()
            for name, function in (quick | slow).items()
            if name not in ("rederive, cdf", "rederive, curve")
        }
    ours = found["rederive, pdf"]
    print(f"\ndensity at {POINTS} points, δ = {DELTA}, γ = {GAMMA}: medians of shuffled rounds")
    for name, median in found.items():
        error = f"error {errors[name]:.1e}" if name in errors else ""
        print(f"  {name:24} {median * 1e3:10.3f} ms {median / ours:9.2f} × pdf   {error}")
    loop, batch = (
        found[name] / ours for name in ("numpy.roots in a loop", "companion eigenvalues")
    )
    print(f"\nspeed relative to a loop over numpy.roots: {loop:.0f} (goal ≥ 100)")
    print(f"speed relative to companion eigenvalues: {batch:.1f} (goal ≥ 8)")
    print(f"error of the density: {errors['rederive, pdf']:.1e} of its maximum (goal ≤ 1e-12)")
    return int(loop < 100 or batch < 8 or errors["rederive, pdf"] > 1e-12)


if __name__ == "__main__":
    sys.exit(main())
