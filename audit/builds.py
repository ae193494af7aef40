"""Two builds side by side: what differs between their files, but for times."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: What is compared below ``_build``: the results. The rest is scratch, or the site's own copies.
LEDGER, NOTEBOOKS, FIGURES, SITE = "claims.json", "notebooks", "figures", "html"

#: What is left out of the comparison, and why it may differ.
MAY_DIFFER = {
    "ledger: seconds": "how long cells and pages took",
    "notebooks: metadata.papermill, metadata.execution": "when cells ran and how long they took",
    "site: the page of the build's status, its ledger and its notebooks": "they show those times",
    "site: texts such as 1.3 s": "times of pages and checks",
}

_TIME = re.compile(r"\b(?:\d+ min )?\d+(?:\.\d+)? s\b")
_TEXTS = {".html", ".js", ".css", ".json", ".csv", ".txt", ".svg", ".md"}


def differences(one: Path, other: Path, *, site: bool = True) -> list[str]:
    """What differs between two builds apart from times.

    Parameters
    ----------
    one, other : Path
        Folders as ``_build``.
    site : bool, optional
        Whether to compare the sites as well.

    Returns
    -------
    list of str
        Paths, with the place in the file where it can be named; files that one of the builds lacks
        are followed by what is missing.
    """
    first, second = (contents(folder, site=site) for folder in (one, other))
    found = []
    for name in sorted(first.keys() | second.keys()):
        if name not in second:
            found.append(f"{name}: missing in the second")
        elif name not in first:
            found.append(f"{name}: missing in the first")
        elif first[name] != second[name]:
            found.append(name)
    return found


def contents(folder: Path, *, site: bool = True) -> dict[str, str]:
    """The results of a build by name, each as a digest of what must not differ.

    Parameters
    ----------
    folder : Path
        As ``_build``.
    site : bool, optional
        Whether to look at the site as well.

    Returns
    -------
    dict of str to str
        One entry a field of the ledger, an output of a cell, a file of numbers, a file of the site.

    Raises
    ------
    FileNotFoundError
        If there is no ledger: nothing was built there.
    """
    found: dict[str, str] = {}
    ledger = without_seconds(_json(folder / LEDGER))
    for key, value in _leaves(ledger):
        found[f"{LEDGER}#{key}"] = _digest(json.dumps(value).encode())
    for path in sorted((folder / NOTEBOOKS).rglob("*.ipynb")):
        name = path.relative_to(folder).as_posix()
        for part, data in _parts(_json(path)):
            found[f"{name}#{part}"] = _digest(data)
    for path in sorted((folder / FIGURES).rglob("*.csv")):
        found[path.relative_to(folder).as_posix()] = _digest(path.read_bytes())
    if site:
        for path in sorted(p for p in (folder / SITE).rglob("*") if p.is_file()):
            found[path.relative_to(folder).as_posix()] = _digest(_site_file(path))
    return found


def without_seconds(value: Any) -> Any:
    """A ledger without its times."""
    if isinstance(value, dict):
        return {key: without_seconds(part) for key, part in value.items() if key != "seconds"}
    if isinstance(value, list):
        return [without_seconds(part) for part in value]
    return value


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from _leaves(part, f"{path}/{key}" if path else key)
    elif isinstance(value, list) and value:
        for index, part in enumerate(value):
            name = part.get("id") or part.get("name") or index if isinstance(part, dict) else index
            yield from _leaves(part, f"{path}/{name}")
    else:
        yield path, value


def _parts(notebook: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """The cells of a notebook without times, each output and each picture by itself."""
    for index, cell in enumerate(notebook["cells"]):
        kept = {key: part for key, part in cell.items() if key not in ("outputs", "metadata")}
        kept["metadata"] = _timeless(cell["metadata"])
        yield f"cell {index}", _canonical(kept)
        for number, output in enumerate(cell.get("outputs", [])):
            where = f"cell {index}, output {number}"
            kinds = {kind for kind in output.get("data", {}) if kind.startswith("image/")}
            for kind in sorted(kinds):
                yield f"{where}, picture", "".join(output["data"][kind]).encode()
            if kinds:
                rest = {kind: part for kind, part in output["data"].items() if kind not in kinds}
                output = output | {"data": rest}
            yield where, _canonical(output)
    yield "metadata", _canonical(_timeless(notebook["metadata"]))


def _timeless(metadata: dict[str, Any]) -> dict[str, Any]:
    return {key: part for key, part in metadata.items() if key not in ("papermill", "execution")}


def _site_file(path: Path) -> bytes:
    """A file of the site without times."""
    if path.name == LEDGER:
        return _canonical(without_seconds(_json(path)))
    if path.suffix == ".ipynb":
        return b"".join(data for _, data in _parts(_json(path)))
    if path.name == "searchindex.js":
        return _search_index(path.read_text(encoding="utf-8"))
    if path.suffix in _TEXTS and "_static" not in path.parts:
        text = path.read_text(encoding="utf-8")
        if path.stem == "status":  # its tables list the slowest pages and cells in their order
            text = re.sub(r"<table\b.*?</table>", "", text, flags=re.DOTALL)
        return _TIME.sub("a time", text).encode()
    return path.read_bytes()


def _search_index(text: str) -> bytes:
    """The index of the search without the words of the page that shows times."""
    index = json.loads(text[text.index("{") : text.rindex("}") + 1])
    status = [i for i, name in enumerate(index["docnames"]) if name.endswith("status")]
    for kind in ("terms", "titleterms"):
        words = {}
        for word, pages in index[kind].items():
            kept = [page for page in _as_list(pages) if page not in status]
            if kept:
                words[word] = kept
        index[kind] = words
    return _canonical(index)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False).encode()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
