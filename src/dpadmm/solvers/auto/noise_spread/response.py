"""How the rows answer a moved question: a model of their second moment and curvature, from a transcript alone.

A gradient is asked at points that earlier noise has moved, so noise reaches the coefficients through the curvature the
rows really have. Three things about it are estimated from what was released; docs/uncertainty.md tells how well.

- *Second moment.* The released matrix, cleaned as for the fit, but without the floors that make it safe to invert.
- *Blur.* Cleaning keeps what stands out of the noise and flattens the rest, but real rows have directions with next to
  no variance, in which nothing pulls noise back. How uneven the hidden part is shows in the matrix's Frobenius norm,
  whose noise is known. Truths of that unevenness are drawn as Wishart matrices around the cleaned one. The curvature
  of classifiers is uneven beyond that, by how uneven the features' own mean squares are: rows with a rare feature are
  long in the coordinates of the fit, and the cap takes their curvature away.
- *Curvature.* That of the capped loss at the released model, for signed margins whose mean (the released correlation)
  and square (the released second moment) are known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.privacy.questions import MOMENTS, SECOND_MOMENT
from dpadmm.problem.losses.base import Loss
from dpadmm.randomness import public_generator
from dpadmm.solvers.auto.first_release import mean_square, whitened_by
from dpadmm.solvers.auto.moment_cleaning import clean_second_moment, clean_whitened_moment, symmetrised
from dpadmm.solvers.auto.noise_spread.transcript import Transcript
from dpadmm.solvers.auto.solver import AutoState

Array = NDArray[np.float64]

LOWER_FLOOR = 0.02
"""Floors of the cleaned second moment relative to those of the fit, which inverts it."""

USUAL_BLUR = 0.1
"""Blur where the released matrix is too noisy to tell."""

SIGNIFICANT = 2.0
"""Standard errors beyond which a blur is believed."""

LEAST_BLUR = 0.02
"""Unevenness below which nothing is drawn."""

RARITY, FEW_FEATURES = 1.5, 20
"""Unevenness of the curvature relative to that of the features' mean squares, and the size of a small table."""

MARGINS = 20_000
"""Simulated margins over which a curvature is averaged."""


@dataclass(frozen=True, eq=False)
class Response:
    """A model of the rows.

    Attributes
    ----------
    spike : (d, d)
        The leading direction of the second moment with its share, well known at every budget.
    root : (d, d)
        Square root of the rest: rest = root rootᵀ.
    blur : float
        Relative variance of the eigenvalues of the true rest around the cleaned one.
    unevenness : float
        The same of the curvature around the second moment.
    curvature : float
        Of the capped loss in the margin, at the released model.
    """

    spike: Array
    root: Array
    blur: float
    unevenness: float
    curvature: float

    @classmethod
    def of(cls, transcript: Transcript, state: AutoState) -> Response:
        second = _second_moment(transcript)
        values, vectors = np.linalg.eigh(second)
        leading, rest = vectors[:, -1], np.maximum(values[:-1], 0.0)
        linear = not transcript.problem.loss.curvature_fades
        root = vectors[:, :-1] * np.sqrt(rest)
        return cls(
            values[-1] * np.outer(leading, leading),
            root,
            _blur(transcript, leading, rest),
            0.0 if linear else _unevenness(np.sum(root**2, axis=1)),
            _capped_curvature(transcript, state, second),
        )

    def draw(self, most: float, rng: np.random.Generator) -> tuple[Array, Array]:
        """A second moment the rows may have, and one weighted by their curvature; `most` limits how uneven."""
        drawn = self.root @ _spread_out(self.root.shape[1], min(self.blur, most), rng)
        weighted = drawn @ _spread_out(drawn.shape[1], min(self.unevenness, most), rng)
        return self.spike + drawn @ drawn.T, self.spike + weighted @ weighted.T


def _unevenness(squares: Array) -> float:
    """Of the curvature, from that of the features' mean squares; less in small tables, where few features are rare."""
    d, total = len(squares), float(squares.sum())
    if total == 0:
        return 0.0
    return RARITY * (d * float(squares @ squares) / total**2 - 1) * d / (d + FEW_FEATURES)


def _spread_out(size: int, unevenness: float, rng: np.random.Generator) -> Array:
    """G with E[GGᵀ] = I, whose eigenvalues vary by `unevenness`; the identity where that is next to nothing."""
    if unevenness < LEAST_BLUR:
        return np.eye(size)
    columns = max(2, round(size / unevenness))
    return np.asarray(rng.standard_normal((size, columns)) / math.sqrt(columns))


def _second_moment(transcript: Transcript) -> Array:
    """Of the mapped rows, cleaned with lower floors."""
    problem, noise = transcript.problem, _moment_noise(transcript)
    noisy = symmetrised(transcript.moments[1])
    trace = mean_square(noisy, noise, problem)
    cleaned = clean_second_moment(noisy, noise, trace, LOWER_FLOOR)
    if transcript.second_moment is not None:
        whitened = symmetrised(transcript.second_moment)
        refined = clean_whitened_moment(whitened, transcript.noise[SECOND_MOMENT], LOWER_FLOOR)
        cleaned = whitened_by(noisy, noise, problem, transcript.solver.rules.flattening).model_of(refined)
    return cleaned * (problem.row_norm**2 * trace)


def _moment_noise(transcript: Transcript) -> float:
    return transcript.noise[MOMENTS] / math.sqrt(transcript.solver.rules.balance)


def _blur(transcript: Transcript, leading: Array, rest: Array) -> float:
    """Squared Frobenius norm off the leading direction beyond what is cleaned and what is noise, per mean square."""
    if transcript.second_moment is not None:
        return 0.0
    scale = transcript.problem.row_norm**2
    noisy, noise = scale * symmetrised(transcript.moments[1]), scale * _moment_noise(transcript)
    d, kept = len(leading), float(rest @ rest)
    along = noisy @ leading
    squares = float((noisy**2).sum() - 2 * along @ along + (along @ leading) ** 2)
    total = squares - noise**2 * d * (d - 1) / 2
    unit = (float(rest.sum()) ** 2 + kept) / d
    seen = max(0.0, (total - kept) / unit)
    doubt = (noise**2 * d / math.sqrt(2) + noise * math.sqrt(2 * max(total, kept))) / unit
    seen = seen if seen >= SIGNIFICANT * doubt else 0.0
    expected = max(seen, 5 * USUAL_BLUR)
    return (seen * expected**2 + USUAL_BLUR * doubt**2) / (expected**2 + doubt**2)


def _capped_curvature(transcript: Transcript, state: AutoState, second: Array) -> float:
    """Mean curvature over rows that the cap leaves alone, for rows of exponentially distributed squared length."""
    loss, rules = transcript.problem.loss, transcript.solver.rules
    if not loss.curvature_fades:
        return 1.0
    rng = public_generator(0)
    margins, targets = _margins(transcript, state, second, rng)
    squared_lengths = rng.exponential(size=MARGINS)
    slopes = loss.slope(margins, targets).reshape(MARGINS, -1)
    free = np.sum(slopes**2, axis=1) * squared_lengths <= rules.cap**2
    return float(np.mean(_mean_curvature(loss, margins, targets) * squared_lengths * free))


def _margins(
    transcript: Transcript, state: AutoState, second: Array, rng: np.random.Generator
) -> tuple[Array, NDArray[Any]]:
    """Gaussian margins of the released model, class by class, with the means and squares that were released."""
    problem = transcript.problem
    x = state.coordinates.to_model(state.z).reshape(len(second), -1)
    pulled = x.T @ transcript.moments[0].reshape(len(x), -1) * problem.row_norm
    seen = x.T @ symmetrised(transcript.moments[1]) @ x * problem.row_norm**2
    if x.shape[1] == 1:
        mean = float(pulled[0, 0])
        square = max(float(seen[0, 0]), float((x.T @ second @ x)[0, 0]) / 2, mean**2)
        deviation = math.sqrt(max(square - mean**2, square / 10))
        return mean + deviation * rng.standard_normal(MARGINS), np.ones(MARGINS)
    classes = x.shape[1]
    means = classes * (pulled - pulled.mean(axis=1, keepdims=True)).T
    means -= means.mean(axis=1, keepdims=True)
    within, vectors = np.linalg.eigh((seen + seen.T) / 2 - means.T @ means / classes)
    least = max(float(np.trace(seen)), float(np.trace(x.T @ second @ x))) / (10 * classes)
    root = vectors * np.sqrt(np.maximum(within, least))
    targets = rng.integers(0, classes, MARGINS)
    return means[targets] + rng.standard_normal((MARGINS, classes)) @ root.T, targets


def _mean_curvature(loss: Loss, margins: Array, targets: NDArray[Any]) -> Array:
    """Curvature of each row, the mean over the outputs where there are several."""
    curvature = loss.curvature(margins, targets)
    return curvature if curvature.ndim == 1 else np.trace(curvature, axis1=1, axis2=2) / curvature.shape[1]
