"""The density of MP_δ ⊠ MP_γ: the library beside its peers.

The density is asked for at 2001 points from edge to edge, δ = ½, γ = ¼, and errors are measured
against 40 digits. The package freealg works with curves of any degree and fits them to samples; it
is given the exact transform and few points, and fitting is not timed. The fixed-point iteration
stands a small distance off the axis, which blurs the edges.
"""

import mpmath
import numpy as np

from benchmarks.comparing import Contestant
from benchmarks.growth import decades
from rederive.free_probability import FreeMPProduct

DELTA, GAMMA, POINTS = 0.5, 0.25, 2001
KERNEL = "density of a free product"
REFERENCE = "largest error relative to the maximum, against 40 digits"
# Elementwise operations a point in FreeMPProduct.pdf, counted in the source; each reads or writes
# about three arrays.
OPERATIONS = 60


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


def contestants(law, x, peers):
    """Ours and its peers, given as (name, function, what to show), with their errors."""
    some = np.arange(0, len(x), max(1, len(x) // 50))
    truth = np.array([exact(at) for at in x[some]])

    def error(function):
        return np.abs(function(x[some]) - truth).max() / truth.max()

    ours = Contestant("ours", lambda: law.pdf(x), None, error(law.pdf))
    return [
        ours,
        *(
            Contestant(
                name, lambda f=f: f(x), shown or f, error(f), name == "fixed-point iteration"
            )
            for name, f, shown in peers
        ),
    ]


def compare_with_freealg(bench, law):
    """Few points, because freealg takes long for each."""
    try:
        density = freealg_density(law)
    except ImportError:
        print("freealg is not installed: left out")
        return
    x = np.linspace(*law.support(), 11)[1:-1]
    several = contestants(law, x, [("freealg", density, freealg_density)])
    bench.compare(
        KERNEL, f"{len(x)} points, δ = {DELTA}, γ = {GAMMA}", several, 3, REFERENCE, threads=(1,)
    )


def density_at(count):
    """The density at some points between the edges."""
    law = FreeMPProduct(DELTA, GAMMA)
    x = np.linspace(*law.support(), count + 2)[1:-1]
    return lambda: law.pdf(x)


def run(bench):
    """Compare, bound and grow."""
    law = FreeMPProduct(DELTA, GAMMA)
    points = bench.size(POINTS, 201)
    x = np.linspace(*law.support(), points + 2)[1:-1]
    size = f"{points} points, δ = {DELTA}, γ = {GAMMA}"
    peers = [
        ("eigenvalues of companion matrices", companions, None),
        ("numpy.roots in a loop", roots_loop, None),
        ("fixed-point iteration", fixed_point, None),
    ]
    several = contestants(law, x, peers)
    found = bench.compare(KERNEL, size, several, 15, REFERENCE)
    compare_with_freealg(bench, law)
    loop, batch = found["numpy.roots in a loop"], found["eigenvalues of companion matrices"]
    bench.goal(f"{KERNEL} against a loop over numpy.roots", "at least", 100, loop, "times as fast")
    bench.goal(f"{KERNEL} against batched eigenvalues", "at least", 8, batch, "times as fast")
    bench.goal(f"error of the {KERNEL}", "at most", 1e-12, several[0].error, "of its maximum")
    bench.goal(f"{KERNEL} on one core", "at least", 1e6, points / found["ours"], "points a second")
    work = {"cube roots": points, "cached bytes": 24 * OPERATIONS * points, "bytes": 16 * points}
    note = "NumPy passes over the array once for each operation; they are counted as such"
    bench.roof(KERNEL, size, work, lambda: law.pdf(x), note)
    fixed = f"δ = {DELTA}, γ = {GAMMA}"
    bench.grow(KERNEL, "points", fixed, decades(1000, 1_000_000), density_at)
