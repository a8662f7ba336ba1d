"""All mutants of a file: where each mistake goes, and what names it for good."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from .operators import changes


@dataclass(frozen=True)
class Mutant:
    """One mistake in one file.

    Attributes
    ----------
    file, function : str
        Below `src/dpadmm`; the function, with its class, or "" for the body of the module.
    before, after : str
        The lines without and with the mistake, on one line. With the two above they name the mutant, so that a list of
        mutants stays right when lines move.
    line : int
        Where it is now.
    original : str
        The file without the mistake.
    first, last, text : int, int, str
        Which of its bytes the mistake replaces, and by what.
    """

    file: str
    function: str
    before: str
    after: str
    line: int
    original: str = field(repr=False)
    first: int
    last: int
    text: str

    @property
    def name(self) -> tuple[str, str, str, str]:
        return self.file, self.function, self.before, self.after

    @property
    def source(self) -> str:
        """The file with the mistake."""
        whole = self.original.encode()
        return (whole[: self.first] + self.text.encode() + whole[self.last :]).decode()

    @property
    def is_another_program(self) -> bool:
        """Whether the mistake can be compiled and is more than a matter of writing."""
        try:
            return ast.dump(ast.parse(self.source)) != ast.dump(ast.parse(self.original))
        except SyntaxError:
            return False

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.function or 'module'}\n    - {self.before}\n    + {self.after}"


def mutants_of(file: str, source: str) -> Iterator[Mutant]:
    """Every mutant of a file, each name once, in the order of the lines; some may be the same program."""
    page, seen = _Page(source), set()
    for function, node in _places(ast.parse(source), ()):
        for place, text in changes(node, page.text):
            made = page.mutant(file, function, place, text)
            if made.name not in seen and made.before != made.after:
                seen.add(made.name)
                yield made


def _places(node: ast.AST, path: tuple[str, ...]) -> Iterator[tuple[str, ast.AST]]:
    """Every node that may decide about numbers, with the function it is in; not texts, annotations and messages."""
    for child in _deciding(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            if child.name not in ("__repr__", "__str__"):
                yield from _places(child, (*path, child.name))
            continue
        yield ".".join(path), child
        if not isinstance(child, ast.Raise):
            yield from _places(child, path)


def _deciding(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.FunctionDef):
        yield from (*node.args.defaults, *(default for default in node.args.kw_defaults if default), *node.body)
    elif isinstance(node, ast.ClassDef):
        yield from node.body
    elif isinstance(node, ast.AnnAssign):
        yield from [node.value] if node.value else []
    elif isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom) or _is_refusal(node):
        return
    else:
        yield from ast.iter_child_nodes(node)


def _is_refusal(node: ast.AST) -> bool:
    """The making of an error, whose words decide nothing."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in REFUSALS


REFUSALS = {
    "InvalidParameter",
    "InvalidData",
    "CannotCertify",
    "PromiseBroken",
    "QueryRefused",
    "SchemeMismatch",
    "Diverged",
    "FileProblem",
    "TypeVar",
    "cast",
}


class _Page:
    """A source by the positions of its nodes, which count bytes."""

    def __init__(self, source: str) -> None:
        self._source, self._bytes = source, source.encode()
        self._starts = [0]
        for line in self._bytes.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def span(self, place: ast.AST | tuple[ast.AST, ast.AST]) -> tuple[int, int]:
        if isinstance(place, tuple):
            return self.span(place[0])[1], self.span(place[1])[0]
        first = self._starts[place.lineno - 1] + place.col_offset  # type: ignore[attr-defined]
        last = self._starts[place.end_lineno - 1] + place.end_col_offset  # type: ignore[attr-defined]
        return first, last

    def text(self, place: ast.AST | tuple[ast.AST, ast.AST]) -> str:
        first, last = self.span(place)
        return self._bytes[first:last].decode()

    def mutant(self, file: str, function: str, place: ast.AST | tuple[ast.AST, ast.AST], text: str) -> Mutant:
        """The mutant with `text` in this place, named by the whole lines around it."""
        first, last = self.span(place)
        line = sum(start <= first for start in self._starts)
        start = self._starts[line - 1]
        end = next((start for start in self._starts if start >= max(last, first + 1)), len(self._bytes))
        before = self._bytes[start:end]
        after = self._bytes[start:first] + text.encode() + self._bytes[last:end]
        return Mutant(file, function, _joined(before), _joined(after), line, self._source, first, last, text)


def _joined(lines: bytes) -> str:
    return " ".join(lines.decode().split())
