"""Which mutants are tried: the lists beside this file, and a seeded sample of all mistakes that can be made."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path

from .places import Mutant, mutants_of

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCES = ROOT / "src" / "dpadmm"


@dataclass(frozen=True, order=True)
class Guard:
    """The tests that must notice a mistake in one of these files, or in functions of these names there."""

    files: tuple[str, ...]
    tests: tuple[str, ...]
    functions: tuple[str, ...] = ()
    quick: bool = False

    def mutants_of(self, file: str) -> list[Mutant]:
        """Every mistake in one of the files that these tests must notice."""
        made = mutants_of(file, source_of(file))
        return [m for m in made if not self.functions or m.function.split(".")[-1] in self.functions]


def guards() -> list[Guard]:
    """The table of guards.toml."""
    listed = tomllib.loads((HERE / "guards.toml").read_text(encoding="utf-8"))["guard"]
    return [
        Guard(tuple(one["files"]), tuple(one["tests"]), tuple(one.get("functions", ())), one.get("quick", False))
        for one in listed
    ]


def guard_of(file: str) -> Guard:
    """The tests for one file."""
    return next(guard for guard in guards() if file in guard.files)


def all_mutants(quick: bool = False) -> list[Mutant]:
    """Every mistake in every guarded file, or in those that are guarded by quick tests."""
    guarded = sorted((file, guard) for guard in guards() if guard.quick or not quick for file in guard.files)
    return [mutant for file, guard in guarded for mutant in guard.mutants_of(file)]


def sampled(count: int, seed: int, quick: bool = False) -> list[Mutant]:
    """At most one mistake a line. Each has a rank of its own, so that edits elsewhere leave the sample as it is."""
    drawn: dict[tuple[str, int], Mutant] = {}
    for mutant in sorted(all_mutants(quick), key=lambda mutant: _rank(mutant, seed)):
        if len(drawn) < count and (mutant.file, mutant.line) not in drawn and mutant.is_another_program:
            drawn[mutant.file, mutant.line] = mutant
    return list(drawn.values())


def _rank(mutant: Mutant, seed: int) -> str:
    return hashlib.sha256("\0".join((str(seed), *mutant.name)).encode()).hexdigest()


def by_hand() -> list[Mutant]:
    """The mistakes of by_hand.toml, which once went unnoticed."""
    return [_written(**one) for one in tomllib.loads((HERE / "by_hand.toml").read_text(encoding="utf-8"))["mutant"]]


def _written(file: str, before: str, after: str) -> Mutant:
    source = source_of(file)
    if source.count(before) != 1:
        raise ValueError(f"by_hand.toml: {before!r} stands {source.count(before)} times in {file}, not once; mend it")
    start = source.index(before)
    first = len(source[:start].encode())
    line = source[:start].count("\n") + 1
    return Mutant(file, "", before, after, line, source, first, first + len(before.encode()), after)


def harmless() -> dict[tuple[str, str, str, str], str]:
    """Names of mutants that change nothing that matters, and why."""
    listed = tomllib.loads((HERE / "harmless.toml").read_text(encoding="utf-8")).get("mutant", [])
    return {(one["file"], one["function"], one["before"], one["after"]): one["why"] for one in listed}


def source_of(file: str) -> str:
    return (SOURCES / file).read_text(encoding="utf-8")
