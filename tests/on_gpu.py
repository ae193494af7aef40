"""Try the library on a GPU: numbers against a CPU's, timings, memory. Needs torch, NumPy, SciPy.

    python tests/on_gpu.py                    # on "cuda"; five minutes at most
    python tests/on_gpu.py --device cpu       # a try without a GPU, with small engines
    python tests/on_gpu.py --json found.json  # all numbers, for the benchmark page

Every call of the contract is compared with the CPU in double precision; the tolerance follows from
the unit roundoff of the dtype, and its control is the same call on inputs that have lost digits
(those of TF32 in single precision, those of float32 in double), which has to be told apart. Then
engines are timed, warm, by the events of the device, beside the same on the CPU. The exit code is
0 if all numbers agree, 1 if not, and 2 if there is no such device.
"""

import argparse
import json
import pathlib
import platform
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import numpy as np
import torch
from gpu_cases import FULL, SMALL, contract, engines, inputs, transport

from rederive import flow_kernels, sphere

DTYPES = (torch.float64, torch.float32)
# Seconds after which no further engine starts.
BUDGET = 200


def tensors(arrays, dtype, device):
    """All inputs on the device, in the dtype."""
    return {name: torch.from_numpy(array).to(device, dtype) for name, array in arrays.items()}


def blunted(arrays, dtype):
    """The same inputs with the digits that a wrong precision leaves; tokens stay on the sphere."""
    found = {}
    for name, array in arrays.items():
        if dtype == torch.float64:
            array = array.astype(np.float32).astype(np.float64)
        else:  # ten binary digits after the first, cut off as by tensor cores
            bits = array.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)
            array = bits.view(np.float32).astype(np.float64)
        if name == "tokens":
            array = array / np.linalg.norm(array, axis=-1, keepdims=True)
        found[name] = array
    return found


def parts(result):
    """The tensors of a result, on the CPU in double precision."""
    several = [result] if isinstance(result, torch.Tensor) else result
    return [part.detach().cpu().double() for part in several if part is not None]


def distance(found, reference):
    """Largest difference, relative to the largest number or to 1; NaN is infinitely far."""
    worst = 0.0
    for one, other in zip(parts(found), parts(reference), strict=True):
        gap = (one - other).abs().max() / max(1.0, float(other.abs().max()))
        worst = max(worst, float(gap.nan_to_num(nan=np.inf, posinf=np.inf)))
    return worst


def compare(device):
    """Every call of the contract on the device, against the CPU in double precision."""
    rows, arrays = [], inputs()
    for dtype in DTYPES:
        given = tensors(arrays, dtype, device)
        same = {name: tensor.cpu().double() for name, tensor in given.items()}
        blunt = tensors(
            blunted({k: v.numpy() for k, v in same.items()}, dtype), torch.float64, "cpu"
        )
        for case in contract(lambda t: {"dtype": t["keys"].dtype, "device": t["keys"].device}):
            if case.only_double and dtype != torch.float64:
                continue
            reference = case.call(same)
            found = case.call(given)
            several = [found] if isinstance(found, torch.Tensor) else found
            kept = all(
                part.dtype == dtype and part.device.type == torch.device(device).type
                for part in several
                if part is not None
            )
            error, tolerance = distance(found, reference), float(case.tolerance(dtype))
            control = distance(case.call(blunt), reference) if case.controlled else None
            told = control is None or control > tolerance
            rows.append(
                {
                    "name": case.name,
                    "dtype": str(dtype).removeprefix("torch."),
                    "error": error,
                    "tolerance": tolerance,
                    "control": control,
                    "passed": bool(kept and error <= tolerance and told),
                }
            )
    return rows


def seconds(call, device, warm, rounds, limit):
    """Median time of a call, warm, by events of the device; its result; peak bytes above before."""
    cuda = torch.device(device).type == "cuda"
    times, out, began = [], None, time.perf_counter()
    if cuda:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    for k in range(warm + rounds):
        if cuda:
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            out = call()
            last.record()
            last.synchronize()
            spent = first.elapsed_time(last) / 1e3
        else:
            start = time.perf_counter()
            out = call()
            spent = time.perf_counter() - start
        if k >= warm or time.perf_counter() - began > limit:
            times.append(spent)
        if times and time.perf_counter() - began > limit:
            break
    peak = torch.cuda.max_memory_allocated() - before if cuda else None
    return statistics.median(times), out, peak


def race(device, size, budget):
    """Engines on the device and on the CPU, with the largest difference of what they return."""
    rows, began = [], time.perf_counter()
    for dtype in DTYPES:
        kinds = ({"dtype": dtype, "device": where} for where in (device, "cpu"))
        for mine, plain in zip(*(engines(size, kind) for kind in kinds), strict=True):
            row = {"name": mine.name, "dtype": str(dtype).removeprefix("torch."), "passed": True}
            rows.append(row)
            if time.perf_counter() - began > budget:
                continue
            try:
                row |= timed(mine, plain, device, budget)
            except (RuntimeError, MemoryError) as error:  # the others are tried all the same
                row |= {"passed": False, "failure": f"{type(error).__name__}: {error}"}
                continue
            if dtype == torch.float64 or not mine.only_double:
                row["tolerance"] = float(2 * mine.tolerance(dtype))
                row["passed"] = row["error"] <= row["tolerance"]
    return rows


def timed(mine, plain, device, budget):
    """Times, peak memory and difference of an engine on the device and its twin on the CPU."""
    spent, found, peak = seconds(mine.call, device, 2, 5, budget / 20)
    row = {"device_s": spent, "peak_bytes": peak, "cpu_s": None, "ratio": None}
    if mine.reference:
        found, reference = mine.part(found), mine.reference()
    else:
        row["cpu_s"], reference, _ = seconds(plain.call, "cpu", 1, 3, budget / 100)
        row["ratio"] = row["cpu_s"] / spent
    return row | {"error": distance(found, reference)}


def waits(device):
    """Kernels that stop the device to look at a number; None where that cannot be seen."""
    if torch.device(device).type != "cuda":
        return None
    x = sphere.quasi_uniform(500, device=device)[None]
    d = torch.eye(3, dtype=x.dtype, device=device).repeat(1, 4, 1, 1)
    found = []
    torch.cuda.set_sync_debug_mode("error")
    for name, call in (
        ("flow_kernels.rates", lambda: flow_kernels.rates(x, d, "attention", d, 1.0)),
        ("flow_kernels.moved_moments", lambda: flow_kernels.moved_moments(x, d, x)),
    ):
        try:
            call()
        except RuntimeError as error:
            found.append(f"{name}: {error}")
    torch.cuda.set_sync_debug_mode("default")
    return found


def starved(device):
    """Numbers with little memory against those with enough; None where it cannot be taken away."""
    if torch.device(device).type != "cuda":
        return None
    x = sphere.quasi_uniform(8000, device=device)[None]
    d = torch.eye(3, dtype=x.dtype, device=device).repeat(1, 1, 1, 1)

    def call():
        return flow_kernels.pair_sums(x, d, x.mT.contiguous())

    enough = call()
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(device).total_memory
    # a block of scores takes 128 MiB when there is room
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 2**26) / total)
    try:
        return distance(call(), enough)
    except MemoryError as error:
        return str(error)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def shown(report):
    """The tables, for a terminal."""
    yield f"{report['device']}, torch {report['torch']}, {report['threads']} CPU threads"
    yield "\nnumbers, relative to the CPU in double precision"
    yield f"{'':42}{'dtype':>9}{'error':>10}{'tolerance':>11}{'control':>10}"
    for row in report["contract"]:
        control = "–" if row["control"] is None else f"{row['control']:.1e}"
        mark = "" if row["passed"] else "  FAILED"
        numbers = f"{row['error']:10.1e}{row['tolerance']:11.1e}{control:>10}"
        yield f"{row['name']:42}{row['dtype']:>9}{numbers}{mark}"
    yield "\ntimings, warm, medians"
    yield f"{'':50}{'dtype':>9}{'device':>12}{'CPU':>12}{'ratio':>8}{'peak':>10}{'error':>10}"
    for row in report["engines"]:
        line = f"{row['name']:50}{row['dtype']:>9}"
        if "failure" in row:
            yield f"{line}  FAILED: {row['failure']}"
            continue
        if "device_s" not in row:
            yield line + "  not timed: no time left"
            continue
        peak = "–" if row["peak_bytes"] is None else f"{row['peak_bytes'] / 2**20:.0f} MiB"
        times = f"{row['device_s'] * 1e3:9.2f} ms"
        if row["cpu_s"] is None:
            times += f"{'–':>12}{'–':>8}"
        else:
            times += f"{row['cpu_s'] * 1e3:9.2f} ms{row['ratio']:8.1f}"
        mark = "" if row["passed"] else "  FAILED"
        yield f"{line}{times}{peak:>10}{row['error']:10.1e}{mark}"
    for name, words in (("waits", "kernels that wait"), ("starved", "error with little memory")):
        found = "cannot be seen on this device" if report[name] is None else report[name] or "none"
        yield f"{words}: {found}"
    if not report["transport"]:
        yield "rederive.transport was not tried: POT is not installed"
    late = sum(not {"device_s", "failure"} & set(row) for row in report["engines"])
    words = ("all passed" if report["passed"] else "FAILED") + f", {late} engines not tried" * (
        late > 0
    )
    yield f"{report['seconds']:.0f} s; {words}"


def examine(device, size, budget=BUDGET):
    """Everything, as one dictionary that JSON can hold."""
    began = time.perf_counter()
    cuda = torch.device(device).type == "cuda"
    report = {
        "device": torch.cuda.get_device_name(device) if cuda else f"cpu ({platform.machine()})",
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "threads": torch.get_num_threads(),
        "matmul_precision": torch.get_float32_matmul_precision(),
        "transport": transport is not None,
        "contract": compare(device),
        "waits": waits(device),
        "starved": starved(device),
        "engines": race(device, size, budget),
    }
    passed = all(row["passed"] for row in report["contract"] + report["engines"])
    starving = report["starved"]
    passed &= not report["waits"] and (
        starving is None or (isinstance(starving, float) and starving < 1e-12)
    )
    return report | {"passed": passed, "seconds": time.perf_counter() - began}


def main(argv=None):
    """Run, print the tables, write the JSON; the exit code tells how it went."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1, … or cpu")
    parser.add_argument(
        "--size", choices=("small", "full"), help="of the engines; full on cuda, small on cpu"
    )
    parser.add_argument("--json", type=pathlib.Path, help="write all numbers to this file")
    options = parser.parse_args(argv)
    try:
        if torch.device(options.device).type not in ("cpu", "cuda"):
            raise RuntimeError("expected cpu or cuda")
        torch.empty(1, device=options.device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        print(
            f"no device {options.device!r} here: {reason}\nNothing was tried. `--device cpu` runs "
            "everything on the CPU instead.",
            file=sys.stderr,
        )
        return 2
    usual = "small" if torch.device(options.device).type == "cpu" else "full"
    report = examine(options.device, {"small": SMALL, "full": FULL}[options.size or usual])
    print("\n".join(shown(report)))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0 if report["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
