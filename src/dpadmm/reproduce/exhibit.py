"""What a figure or table of a paper is, declared: all that is needed to measure, judge, draw and describe it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

Numbers = Mapping[str, Any]
"""What one measurement gives: numbers by name; texts and lists only for tables."""

Promise = Literal["valid", "valid in part", "invalid", "none"]
"""What is left of a paper's privacy claim."""

CurveKind = Literal["private", "published", "open"]
"""Valid at the stated ε; with the noise as printed in a paper; not private at all."""


class Panel(Protocol):
    """One column of a figure: a problem on a table."""

    @property
    def title(self) -> str: ...

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the data sets that are read."""
        ...


@dataclass(frozen=True)
class Case:
    """One measurement that an algorithm is asked for."""

    panel: Any
    x: float
    seed: int
    quick: bool


Algorithm = Callable[[Case], Numbers]
"""A function, or an instance of a frozen dataclass whose fields are all its settings."""


@dataclass(frozen=True)
class Curve:
    """One line of a figure.

    Parameters
    ----------
    label : str
        Its name in the legend.
    algorithm : Algorithm
        What is measured at each point.
    kind : {"private", "published", "open"}
        Valid at the stated ε; with the noise that a paper prints, drawn grey; not private, drawn dotted.
    flat : bool
        Whether it is the same at every x, so that one x is enough.
    repeated : bool
        Whether seeds matter; if not, one is enough.
    """

    label: str
    algorithm: Algorithm
    kind: CurveKind = "private"
    flat: bool = False
    repeated: bool = True


@dataclass(frozen=True)
class Axis:
    """What varies along a figure, at which values, and at which of them with `--quick`."""

    label: str
    values: tuple[float, ...]
    quick: tuple[float, ...]
    logarithmic: bool = True


@dataclass(frozen=True)
class Metric:
    """One row of a figure.

    Parameters
    ----------
    key : str
        The number's name among those of a measurement.
    label : str
        Of the axis, with the unit.
    above : str
        Label of the curve whose value is subtracted; "" if none is.
    lower_is_better, logarithmic : bool
        How to judge, and how to draw.
    only : tuple of str
        Titles of the panels that show it; all of them if empty.
    """

    key: str
    label: str
    above: str = ""
    lower_is_better: bool = False
    logarithmic: bool = False
    only: tuple[str, ...] = ()


@dataclass(frozen=True)
class Better:
    """Whether one curve beats another, point by point: by more than two standard errors of the difference."""

    this: str
    that: str
    metric: str


@dataclass(frozen=True)
class PaperClaim:
    """A finding of a paper and the comparison that tests it.

    `tuned` is the same comparison with steps chosen for each algorithm by itself: a claim that fails there and holds
    otherwise is one about the step.
    """

    text: str
    check: Better
    tuned: Better | None = None


@dataclass(frozen=True)
class Cell:
    """One measurement of an exhibit, by the numbers of its panel and its curve."""

    panel: int
    curve: int
    x: float
    seed: int


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """A figure or table of a paper.

    Parameters
    ----------
    name : str
        For the command line: `liu2022-fig2`.
    paper : str
        Key of the paper in `papers.PAPERS`.
    number, title : str
        As in the paper: "Fig. 2", and what it is about.
    shows : str
        What the paper shows.
    promise : {"valid", "valid in part", "invalid", "none"}
        What is left of its privacy claim.
    privacy : str
        Where the claim is not valid, or that it is.
    setting : str
        How it is measured here, and what the paper leaves open.
    """

    name: str
    paper: str
    number: str
    title: str
    shows: str
    promise: Promise
    privacy: str
    setting: str

    def cells(self, quick: bool, seeds: int | None = None) -> Iterator[Cell]:
        """All measurements, those of one panel together."""
        raise NotImplementedError

    def case(self, cell: Cell, quick: bool) -> tuple[Algorithm, Case]:
        """Who measures a cell, and what it is told."""
        raise NotImplementedError

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the data sets that are read."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class PlottedExhibit(Exhibit):
    """A figure: each metric a row of pictures, each panel a column, each curve a line over x."""

    panels: tuple[Any, ...]
    curves: tuple[Curve, ...]
    x: Axis
    metrics: tuple[Metric, ...]
    seeds: int = 5
    quick_seeds: int = 2
    claims: tuple[PaperClaim, ...] = ()
    best: tuple[str, ...] = ()
    """A private curve and metrics: is it as good as every other private curve by each, within two standard errors?"""

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for panel in self.panels for name in panel.tables))

    def cells(self, quick: bool, seeds: int | None = None) -> Iterator[Cell]:
        usual = self.quick_seeds if quick else self.seeds
        values = self.x.quick if quick else self.x.values
        for panel in range(len(self.panels)):
            for number, curve in enumerate(self.curves):
                for x in values[:1] if curve.flat else values:
                    for seed in range((usual if seeds is None else seeds) if curve.repeated else 1):
                        yield Cell(panel, number, x, seed)

    def case(self, cell: Cell, quick: bool) -> tuple[Algorithm, Case]:
        return self.curves[cell.curve].algorithm, Case(self.panels[cell.panel], cell.x, cell.seed, quick)

    def with_curve(self, curve: Curve, name: str) -> PlottedExhibit:
        """The same figure with one more line, under a name of its own."""
        return replace(self, name=name, curves=(*self.curves, curve))

    def curve(self, label: str) -> Curve:
        return next(curve for curve in self.curves if curve.label == label)


@dataclass(frozen=True, kw_only=True)
class PrintedTable(Exhibit):
    """A table: its rows are computed at once.

    Parameters
    ----------
    head : sequence of str
        Names of the columns.
    rows : callable
        Told whether to be quick, gives {"head": names of columns, "rows": lists of texts, "verdict": one of the
        verdicts, "evidence": a sentence}.
    reads : tuple of str
        Names of the data sets that are read.
    """

    head: Sequence[str]
    rows: Callable[[bool], Numbers]
    reads: tuple[str, ...] = ()

    @property
    def tables(self) -> tuple[str, ...]:
        return self.reads

    def cells(self, quick: bool, seeds: int | None = None) -> Iterator[Cell]:
        yield Cell(0, 0, 0.0, 0)

    def case(self, cell: Cell, quick: bool) -> tuple[Algorithm, Case]:
        return _Rows(self.rows), Case(None, cell.x, cell.seed, quick)


@dataclass(frozen=True)
class _Rows:
    """The rows of a table, as a measurement."""

    rows: Callable[[bool], Numbers]

    def __call__(self, case: Case) -> Numbers:
        return self.rows(case.quick)
