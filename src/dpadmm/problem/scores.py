"""How well a model does on one row, as a number from 0 to 1: what a private search sums over held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from dpadmm.errors import InvalidParameter, shown
from dpadmm.problem.checks import Array, number
from dpadmm.problem.losses.base import Loss
from dpadmm.registry import Registry

SCORES: Registry[type[Score]] = Registry("score")


class Score(Protocol):
    """Fields are public; the value of one row depends on that row and the model alone."""

    name: ClassVar[str]

    def values(self, margin: Array, target: Array, loss: Loss) -> Array:
        """One number from 0 to 1 a row; more is better."""
        ...


@SCORES.register("accuracy")
@dataclass(frozen=True)
class Accuracy:
    """1 if the most likely class is the right one."""

    name: ClassVar[str] = "accuracy"

    def values(self, margin: Array, target: Array, loss: Loss) -> Array:
        hit = margin.argmax(axis=1) == target if loss.outputs > 1 else (margin > 0) == (target > 0)
        return np.asarray(hit, dtype=np.float64)


@SCORES.register("loss")
@dataclass(frozen=True)
class ClippedLoss:
    """1 − min(loss, bound)/bound, with the loss of the model and targets as it sees them (regression: in [−1, 1]).

    Parameters
    ----------
    bound : float
        Public. Losses beyond it count alike; the smaller it is, the less the noise hides.
    """

    bound: float = 2.0
    name: ClassVar[str] = "loss"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", number("score_bound", self.bound, strict=True))

    def values(self, margin: Array, target: Array, loss: Loss) -> Array:
        return np.asarray(1.0 - np.minimum(loss.value(margin, target), self.bound) / self.bound)


def make_score(name: str, bound: float | None = None) -> Score:
    """The score called `name`; only "loss" takes a bound.

    Examples
    --------
    >>> make_score("loss", 0.5)
    ClippedLoss(bound=0.5)
    """
    kind = SCORES[name]
    if bound is None:
        return kind()
    if kind is not ClippedLoss:
        raise InvalidParameter(f"score_bound with scoring={shown(name)}", "scoring='loss'", "drop score_bound")
    return ClippedLoss(bound)
