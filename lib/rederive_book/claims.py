"""The claims of the book: read from ``chapters/*/claims.yml``, checked, and held as a graph.

A claim is one assertion, stated once. Everything that shows or tries it (cards, dashboard, ledger)
starts from the objects of this module. Whatever is wrong in a file is reported at once, each line
naming the file, the claim and the field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import yaml

from rederive_book.claim_fields import VERDICTS, wrong_fields
from rederive_book.sources import papers

__all__ = ["VERDICTS", "Claim", "Claims", "load", "missing_rows"]


@dataclass(frozen=True)
class Claim:
    """One assertion, as stated in ``claims.yml``.

    Attributes
    ----------
    id : str
        ``<folder>.<subject>``.
    title, statement, verdict : str
        Texts are MyST with TeX between dollars; the verdict is the declared one.
    paper, row : str, str or None
        The source; ``row`` is None for the claims of this book.
    reading, amendment : str or None
    uses : tuple of str
        The claims that the derivation rests on.
    """

    id: str
    title: str
    paper: str
    row: str | None
    statement: str
    verdict: str
    reading: str | None = None
    amendment: str | None = None
    uses: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """The chapter's folder."""
        return self.id.partition(".")[0]

    @property
    def label(self) -> str:
        """The label of its environment on the page."""
        return self.id.replace(".", "-")


class Claims(Mapping[str, Claim]):
    """All claims by id, chapter after chapter, in the order of their files.

    Raises
    ------
    ValueError
        When a claim uses one that does not exist, or claims use each other in a circle.
    """

    def __init__(self, claims: Iterable[Claim]) -> None:
        self._claims = {claim.id: claim for claim in claims}
        unknown = [
            f"{claim.folder}/claims.yml: claim {claim.id}: field 'uses': there is no claim {used!r}"
            for claim in self._claims.values()
            for used in claim.uses
            if used not in self._claims
        ]
        if unknown:
            raise ValueError("\n".join(unknown))
        sorter = TopologicalSorter({claim.id: claim.uses for claim in self._claims.values()})
        try:
            self._order = tuple(sorter.static_order())
        except CycleError as error:
            circle = " -> ".join(reversed(error.args[1]))
            raise ValueError(f"field 'uses' has a circle: {circle}") from None

    def __getitem__(self, claim_id: str) -> Claim:
        return self._claims[claim_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._claims)

    def __len__(self) -> int:
        return len(self._claims)

    @property
    def folders(self) -> tuple[str, ...]:
        """The chapters that have claims."""
        return tuple(dict.fromkeys(claim.folder for claim in self._claims.values()))

    def of_folder(self, folder: str) -> tuple[Claim, ...]:
        """The claims of one chapter."""
        return tuple(claim for claim in self._claims.values() if claim.folder == folder)

    def order(self) -> tuple[str, ...]:
        """Ids such that every claim comes after those it uses."""
        return self._order

    def foundations(self, claim_id: str) -> tuple[str, ...]:
        """Everything a claim rests on, directly or through others, in logical order."""
        found: set[str] = set()
        todo = list(self[claim_id].uses)
        while todo:
            used = todo.pop()
            if used not in found:
                found.add(used)
                todo.extend(self[used].uses)
        return tuple(claim for claim in self._order if claim in found)

    def rests_on_failed(
        self, claim_id: str, verdicts: Mapping[str, str | None] | None = None
    ) -> tuple[str, ...]:
        """The foundations of a claim that are not established: refuted or open.

        Parameters
        ----------
        claim_id : str
        verdicts : mapping of str to str or None, optional
            Verdicts found by a build; where there is none the declared one counts.

        Returns
        -------
        tuple of str
            Amended claims are not among them: what rests on one rests on its amended form.
        """
        found = verdicts or {}
        return tuple(
            used
            for used in self.foundations(claim_id)
            if (found.get(used) or self[used].verdict) in ("refuted", "open")
        )


class _Loader(yaml.SafeLoader):
    """YAML that refuses a key given twice, where PyYAML keeps the last one silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                line = node.start_mark.line + 1
                raise ValueError(f"field {key!r} is given twice in the entry at line {line}")
        return super().construct_mapping(node, deep)


def load(chapters: Path) -> Claims:
    """Read and check every ``<chapters>/<folder>/claims.yml``.

    Parameters
    ----------
    chapters : Path

    Returns
    -------
    Claims

    Raises
    ------
    ValueError
        With one line for each thing that is wrong, naming file, claim and field.
    """
    order = [paper.folder for paper in papers().values()]
    found = sorted(
        Path(chapters).glob("*/claims.yml"),
        key=lambda file: (
            order.index(file.parent.name) if file.parent.name in order else len(order),
            file.parent.name,
        ),
    )
    problems: list[str] = []
    claims: dict[str, Claim] = {}
    for file in found:
        for claim in _read_file(file, problems):
            if claim.id in claims:
                problems.append(f"{_name(file)}: claim {claim.id}: field 'id': given twice")
            claims[claim.id] = claim
    if problems:
        raise ValueError("\n".join(problems))
    return Claims(claims.values())


def _name(file: Path) -> str:
    return f"{file.parent.name}/{file.name}"


def _read_file(file: Path, problems: list[str]) -> Iterator[Claim]:
    try:
        entries = yaml.load(file.read_text(encoding="utf-8"), Loader=_Loader)
    except (ValueError, yaml.YAMLError) as error:
        problems.append(f"{_name(file)}: {error}")
        return
    if not isinstance(entries, list):
        problems.append(f"{_name(file)}: expected a list of claims, got {type(entries).__name__}")
        return
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict):
            problems.append(f"{_name(file)}: entry {number}: expected fields, got {entry!r}")
            continue
        found = list(wrong_fields(entry, file.parent.name))
        name = entry.get("id", f"number {number}")
        problems.extend(f"{_name(file)}: claim {name}: field {text}" for text in found)
        if not found:
            source = entry["source"]
            texts = {key: entry.get(key) for key in ("reading", "amendment")}
            yield Claim(
                id=entry["id"],
                title=entry["title"].strip(),
                paper=source["paper"],
                row=source.get("row"),
                statement=entry["statement"].strip(),
                verdict=entry["verdict"],
                uses=tuple(entry.get("uses") or ()),
                **{key: text.strip() for key, text in texts.items() if text is not None},
            )


def missing_rows(claims: Claims, folder: str) -> tuple[str, ...]:
    """The statements of a chapter's paper that no claim takes up.

    Parameters
    ----------
    claims : Claims
    folder : str
        A chapter; one that tries no paper misses nothing.

    Returns
    -------
    tuple of str
        Rows, as ``<paper>: <row>``.
    """
    claimed = {(claim.paper, claim.row) for claim in claims.values()}
    return tuple(
        f"{paper.key}: {row}"
        for paper in papers().values()
        if paper.folder == folder
        for row in paper.rows
        if row not in paper.context and (paper.key, row) not in claimed
    )
