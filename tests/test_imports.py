"""Imports go one way, and what a page reaches can be read from its import statements."""

import ast
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIBRARY = sorted((ROOT / "lib" / "rederive").glob("*.py"))
BOOK = sorted((ROOT / "lib" / "rederive_book").glob("*.py"))
PAGES = sorted((ROOT / "chapters").rglob("*.md"))

# A module may import those before it.
ORDER = (
    "validation",
    "attention",
    "sphere",
    "clusters",
    "replicates",
    "smoothing",
    "diversity",
    "covariances",
    "fusion_frames",
    "head_risk",
    "ensembles",
    "allocation",
    "product_curve",
    "free_probability",
    "jump_laws",
    "spikes",
    "fluctuations",
    "sequences",
    "sign_sequences",
    "vocabularies",
    "pooled_models",
    "pooled_spectra",
    "classification",
    "finite_tables",
    "ridge_limits",
    "head_weights",
    "pair_blocks",
    "flow_logarithms",
    "flow_kernels",
    "flows",
    "integrators",
    "relaxation",
    "head_response",
    "transport",
    "transformer",
    "encoder",
)
# No file, no YAML, no Sphinx, no notebook, no picture in the numerics.
STRANGERS = {"yaml", "sphinx", "docutils", "myst_nb", "myst_parser", "nbformat", "nbclient"}
STRANGERS |= {"papermill", "pytask", "IPython", "matplotlib", "pathlib", "shutil", "tempfile"}
FOR_PAGES = {"checks", "certified", "figures", "animations", "models"}


def reached(tree):
    """The dotted names that import statements reach, functions included."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide what a module reaches"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


IMPORTERS = {"__import__", "import_module", "exec_module", "spec_from_file_location", "pkgutil"}
RUNNERS = {"runpy", "run_path", "run_module", "exec", "eval"}


def dynamic(tree, forbidden=IMPORTERS | RUNNERS):
    """The ways of loading code that import statements do not show."""
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    found |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    found |= {part for name in reached(tree) for part in name.split(".")}
    return found & forbidden


def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def below(names, package):
    """The modules of a package among dotted names; a bare package counts as all of it."""
    inside = [name.split(".") for name in names if name.split(".")[0] == package]
    return {parts[1] if len(parts) > 1 else "*" for parts in inside}


def cells(text):
    """The code cells of a MyST notebook, without their options."""
    for body in re.findall(
        r"^```+ *\{code-cell\}[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE
    ):
        body = re.sub(r"\A---\n.*?^---\n", "", body, flags=re.DOTALL | re.MULTILINE)
        yield re.sub(r"\A(:[^\n]*\n)+", "", body)


def named(paths):
    return [pytest.param(path, id=path.relative_to(ROOT).as_posix()) for path in paths]


MODULES = [path for path in LIBRARY if path.stem != "__init__"]


@pytest.mark.parametrize("path", named(MODULES))
def test_modules_import_down_the_table_only(path):
    assert path.stem in ORDER, "give the new module its place in the order"
    allowed = set(ORDER[: ORDER.index(path.stem)])
    assert below(reached(parse(path)), "rederive") <= allowed


@pytest.mark.parametrize("path", named(LIBRARY))
def test_the_library_knows_neither_book_nor_files(path):
    tree = parse(path)
    assert not {name.split(".")[0] for name in reached(tree)} & (STRANGERS | {"rederive_book"})
    assert "open" not in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


@pytest.mark.parametrize("path", named(LIBRARY))
def test_torch_is_imported_by_torch_modules_only(path):
    """At the top of a module, that is: the rest of the library must start fast."""
    top = ast.Module([node for node in parse(path).body if isinstance(node, ast.stmt)], [])
    top.body = [node for node in top.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    uses_torch = "torch" in {name.split(".")[0] for name in reached(top)}
    torch_modules = {"attention", "smoothing", "sphere", "flows", "integrators", "transport"}
    torch_modules |= {"pair_blocks", "flow_logarithms", "flow_kernels", "transformer", "encoder"}
    assert not uses_torch or path.stem in torch_modules


@pytest.mark.parametrize("path", named(LIBRARY))
def test_no_dynamic_imports_in_the_library(path):
    assert not dynamic(parse(path))


@pytest.mark.parametrize("path", named(BOOK))
def test_no_dynamic_imports_in_the_machinery(path):
    """It may run a file, as it does to learn a version, but must import by statements."""
    assert not dynamic(parse(path), IMPORTERS)


@pytest.mark.parametrize("path", named(PAGES))
def test_pages_reach_what_their_statements_say(path):
    for cell in cells(path.read_text(encoding="utf-8")):
        tree = ast.parse(cell)
        assert not dynamic(tree)
        names = reached(tree)
        assert below(names, "rederive_book") <= FOR_PAGES
        assert below(names, "rederive") <= set(ORDER)


def test_the_rules_see_what_they_forbid():
    assert dynamic(ast.parse("import importlib\nimportlib.import_module('rederive.flows')"))
    assert dynamic(ast.parse("from importlib import import_module"))
    assert dynamic(ast.parse("__import__('rederive.flows')"))
    assert dynamic(ast.parse("exec('import rederive')"))
    assert dynamic(ast.parse("import runpy as r"))
    assert not dynamic(ast.parse("from rederive import flows\nflows.energy(1, 2)"))
    assert not dynamic(ast.parse("from importlib.metadata import version"))
    inner = ast.parse("def f():\n    from rederive.flows import energy")
    assert below(reached(inner), "rederive") == {"flows"}
    assert below(reached(ast.parse("import rederive")), "rederive") == {"*"}
    with pytest.raises(AssertionError, match="relative"):
        reached(ast.parse("from . import flows"))


def test_cells_are_read_without_their_options():
    page = "# T\n```{code-cell} ipython3\n---\ntags: [a]\n---\nx = 1\n```\n\n"
    page += "```{code-cell} ipython3\n:tags: [b]\n\ny = 2\n```\n```python\nz = 3\n```\n"
    assert [cell.strip() for cell in cells(page)] == ["x = 1", "y = 2"]
