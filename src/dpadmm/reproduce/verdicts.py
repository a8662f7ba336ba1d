"""From measurements to verdicts, by rules that were fixed before they were made."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpadmm.reproduce.exhibit import Better, Metric, PaperClaim, PlottedExhibit

CONFIRMED, ONLY_MISTUNED, NOT_CONFIRMED = "confirmed", "only with a mis-tuned step", "not confirmed"
PART_CONFIRMED = "confirmed in part"
CLAIM_INVALID = "claim invalid"
TOO_FEW = "too few measurements"
FAR = 2.0
"""Standard errors of a difference beyond which it counts."""
SLACK = 1e-12

RULE = (
    "At each point (panel and ε) two curves are compared by the mean over seeds. A difference of more than two "
    "standard errors is a win or a loss, any other a tie. A finding is confirmed if there are wins at at least half "
    "of the points and losses at at most a tenth of them, confirmed in part if wins outnumber losses, and not "
    "confirmed otherwise. A point with one seed decides nothing. With two or three seeds a standard error is known "
    "badly, so that such verdicts are provisional."
)


@dataclass(frozen=True)
class Point:
    """Mean, standard error and number of seeds at one place of a curve; `failed` of them gave no finite number."""

    mean: float
    error: float
    seeds: int
    failed: int = 0

    @classmethod
    def of(cls, values: Sequence[float | None]) -> Point | None:
        found = [value for value in values if value is not None]
        if not found:
            return None
        error = float(np.std(found, ddof=1) / math.sqrt(len(found))) if len(found) > 1 else 0.0
        return cls(float(np.mean(found)), error, len(found), len(values) - len(found))


Place = tuple[str, float]
Line = Mapping[float, Point]


@dataclass(frozen=True)
class Tally:
    """Wins, ties and losses of one curve against another."""

    wins: int
    ties: int
    losses: int

    @property
    def points(self) -> int:
        return self.wins + self.ties + self.losses

    @property
    def verdict(self) -> str:
        if not self.points:
            return TOO_FEW
        if 2 * self.wins >= self.points and 10 * self.losses <= self.points:
            return CONFIRMED
        return PART_CONFIRMED if self.wins > self.losses else NOT_CONFIRMED

    def __str__(self) -> str:
        return f"{self.wins} wins, {self.ties} ties, {self.losses} losses"


@dataclass(frozen=True)
class Judged:
    """A finding with its verdict and the evidence for it."""

    text: str
    verdict: str
    evidence: str


class Measurements:
    """The numbers of a figure: by panel, curve and metric, the points along x."""

    def __init__(self, exhibit: PlottedExhibit, cells: Iterable[Mapping[str, Any]]) -> None:
        self.exhibit = exhibit
        self._values: dict[tuple[str, str], dict[float, dict[int, Mapping[str, Any]]]] = {}
        for cell in cells:
            line = self._values.setdefault((cell["panel"], cell["curve"]), {})
            line.setdefault(float(cell["x"]), {})[int(cell["seed"])] = cell["values"]

    def line(self, panel: str, curve: str, metric: Metric) -> Line:
        """Points of a curve; one that is flat has a single one."""
        found = {}
        for x, seeds in sorted(self._values.get((panel, curve), {}).items()):
            point = Point.of([self._value(panel, values, metric, seed) for seed, values in sorted(seeds.items())])
            if point is not None:
                found[x] = point
        return found

    def at(self, panel: str, curve: str, metric: Metric, x: float) -> Point | None:
        line = self.line(panel, curve, metric)
        flat = any(each.label == curve and each.flat for each in self.exhibit.curves)
        return next(iter(line.values()), None) if flat else line.get(x)

    def raw(self, panel: str, curve: str, key: str) -> dict[float, list[Any]]:
        """All values of one number along a curve."""
        lines = self._values.get((panel, curve), {})
        return {
            x: [values[key] for values in seeds.values() if values.get(key) is not None] for x, seeds in lines.items()
        }

    def seconds(self) -> float:
        """Time of all measurements, had they been made one after the other."""
        cells = (values for line in self._values.values() for seeds in line.values() for values in seeds.values())
        return sum(float(values.get("seconds", 0.0)) for values in cells)

    def xs(self, panel: str) -> list[float]:
        flat = {curve.label for curve in self.exhibit.curves if curve.flat}
        return sorted(
            {x for (of, curve), line in self._values.items() if of == panel and curve not in flat for x in line}
        )

    def _value(self, panel: str, values: Mapping[str, Any], metric: Metric, seed: int) -> float | None:
        value = values.get(metric.key)
        if value is None or not metric.above:
            return value
        base = self._base(panel, metric, seed)
        return None if base is None else value - base

    def _base(self, panel: str, metric: Metric, seed: int) -> float | None:
        """The value to subtract: of the same seed, where it was measured for each."""
        seeds = next(iter(self._values.get((panel, metric.above), {}).values()), {})
        values = seeds.get(seed, next(iter(seeds.values()), {}))
        return values.get(metric.key)


def judge(found: Measurements, claim: PaperClaim) -> Judged:
    """A finding of a paper by the measurements."""
    here = tally(found, claim.check)
    evidence = f"{claim.check.this} against {claim.check.that}: {here}"
    if claim.tuned is None:
        return Judged(claim.text, here.verdict, evidence)
    tuned = tally(found, claim.tuned)
    evidence += f"; with steps chosen for each, {claim.tuned.this} against {claim.tuned.that}: {tuned}"
    mistuned = here.verdict == CONFIRMED and tuned.verdict != CONFIRMED
    return Judged(claim.text, ONLY_MISTUNED if mistuned else tuned.verdict, evidence)


def tally(found: Measurements, check: Better) -> Tally:
    """Wins, ties and losses over all panels and values of x where both curves were measured."""
    counts = {1: 0, 0: 0, -1: 0}
    for panel, x in places(found):
        z = advantage(found, check, panel, x)
        if z is not None:
            counts[0 if abs(z) <= FAR else int(math.copysign(1, z))] += 1
    return Tally(counts[1], counts[0], counts[-1])


def places(found: Measurements) -> list[Place]:
    """All panels with all values of x."""
    return [(panel.title, x) for panel in found.exhibit.panels for x in found.xs(panel.title)]


def advantage(found: Measurements, check: Better, panel: str, x: float) -> float | None:
    """How far `this` is ahead, in standard errors of the difference; None where either was not measured."""
    metric = metric_called(found.exhibit, check.metric)
    if metric.only and panel not in metric.only:
        return None
    this, that = found.at(panel, check.this, metric, x), found.at(panel, check.that, metric, x)
    if this is None or that is None or _too_few(found, check, this, that):
        return None
    ahead = (that.mean - this.mean) if metric.lower_is_better else (this.mean - that.mean)
    return ahead / max(math.hypot(this.error, that.error), SLACK * max(1.0, abs(this.mean)))


def _too_few(found: Measurements, check: Better, this: Point, that: Point) -> bool:
    """Whether a curve that scatters was measured once: then nothing is known of its error."""
    scatters = {curve.label for curve in found.exhibit.curves if curve.repeated and found.exhibit.seeds > 1}
    return any(label in scatters and point.seeds < 2 for label, point in ((check.this, this), (check.that, that)))


def metric_called(exhibit: PlottedExhibit, key: str) -> Metric:
    return next(metric for metric in exhibit.metrics if metric.key == key)


def behind(found: Measurements, key: str) -> tuple[int, list[str]]:
    """Of how many points, and at which, the curve that should be best is behind another private one, in words."""
    best = found.exhibit.best[0]
    rivals = [curve.label for curve in found.exhibit.curves if curve.kind == "private" and curve.label != best]
    exceptions, points = [], 0
    for panel, x in places(found):
        values = {rival: advantage(found, Better(best, rival, key), panel, x) for rival in rivals}
        ahead = {rival: -z for rival, z in values.items() if z is not None and z < -FAR}
        points += any(z is not None for z in values.values())
        if ahead:
            told = ", ".join(f"{rival} ({z:.1f})" for rival, z in ahead.items())
            exceptions.append(f"{panel}, ε = {x:g}: {told}")
    return points, exceptions
