"""The rules of the house: docstrings, sizes, names that are used and tested, spelling."""

import dataclasses
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from numpydoc.validate import ERROR_MSGS, validate
from test_contract import MODULES, public_functions

from rederive_book.code_uses import read_cells

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "lib" / "rederive"

# What numpydoc asks for and this house does not, with the reason.
NOT_ASKED = {
    "ES01": "the summary says it, or the notes do",
    "EX01": "the pages are the examples",
    "SA01": "links stand in the text",
    "SS05": "takes nouns such as bias, cosines and weights for verbs",
    "PR04": "an argument that is as in another function has its type there",
    "PR08": "a description may begin with a symbol or a formula",
    "RT02": "single results have names too where a formula uses them",
    "RT04": "a description may begin with a symbol or a formula",
    "YD01": "a context manager says under Returns what it is",
}

# Modules with more than 300 lines, each with the reason why it is one; none may have more than 420.
LONG = {
    "classification": "a law, its accuracy and a classifier; half of it is docstrings",
    "encoder": "one forward pass, whose parts share the names of the weights",
    "ensembles": "decompositions and mixing weights, of which docstrings are two thirds",
    "flows": "eleven quantities of one flow; three quarters are docstrings",
    "free_probability": "one class",
    "head_weights": "four laws of heads with one interface",
    "integrators": "one integrator and its records",
    "spikes": "one function λ and all that is read off it; half of it is docstrings",
    "transformer": "one model and its training",
    "validation": "all checks of arguments in one place",
}

# Public names that no page uses, with the reason why they are there.
OFF_THE_PAGES = {
    "allocation.head_size_risk": "what optimal_head_size minimises; its tests hold that against it",
    "attention.causal_mask": "pages pool with weights in closed form; their tests need the mask",
    "clusters.ClientExecutor": "replicates on many machines",
    "clusters.client": "replicates on many machines",
    "clusters.connected": "replicates on many machines",
    "covariances.kernel_head_covariance": "the other kernel, against which tests hold bounds",
    "flow_kernels.largest_score": "integrators",
    "flow_kernels.moved_moments": "integrators",
    "flow_kernels.pair_sums": "integrators, by way of rates",
    "flows.log_effective_mobility": "heads of any size",
    "flows.log_energy": "heads of any size",
    "head_weights.oscillating_target": "the law Oscillating",
    "head_weights.symmetric_part": "the laws with noise",
    "jump_laws.marchenko_pastur_pdf": "the derivative of the distribution function that pages use",
    "pooled_models.covariance_terms": "covariance_operator of pooled_spectra",
    "pooled_spectra.pooled_operator": "tables that are too large to pool",
    "product_curve.ProductCurve": "free_probability",
    "product_curve.edge_points": "spikes",
    "sequences.effective_length": "Gaussian limits of the agreement, in tests",
    "sign_sequences.ar1_signs": "the chain whose correlation pages use, in tests",
    "spikes.slope_of_level": "fluctuations",
    "transformer.in_context_predictions": "what training minimises",
    "transformer.starting_projections": "training",
    "transport.paired_distance": "bounds the exact distance from above, in tests and benchmarks",
}


def checked_objects():
    """Full names of modules and of what they define for others, records and errors left out."""
    for short, module in MODULES.items():
        yield f"rederive.{short}"
        yield from (f"rederive.{short}.{name}" for name in public_functions(module))
        yield from (f"rederive.{short}.{name}" for name in public_classes(module))


def public_classes(module):
    """Names of the classes that a module defines for others, records and errors left out."""
    for name, kind in inspect.getmembers(module, inspect.isclass):
        record = issubclass(kind, tuple | Exception) or dataclasses.is_dataclass(kind)
        if kind.__module__ == module.__name__ and not name.startswith("_") and not record:
            yield name


@pytest.mark.parametrize("name", [*checked_objects()])
def test_docstrings_are_those_of_numpydoc(name):
    errors = validate(name)["errors"]
    assert [(code, said) for code, said in errors if code not in NOT_ASKED] == []


def test_numpydoc_still_knows_what_is_not_asked():
    assert set(NOT_ASKED) <= set(ERROR_MSGS)


def test_modules_are_small_or_say_why_not():
    lines = {
        path.stem: len(path.read_text(encoding="utf-8").splitlines())
        for path in LIBRARY.glob("*.py")
    }
    assert {name for name, count in lines.items() if count > 300} <= set(LONG)
    assert {name: count for name, count in lines.items() if count > 420} == {}
    # a module that has become short leaves the list
    assert {name for name in LONG if lines.get(name, 0) <= 250} == set()


def used_on_pages():
    """Names of the library that pages use, and every name on the way to them."""
    for page in sorted((ROOT / "chapters").rglob("*.md")):
        for cell in read_cells(page):
            for use in cell.uses:
                parts = use.split(".")
                yield from (".".join(parts[1:end]) for end in range(2, len(parts) + 1))


def test_every_public_name_is_used_by_a_page_or_says_by_whom():
    public = {
        f"{short}.{name}"
        for short, module in MODULES.items()
        for name in (*public_functions(module), *public_classes(module))
    }
    used = set(used_on_pages())
    assert public - used - set(OFF_THE_PAGES) == set(), "neither on a page nor listed"
    assert set(OFF_THE_PAGES) - public == set(), "listed, but not there"
    assert set(OFF_THE_PAGES) & used == set(), "listed, but on a page"


def test_every_public_name_is_tested():
    """By name, in a test other than those that go through all names."""
    general = {"test_contract.py", "test_bad_input.py", Path(__file__).name}
    words = {
        word
        for path in (ROOT / "tests").glob("test_*.py")
        if path.name not in general
        for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))
    }
    # by way of conditional_covariance and covariance_operator, of FreeMPProduct, and of replicate
    words |= {"covariance_terms", "connected"}
    untested = [
        f"{short}.{name}"
        for short, module in MODULES.items()
        for name in public_functions(module)
        if name not in words
    ]
    assert untested == []


def test_words_are_spelt():
    """Codespell knows common slips only; what it takes for one wrongly stands in pyproject.toml."""
    command = Path(sys.executable).with_name("codespell")
    places = ["chapters", "lib", "tests", "audit", "benchmarks", "examples", ".github"]
    places += [path.name for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("*.py")])]
    found = subprocess.run([command, *places], cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
