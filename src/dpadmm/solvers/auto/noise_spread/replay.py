"""The solver run again and again on simulated answers with fresh noise: how far its coefficients move."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import QueryRefused
from dpadmm.privacy.questions import CURVATURE, GRADIENT, MOMENTS, SECOND_MOMENT, Kind
from dpadmm.problem.hidden_pass_program import Program
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.randomness import public_generator
from dpadmm.solvers.auto.coordinates import Coordinates
from dpadmm.solvers.auto.noise_spread.response import Response
from dpadmm.solvers.auto.noise_spread.transcript import Transcript
from dpadmm.solvers.auto.solver import REFINING_GRADIENT, AutoState
from dpadmm.solvers.base import run

A = TypeVar("A")
Array = NDArray[np.float64]

GRADIENTS = (GRADIENT, REFINING_GRADIENT)

MOST_HIDDEN, MOST_HIDDEN_FROM_ROWS = 2.0, 0.5
"""Unevenness drawn at most: for the weights, and for the scores of rows, which seldom lie along a hidden direction."""

WIDENING = 1.08
"""Factor on the standard errors of weights: one that is too small misleads more than one that is too large."""

LARGEST_RESPONSE = 2.0
"""Curvature relative to that of the fit's model beyond which a linear answer would overshoot, as capped ones do not."""

SEED = 0
"""Of the simulated noise. It hides nothing, and a fixed one gives the same standard errors each time."""


@dataclass(frozen=True, eq=False)
class Spread:
    """Deviations of the released weights that the noise could have caused, (draws, *weights).

    `weights` are such deviations; `margins` are their counterparts for the scores of rows. A row is itself a draw from
    the population, so it has little energy where the population has little, which is where noise is left alone: each
    deviation is carried from the second moment of its replay to the released one.
    """

    weights: Array
    margins: Array

    @staticmethod
    def std(deviations: Array) -> Array:
        """Standard errors of weights, or of linear functions of them, from their deviations."""
        return np.asarray(WIDENING * np.sqrt(np.mean(deviations**2, axis=0)))

    def margin_std(self, rows: Array) -> Array:
        """Of the scores of mapped rows, (n,) or (n, outputs)."""
        flat = self.margins.reshape(len(self.margins), self.margins.shape[1], -1)
        squares = np.zeros((rows.shape[0], flat.shape[2]))
        for deviation in flat:
            squares += np.asarray(rows @ deviation) ** 2
        found = np.sqrt(squares / len(flat))
        return found[:, 0] if self.margins.ndim == 2 else found


def noise_spread(transcript: Transcript) -> Spread:
    """Replays of the whole plan on rows as the released answers describe them.

    Several truths are drawn, since a transcript does not tell all about the rows, and the noise several times for each;
    only deviations from the mean of the same truth count. The rows themselves are held fixed: this is not the error of
    having sampled them from a population.
    """
    state = transcript.final_state()
    response, rng = Response.of(transcript, state), public_generator(SEED)
    truths, repeats = _how_often(transcript)
    mean = response.spike + response.root @ response.root.T
    weights, margins = [], []
    for _ in range(truths):
        second, weighted = response.draw(MOST_HIDDEN, rng)
        weights.append(_deviations(transcript, state, second, response.curvature * weighted, repeats, rng))
        second, weighted = response.draw(MOST_HIDDEN_FROM_ROWS, rng)
        deviations = _deviations(transcript, state, second, response.curvature * weighted, repeats, rng)
        margins.append(np.einsum("ij,kj...->ki...", _carried(weighted, mean), deviations))
    return Spread(np.concatenate(weights), np.concatenate(margins))


def _deviations(
    transcript: Transcript, state: AutoState, second: Array, curvature: Array, repeats: int, rng: np.random.Generator
) -> Array:
    rows = SimulatedRows.of(transcript, state, second, curvature, rng)
    found = np.stack([run(transcript.solver, transcript.problem, rows).coefficients for _ in range(repeats)])
    return np.asarray((found - found.mean(axis=0)) * math.sqrt(repeats / (repeats - 1)))


def _carried(replayed: Array, released: Array) -> Array:
    """released^(-1/2) replayed^(1/2): takes weights for rows of one second moment to weights for rows of another."""
    return _power(released, -0.5) @ _power(replayed, 0.5)


def _how_often(transcript: Transcript) -> tuple[int, int]:
    """Truths, and replays of each; fewer where one takes long."""
    return (12, 4) if transcript.quick else (3, 4) if transcript.penalised else (5, 4)


@dataclass(eq=False)
class SimulatedRows:
    """An oracle without rows: answers are linear in the question, with noise as the plan has it."""

    transcript: Transcript
    second: Array
    curvature: Array
    centre: Array
    pull: Array
    rng: np.random.Generator
    matrix: Array | None = None

    @classmethod
    def of(
        cls, transcript: Transcript, state: AutoState, second: Array, curvature: Array, rng: np.random.Generator
    ) -> SimulatedRows:
        """Rows that answer at the last point of the run what the run believes them to answer there."""
        coordinates = state.coordinates
        assert isinstance(coordinates, Coordinates)
        gradient = transcript.solver.last_gradient(state, transcript.noise[GRADIENT])
        pull = (coordinates.basis / np.sqrt(coordinates.scale)) @ gradient
        stable = _limited(curvature, coordinates, state.curvature.matrix)
        return cls(transcript, second, stable, coordinates.to_model(state.z), pull, rng)

    def ask(self, kind: Kind[A], *at: Any) -> A:
        return cast(A, self._gradient(kind, *at) if kind in GRADIENTS else self._answers[kind](*at))

    def walk(self, program: Program, tick: Callable[[int], None] | None = None) -> tuple[Array, Array]:
        raise QueryRefused("hidden passes have no transcript")

    @cached_property
    def _answers(self) -> dict[str, Callable[..., Any]]:
        return {MOMENTS: self._moments, SECOND_MOMENT: self._second_moment, CURVATURE: self._curvature}

    def _moments(self) -> tuple[Array, Array]:
        correlation, _ = self.transcript.moments
        second = self.second / self.transcript.problem.row_norm**2
        weight = math.sqrt(self.transcript.solver.rules.balance)
        return self._noisy(correlation, MOMENTS), self._noisy(second * weight, MOMENTS) / weight

    def _gradient(self, kind: str, x: Array) -> Array:
        assert self.matrix is not None
        answer = self.matrix.T @ (self.curvature @ (self.matrix @ x - self.centre) + self.pull)
        # A mean of capped gradients is never longer than the cap.
        length = float(np.linalg.norm(answer))
        return self._noisy(answer * min(1.0, self.transcript.solver.rules.cap / max(length, 1e-300)), kind)

    def _second_moment(self) -> Array:
        assert self.matrix is not None
        return self._noisy(self.matrix.T @ self.second @ self.matrix, SECOND_MOMENT)

    def _curvature(self, x: Array, weights: Array) -> Array:
        return self._noisy(weights * np.diag(self.curvature), CURVATURE)

    def change_coordinates(self, matrix: Array | SpikedMap) -> None:
        self.matrix = np.asarray(matrix)

    def noise_std(self, kind: str) -> float:
        return self.transcript.noise[kind]

    def _noisy(self, answer: Array, kind: str) -> Array:
        return answer + self.noise_std(kind) * self.rng.standard_normal(answer.shape)


def _limited(curvature: Array, coordinates: Coordinates, fitted: Array) -> Array:
    """The curvature with no direction steeper than `LARGEST_RESPONSE` times that `fitted`, in the coordinates z."""
    outward = coordinates.matrix @ _power(fitted, -0.5)
    inward = coordinates.basis / np.sqrt(coordinates.scale) @ _power(fitted, 0.5)
    values, vectors = np.linalg.eigh(outward.T @ curvature @ outward)
    turned = inward @ vectors
    return np.asarray((turned * np.minimum(values, LARGEST_RESPONSE)) @ turned.T)


def _power(matrix: Array, power: float) -> Array:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 1e-9 * values[-1]) ** power) @ vectors.T)
