"""Private rows and a network of their own: they answer one question, the sum of their clipped gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import QueryRefused
from dpadmm.nn.augmented_views import Views
from dpadmm.nn.examples import Examples
from dpadmm.nn.row_gradients import Loss, RowGradients
from dpadmm.privacy.questions import At, ClippedGradient, Question, Space
from dpadmm.privacy.sampling import Batch
from dpadmm.rows.protocol import Rows

Tensor = Any


class NetworkRows:
    """Rows whose gradients a network computes.

    Parameters
    ----------
    examples : Examples
        Private.
    model : torch.nn.Module
        A copy for these rows alone: what a batch leaves behind in a network stays in here.
    loss, views, at_once
        As of `RowGradients`.
    step : int
        The number of questions answered before, by which views are drawn.

    Notes
    -----
    *Formal guarantees.* The sum is of one contribution a row of the batch, each a vector of norm at most the clip, in
    double precision (docs/proofs/neural.md, Claims 1 and 2).
    """

    def __init__(self, examples: Examples, model: Any, loss: Loss, views: Views, at_once: int, step: int = 0) -> None:
        self._examples, self._step = examples, step
        self._gradients = RowGradients(model, loss, views, at_once)
        self.n_rows = examples.n_rows

    @property
    def space(self) -> Space:
        """All weights as one vector. No coordinates are ever changed, so that a row has no entries to speak of."""
        return Space((self._gradients.size,), 1)

    def ask(self, question: Question[Any], at: At, batch: Batch) -> Any:
        if not isinstance(question, ClippedGradient):
            raise QueryRefused("a network is asked for clipped gradients only")
        self._examples.require_unchanged()
        self._gradients.move_to(at[0])
        total = self._gradients.clipped_sum(self._examples, batch, question.clip, self._step)
        self._step += 1
        return total.cpu().numpy()  # noise is drawn here, by the generator of all fits, wherever the network is

    def transformed(self, matrix: Any) -> Rows:
        raise QueryRefused("the coordinates of a network are not changed")

    def remapped(self, rowmap: Any) -> Rows:
        raise QueryRefused("the rows of a network are not mapped")

    def __reduce__(self) -> Any:
        raise TypeError("private rows are never copied or stored")


def as_vector(weights: list[Tensor]) -> NDArray[np.float64]:
    """All weights as one vector in double precision."""
    import torch

    flat = torch.cat([weight.detach().reshape(-1) for weight in weights])
    return np.asarray(flat.to("cpu", torch.float64).numpy())
