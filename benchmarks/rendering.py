"""Recorded results as Markdown: the sections of the page."""

from __future__ import annotations

import math

from benchmarks import growth, roofline


def table(header, rows):
    """A Markdown table; columns after the first are aligned to the right."""
    lines = ["| " + " | ".join(header) + " |", "|---" + "|--:" * (len(header) - 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def rounded(value):
    """A number with three digits, a whole one with all; thousands apart."""
    if value == int(value) and abs(value) < 1e7:
        return f"{value:,.0f}".replace(",", "\u202f")
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    if abs(value) >= 1e7 or digits > 6:
        mantissa, exponent = f"{value:.1e}".split("e")
        return f"{mantissa}·10{superscript(int(exponent))}"
    return f"{round(value, digits):,.{digits}f}".replace(",", "\u202f")


def superscript(number):
    """An exponent in raised digits."""
    return "".join("⁻" if c == "-" else "⁰¹²³⁴⁵⁶⁷⁸⁹"[int(c)] for c in str(number))


def duration(seconds):
    """Seconds in the unit that suits."""
    unit, size = ("s", 1.0) if seconds >= 1 else ("ms", 1e-3) if seconds >= 1e-3 else ("µs", 1e-6)
    return f"{rounded(seconds / size)}\u00a0{unit}"


def storage(size):
    """Bytes in the unit that suits."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor:
            return f"{rounded(size / factor)}\u00a0{unit}"
    return f"{size}\u00a0B"


def goals(results):
    """What was aimed at: misses first, then what was not measured, then what is met."""
    every = [goal for result in results for goal in result.goals]
    order = {False: 0, None: 1, True: 2}
    rows = []
    for goal in sorted(every, key=lambda goal: order[goal.met]):
        sign = "≥" if goal.sense == "at least" else "≤"
        got = "not measured" if goal.measured is None else f"{rounded(goal.measured)} {goal.unit}"
        word = {True: "met", False: "**missed**", None: "open"}[goal.met]
        note = f" ({goal.note})" if goal.note else ""
        rows.append([f"{goal.what}{note}", f"{sign} {rounded(goal.bound)}", got.strip(), word])
    if not rows:
        return ""
    count = {met: sum(goal.met is met for goal in every) for met in order}
    sentence = f"Of {len(every)} goals {count[True]} are met and {count[False]} missed"
    sentence += f"; {count[None]} not measured." if count[None] else "."
    losses = lost(results)
    if losses:
        sentence += "\n\nWhere a peer is faster than we are, by the median:\n\n" + losses
    return f"## Goals\n\n{sentence}\n\n" + table(["goal", "wanted", "measured", ""], rows)


def lost(results):
    """Sentences about the comparisons in which a peer is faster."""
    found = {}
    for made in (made for result in results for made in result.comparisons):
        for row in made.rows:
            # our own other ways are no peers
            if row.ratio and row.ratio[1] < 1 and not row.contestant.startswith("ours"):
                where = f"{made.kernel} ({made.size}): {row.contestant}"
                took = f"{rounded(row.ratio[1])} of our time on {threads(made.threads)}"
                found.setdefault(where, []).append(took)
    return "\n".join(f"* {where} takes {' and '.join(took)}." for where, took in found.items())


def threads(count):
    """A number of threads in words."""
    return {1: "one thread", 2: "two threads"}.get(count, f"{count} threads")


def comparisons(results):
    """A table for each kernel and size, one and two threads side by side, and the code of peers."""
    parts = []
    for result in results:
        shown = []
        kinds = {}
        for made in result.comparisons:
            kinds.setdefault(made.kernel, {}).setdefault(made.size, []).append(made)
            codes = [row.code for row in made.rows if row.code]
            shown = list(dict.fromkeys([*shown, *codes]))
        for kernel, sizes in kinds.items():
            parts.append(f"### {kernel[0].upper()}{kernel[1:]}\n")
            parts += [compared(size, several) for size, several in sizes.items()]
        parts += [code(shown)] if shown else []
    return "## Beside other ways\n\n" + "\n".join(parts) if parts else ""


def compared(size, several):
    """One size: times and ratios for each number of threads, accuracy last."""
    header = [""]
    for made in several:
        header += [threads(made.threads), "× ours"]
    errors = any(row.error is not None for row in several[0].rows)
    rows = []
    for i, row in enumerate(several[0].rows):
        line = [row.contestant]
        for made in several:
            line += [duration(made.rows[i].seconds), spread(made.rows[i].ratio)]
        if errors:
            line.append("" if row.error is None else rounded(float(f"{row.error:.1e}")))
        rows.append(line)
    text = f"**{size}**\n\n" + table(header + ["error"] * errors, rows)
    rounds = several[0].rounds
    below = f"Medians of {rounds} round{'s' * (rounds > 1)}; brackets hold the quartiles of ratios."
    if errors:
        below += f" Error: {several[0].reference}."
    return f"{text}\n{below}\n"


def spread(ratio):
    """A median ratio with its quartiles."""
    if ratio is None:
        return ""
    low, median, high = (rounded(value) for value in ratio)
    return f"{median} [{low}, {high}]"


def code(names):
    """A folded listing of functions of a benchmark, from the file that ran."""
    parts = []
    for name in names:
        module, function = name.split(".")
        parts.append(
            f"```{{literalinclude}} ../benchmarks/{module}.py\n:language: python\n"
            f":caption: {function}\n:pyobject: {function}\n```\n"
        )
    return "::::{dropdown} The code of the peers\n" + "\n".join(parts) + "::::\n"


def growths(results):
    """How time and memory grow, and the largest size that fits."""
    rows, notes = [], []
    for result in results:
        for one in result.growths:
            law = growth.fit(one.sizes, one.seconds)
            largest = growth.largest_size(one)
            peak = "not measured"
            if one.peaks is not None:
                power = {1: "", 2: "²"}[one.order]
                peak = f"{storage(max(0, one.peaks[-1]))}, ∝ {one.variable}{power}"
            rows.append(
                [
                    f"{one.kernel}, {one.variable} ({one.fixed})",
                    f"{one.sizes[0]} … {rounded(one.sizes[-1])}",
                    duration(one.seconds[-1]),
                    exponent(law),
                    peak,
                    "" if largest is None else rounded(float(f"{largest:.1e}")),
                ]
            )
            if one.note:
                notes.append(f"* {one.kernel}, {one.variable}: {one.note}.")
    if not rows:
        return ""
    header = [
        "kernel", "sizes", "time at the largest", "exponent", "memory at the largest",
        "fits 24 GiB, extrapolated",
    ]  # fmt: skip
    return (
        "## How cost grows\n\n"
        "One thread, the least of repeated times; every size in a fresh process. The exponent is\n"
        "fitted to the upper half of the sizes, with its 95 % interval. Memory is the growth of\n"
        "the peak resident size over that of the smallest size, inputs and results included, and\n"
        "beside it how it grows: what the code holds says so. The last column carries the largest\n"
        "size on to 24 GiB by that law; it was not run.\n\n"
        + table(header, rows)
        + ("\n" + "\n".join(notes) + "\n" if notes else "")
    )


def exponent(law):
    """A fitted exponent with its uncertainty."""
    if math.isinf(law.spread):
        return f"{law.exponent:.2f}"
    return f"{law.exponent:.2f} ± {max(law.spread, 0.01):.2f}"


def rooflines(results):
    """Work, the least time for it, what that is spent on, and how far from it."""
    rows, notes = [], []
    for result in results:
        for one in result.rooflines:
            least, kind = roofline.bound(one.work, result.peaks)
            work = ", ".join(f"{rounded(amount)} {name}" for name, amount in one.work.items())
            rows.append(
                [
                    f"{one.kernel} ({one.size})",
                    work,
                    duration(least),
                    kind,
                    f"{rounded(one.seconds / least)} ×",
                ]
            )
            if one.note:
                notes.append(f"* {one.kernel}: {one.note}.")
    if not rows:
        return ""
    peaks = [
        [name, *(f"{rounded(result.peaks[kind] / 1e9)}" for result in results)]
        for kind, name in (roofline.COMPUTING | roofline.MOVING).items()
    ]
    return (
        "## How far from the machine's bounds\n\n"
        + "The least time is that of the work at the peaks of one thread: the longer of computing\n"
        "and moving data, as if both overlapped. Ours is here the least of repeated times, and so\n"
        "below the medians above.\n\n"
        + table(["kernel", "work", "least time", "bound by", "ours"], rows)
        + ("\n" + "\n".join(notes) + "\n" if notes else "")
        + "\nPeaks in 10⁹ a second, measured in each run before anything else:\n\n"
        + table(["peak", *(result.name for result in results)], peaks)
    )


def runs(results):
    """When, where and with what each benchmark ran."""
    rows = [
        [r.name.replace("_", " "), r.date, f"`{r.commit}`", r.machine, duration(r.took)]
        for r in results
    ]
    newest = max(results, key=lambda result: result.date)
    versions = ", ".join(f"{name} {number}" for name, number in newest.versions.items())
    text = (
        "## The runs\n\n"
        + table(["benchmark", "date", "commit", "machine", "took"], rows)
        + f"\n{versions}. Linear algebra: {newest.blas}.\n"
    )
    unset = sorted({r.coretype for r in results if r.coretype})
    if unset:
        text += (
            f"\n`OPENBLAS_CORETYPE` was set to `{', '.join(unset)}` in the environment and was "
            "taken away for these runs,\nbecause it can hold the library back.\n"
        )
    return text
