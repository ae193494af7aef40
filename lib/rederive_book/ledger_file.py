"""The file of the ledger: its JSON schema, and reading and writing that respect it."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema

from rederive_book import whole


@functools.cache
def schema() -> dict[str, Any]:
    """The JSON schema of the ledger."""
    return json.loads(
        files("rederive_book").joinpath("ledger.schema.json").read_text(encoding="utf-8")
    )


def schema_problems(ledger: Mapping[str, Any]) -> list[str]:
    """Where a ledger departs from its schema, in words."""
    found = []
    for error in jsonschema.Draft202012Validator(schema()).iter_errors(ledger):
        path = list(error.absolute_path)
        where = "/".join(str(part) for part in path)
        if path[:1] == ["claims"] and len(path) > 1:
            claim = ledger["claims"][path[1]]
            where = f"claim {claim.get('id')} on page {claim.get('page')}, {where}"
        found.append(f"ledger: {where or 'top level'}: {error.message[:300]}")
    return found


def write(ledger: Mapping[str, Any], path: Path) -> None:
    """Write the ledger, whole or not at all.

    Parameters
    ----------
    ledger : mapping
    path : Path
        Replaced at once, by a file written beside it.

    Raises
    ------
    ValueError
        If the ledger does not fit its schema or holds a number that is not finite.
    """
    if found := schema_problems(ledger):
        raise ValueError("\n".join(found))
    text = json.dumps(ledger, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    whole.write_text(path, text)


def read(path: Path) -> dict[str, Any]:
    """Read a ledger and check it against its schema.

    Raises
    ------
    ValueError
        Naming what does not fit.
    """
    ledger = json.loads(Path(path).read_text(encoding="utf-8"))
    if found := schema_problems(ledger):
        raise ValueError("\n".join(found))
    return ledger
