"""Make the mutants of a module with mutmut's operators: a script of its own, as mutmut is apart.

``python audit/mutating.py MODULE.py`` prints a JSON list, one entry a mutant: `function`, `line`,
`was`, `becomes` (the lines that change) and `source`, the whole module with the mutant in it.
Decorated functions have mutants like others, although mutmut's own runner cannot try them. What
stands outside functions has none, nor have decorators and annotations. Left out are changes of
texts alone: a string, anything inside an f-string or in the words of a refusal, and None in the
place of a string.
"""

from __future__ import annotations

import difflib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import libcst as cst
import libcst.matchers as m
from mutmut.mutation.file_mutation import MutationVisitor, deep_replace
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import get_ignored_lines

_FAIL = m.Name("fail") | m.Attribute(attr=m.Name("fail"))


class _Visitor(MutationVisitor):
    """Goes into decorated functions as well."""

    def _skip_node_and_children(self, node: cst.CSTNode) -> bool:
        decorated = isinstance(node, cst.FunctionDef) and node.decorators
        return not decorated and super()._skip_node_and_children(node)


def mutants(text: str) -> list[dict[str, Any]]:
    """All mutants of a module, in the order of the text, each change once."""
    wrapped = cst.MetadataWrapper(cst.parse_module(text))
    visitor = _Visitor(mutation_operators, get_ignored_lines("module.py", text, wrapped, None))
    module = wrapped.visit(visitor)
    names = dict(_functions(module))
    strings = set(_inside_strings(module))
    made, seen = [], {text}
    for mutation in visitor.mutations:
        function = names.get(mutation.contained_by_top_level_function)
        original, mutated = mutation.original_node, mutation.mutated_node
        if function is None or original in strings or _only_drops_a_string(original, mutated):
            continue
        source = deep_replace(module, original, mutated).code
        if source not in seen:
            seen.add(source)
            made.append({"function": function} | _change(text, source) | {"source": source})
    return made


def _functions(module: cst.Module) -> Iterator[tuple[cst.FunctionDef, str]]:
    """Functions and methods with their qualified names."""
    for node in module.body:
        if isinstance(node, cst.FunctionDef):
            yield node, node.name.value
        elif isinstance(node, cst.ClassDef):
            for method in node.body.body:
                if isinstance(method, cst.FunctionDef):
                    yield method, f"{node.name.value}.{method.name.value}"


def _inside_strings(node: cst.CSTNode, inside: bool = False) -> Iterator[cst.CSTNode]:
    """Strings, all that stands in an f-string, and the arguments of an error or of `fail`."""
    inside = inside or isinstance(node, cst.BaseString | cst.Raise)
    inside = inside or (isinstance(node, cst.Call) and m.matches(node.func, _FAIL))
    if inside:
        yield node
    for child in node.children:
        yield from _inside_strings(child, inside)


def _only_drops_a_string(original: cst.CSTNode, mutated: cst.CSTNode) -> bool:
    """Whether None takes the place of a string, in a call or an assignment."""
    if isinstance(original, cst.Call) and isinstance(mutated, cst.Call):
        if len(original.args) != len(mutated.args):
            return False
        pairs = zip(original.args, mutated.args, strict=True)
        changed = [old.value for old, new in pairs if old is not new]
    elif isinstance(original, cst.Assign | cst.AnnAssign):
        changed = [original.value]
    else:
        return False
    return bool(changed) and all(isinstance(value, cst.BaseString) for value in changed)


def _change(text: str, source: str) -> dict[str, Any]:
    """Where two texts differ: the line, and what stands there in each."""
    old, new = text.splitlines(), source.splitlines()
    steps = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changes = [step for step in steps if step[0] != "equal"]
    first, last = changes[0], changes[-1]
    return {
        "line": first[1] + 1,
        "was": "\n".join(old[first[1] : last[2]]).strip(),
        "becomes": "\n".join(new[first[3] : last[4]]).strip(),
    }


def main(file: str) -> None:
    """Print the mutants of a file."""
    text = Path(file).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:  # mutmut reads its settings where it runs
        (Path(folder) / "src").mkdir()
        os.chdir(folder)
        made = mutants(text)
        os.chdir("/")
    json.dump(made, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
