"""A released linear model as a rule for raw rows, made of public numbers only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpadmm.scoring.raw_inputs import Input, Label

REGRESSION = "Of a regression, score = (prediction - middle) / half of the declared target range: use the prediction."
"""What the files say of the column beside the prediction."""


@dataclass(frozen=True)
class Promise:
    """The privacy statement that covers the numbers of a model, in short."""

    epsilon: float
    delta: float
    relation: str
    seeded: bool
    plan_digest: str

    @property
    def lines(self) -> tuple[str, ...]:
        """As comments say it; numbers in full, so that none is rounded."""
        private = (
            "seeded: NOT private, because whoever knows the seed can subtract the noise."
            if self.seeded
            else f"({self.epsilon!r}, {self.delta!r})-differentially private under {self.relation} neighbours."
        )
        return (
            "It holds released numbers of the model and what was declared, nothing else from the training rows.",
            "Reading it or scoring with it spends no further budget (post-processing). The privacy statement of the",
            f"model covers it (statement.txt, model.json; plan {self.plan_digest[:16]}). The model is",
            private,
            "A score tells about the row it was made from: treat scores like the table.",
        )


@dataclass(frozen=True, eq=False)
class LinearScore:
    """score(row) = s(row) · (row's features, 1) @ weights, with s(row) = min(1, row_norm / ‖(row's features, 1)‖).

    Parameters
    ----------
    inputs : sequence of Input
        The raw columns, in the order of the features.
    weights : (features + intercept, outputs) ndarray
        Of the features as the inputs make them; the last row is the intercept's, if there is one.
    row_norm : float
    intercept : bool
        Whether a constant 1 is appended to each row; it counts in the norm.
    labels : sequence or None
        Classes, two for a single output.
    target_range : (lower, upper) or None
        Of a regression: the prediction is (upper − lower)/2 · score + (lower + upper)/2.
    promise : Promise
    """

    inputs: Sequence[Input]
    weights: NDArray[np.float64]
    row_norm: float
    intercept: bool
    labels: Sequence[Label] | None
    target_range: tuple[float, float] | None
    promise: Promise

    @property
    def outputs(self) -> int:
        return int(self.weights.shape[1])

    @property
    def names(self) -> tuple[str, ...]:
        """Of the raw columns."""
        return tuple(each.name for each in self.inputs)
