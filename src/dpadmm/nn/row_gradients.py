"""Gradients of a network's loss, one a row: their clipped sum, and whether they are gradients of single rows at all."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.kernels.clipping import SAFETY
from dpadmm.kernels.threads import LONGEST_RUN
from dpadmm.nn.augmented_views import Views
from dpadmm.nn.examples import Examples, LabelledRows, unquoted
from dpadmm.privacy.sampling import Batch

Tensor = Any
Loss = Callable[[Any, Any], Any]

BLOCK = 64
"""Rows that are converted to double precision at once: few, so that they stay in the cache until they are added."""


class RowGradients:
    """The loss of a network, and its gradient for each row of a batch, by Opacus.

    Parameters
    ----------
    model : torch.nn.Module
        Trained in place; Opacus puts its hooks on it.
    loss : callable
        From outputs and targets to one number a row.
    views : Views
        Each row stands for the mean of its gradients over these.
    at_once : int
        Rows that pass through the network at once, views of one row counted apart.
    """

    def __init__(self, model: Any, loss: Loss, views: Views, at_once: int) -> None:
        from opacus import GradSampleModule

        self._model = GradSampleModule(model.train(), loss_reduction="sum")
        self._loss, self._views = loss, views
        self._at_once = max(1, at_once // views.count)
        self.weights = [weight for weight in model.parameters() if weight.requires_grad]
        self.size = sum(weight.numel() for weight in self.weights)

    def outputs(self, inputs: Tensor) -> Tensor:
        return self._model(inputs)

    def losses(self, pair: LabelledRows) -> Tensor:
        return self._loss(self._model(pair.inputs), pair.targets)

    def of(self, pair: LabelledRows, step: int = 0) -> list[Tensor]:
        """One matrix a weight: the gradient of each row, averaged over its views, not clipped."""
        rows, count = len(pair.inputs), self._views.count
        with quiet_hooks():
            self.losses(self._views.of(pair, step)).sum().backward()
        found = [_taken(weight, rows * count) for weight in self.weights]
        if count == 1:
            return [each.reshape(rows, -1) for each in found]
        return [each.reshape(count, rows, -1).mean(dim=0) for each in found]

    def move_to(self, point: NDArray[np.float64]) -> None:
        """Set all weights from one vector."""
        import torch

        parts = torch.from_numpy(point).split([weight.numel() for weight in self.weights])
        with torch.no_grad():
            for weight, part in zip(self.weights, parts, strict=True):
                weight.copy_(part.view(weight.shape))

    def clipped_sum(self, examples: Examples, batch: Batch, clip: float, step: int) -> Tensor:
        """Σ of the clipped gradients of a batch, in double precision and as one vector.

        Rows are summed in runs of at most `LONGEST_RUN`, whose sums are then added, as is charged.
        """
        total, rows = self._zeros(), drawn(batch, examples.n_rows)
        with unquoted("for which the model or the loss fails"):
            for run in _cut(rows, LONGEST_RUN):
                of_run = self._zeros()
                for some in _cut(run, self._at_once):
                    pair = examples.fetch(some).placed(self.weights[0])
                    add_clipped(self.of(pair, step), clip, of_run)
                total += of_run
        return total

    def _zeros(self) -> Tensor:
        import torch

        return torch.zeros(self.size, dtype=torch.float64, device=self.weights[0].device)


def _cut(rows: NDArray[np.intp], length: int) -> Iterator[NDArray[np.intp]]:
    """Parts of at most this length, as equal as they can be; none of nothing."""
    return iter(np.array_split(rows, -(-len(rows) // length)) if len(rows) else [])


def drawn(batch: Batch, n_rows: int) -> NDArray[np.intp]:
    """Numbers of the rows of a batch; those of weight zero, which only fill it up, are left out."""
    if batch.rows is None:
        return np.arange(n_rows)
    return batch.rows if batch.weights is None else batch.rows[batch.weights > 0]


def add_clipped(parts: Sequence[Tensor], clip: float, total: Tensor) -> None:
    """Add Σ gᵢ·min(1, clip/‖gᵢ‖) to `total`; gᵢ is row i of all parts, one beside the other.

    Notes
    -----
    *Formal guarantees.* A contribution is computed from its gradient alone, in double precision, and has norm at most
    `clip`; a gradient with an entry that is not finite, or whose length is not, contributes zero.
    """
    import torch

    rows, widths = len(parts[0]), [part.shape[1] for part in parts]
    block = torch.empty((min(BLOCK, rows), len(total)), dtype=torch.float64, device=total.device)
    for start in range(0, rows, BLOCK):
        some = block[: rows - start]
        for part, place in zip(parts, some.split(widths, dim=1), strict=True):
            place.copy_(part[start : start + BLOCK])
        total.addmv_(some.T, _scales(some, clip))


def _scales(gradients: Tensor, clip: float) -> Tensor:
    """What shortens each gradient to the clip; gradients that are not finite become zero."""
    import torch

    norms = torch.linalg.vector_norm(gradients, dim=1)
    finite = norms.isfinite()
    if not bool(finite.all()):
        gradients.masked_fill_(~finite[:, None], 0.0)
    limit = clip * SAFETY
    return torch.where(norms > limit, limit / norms, 1.0)


@contextmanager
def quiet_hooks() -> Iterator[None]:
    """Without PyTorch's remark that inputs have no gradients, which is as it should be."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Full backward hook is firing")
        yield


def _taken(weight: Tensor, rows: int) -> Tensor:
    """The gradients of the rows, which are then no longer kept; zeros for a weight that was not used."""
    import torch

    found = getattr(weight, "grad_sample", None)
    weight.grad = weight.grad_sample = None
    return torch.zeros(rows, *weight.shape, device=weight.device, dtype=weight.dtype) if found is None else found
