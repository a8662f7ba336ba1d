"""Two ways to see a second moment: whole, or the mean row and at most the diagonal where d × d is too much."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpadmm.privacy.questions import MOMENTS, ROW_MOMENTS, JointMoments, Question, RowMoments
from dpadmm.problem.problem import Problem
from dpadmm.solvers.auto.coordinates import Coordinates
from dpadmm.solvers.auto.moment_cleaning import clean_diagonal, clean_mean, clean_second_moment, symmetrised
from dpadmm.solvers.auto.rules import Rules
from dpadmm.solvers.auto.wide_coordinates import SpikedCoordinates
from dpadmm.solvers.auto.wide_rules import WideRules
from dpadmm.solvers.base import Oracle

Array = NDArray[np.float64]


class FirstRelease(Protocol):
    """What the first release asks for, and the coordinates made from the answer."""

    def question(self, problem: Problem) -> Question[Any]: ...

    def blank(self, problem: Problem) -> Coordinates | SpikedCoordinates:
        """Coordinates before anything was asked."""
        ...

    def ask(self, oracle: Oracle, problem: Problem) -> tuple[Array, Coordinates | SpikedCoordinates]:
        """The label correlation and the coordinates."""
        ...


def first_release_of(rules: Rules) -> FirstRelease:
    return MeanRow(rules) if isinstance(rules, WideRules) else WholeMoment(rules)


@dataclass(frozen=True)
class WholeMoment:
    """The d × d second moment."""

    rules: Rules

    def question(self, problem: Problem) -> JointMoments:
        rules = self.rules
        return JointMoments(rules.balance, problem.loss.outputs, rules.slope_unit, problem.non_negative)

    def blank(self, problem: Problem) -> Coordinates:
        return Coordinates.blank(problem.shape[0], problem.row_norm)

    def ask(self, oracle: Oracle, problem: Problem) -> tuple[Array, Coordinates]:
        correlation, second = oracle.ask(MOMENTS)
        second = symmetrised(second)
        noise = oracle.noise_std(MOMENTS) / math.sqrt(self.rules.balance)
        return correlation, whitened_by(second, noise, problem, self.rules.flattening)


def whitened_by(second: Array, noise_std: float, problem: Problem, flattening: float) -> Coordinates:
    """Coordinates from a noisy second moment of rows divided by their declared norm."""
    trace = mean_square(second, noise_std, problem)
    cleaned = clean_second_moment(second, noise_std, trace)
    return Coordinates.whiten(cleaned, problem.row_norm * math.sqrt(trace), flattening)


def mean_square(second: Array, noise_std: float, problem: Problem) -> float:
    """Mean squared norm of the rows that a noisy second moment belongs to, known where rows have norm one."""
    doubt = 2 * math.sqrt(len(second)) * noise_std
    return 1.0 if problem.unit_rows else min(max(float(np.trace(second)), doubt), 1.0)


@dataclass(frozen=True)
class MeanRow:
    """The mean row, the mean squared norm, and the diagonal of the second moment where the rules ask for it."""

    rules: WideRules

    def question(self, problem: Problem) -> RowMoments:
        rules = self.rules
        return RowMoments(rules.balance, rules.diagonal, rules.length, problem.loss.outputs, rules.slope_unit)

    def blank(self, problem: Problem) -> SpikedCoordinates:
        d = problem.shape[0]
        return SpikedCoordinates.whiten(np.full(d, 1.0 / d), np.zeros(d), problem.row_norm)

    def ask(self, oracle: Oracle, problem: Problem) -> tuple[Array, SpikedCoordinates]:
        correlation, mean, diagonal, squared = oracle.ask(ROW_MOMENTS)
        rules, noise = self.rules, oracle.noise_std(MOMENTS)
        trace = 1.0 if problem.unit_rows else min(max(float(squared[0]), 2 * noise / math.sqrt(rules.length)), 1.0)
        size, d = math.sqrt(trace), len(mean)
        centre = clean_mean(mean / size, noise / math.sqrt(rules.balance) / size, problem.constraint.free)
        bulk = np.full(d, 1.0 / d)
        if diagonal.size:
            bulk = clean_diagonal(diagonal / trace, noise / math.sqrt(rules.diagonal) / trace)
        coordinates = SpikedCoordinates.whiten(bulk, centre, problem.row_norm * size, rules.crowding, rules.visibility)
        return correlation, coordinates
