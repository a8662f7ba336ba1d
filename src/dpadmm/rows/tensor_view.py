"""Rows on a device as a question sees them: torch tensors, everything computed row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import QueryRefused, UnsupportedProblem
from dpadmm.kernels import loss_codes
from dpadmm.kernels.clipping import SAFETY, SMALLEST_SCALE
from dpadmm.problem.losses.base import Loss, kernel_of
from dpadmm.rows.array_view import flattened, require_one_output
from dpadmm.rows.torch_table import Tensor, folded, lengths, to_device

Array = NDArray[np.float64]


class TensorView:
    """Some rows of a table on a device; `privacy.questions.View` says what each method answers.

    Parameters
    ----------
    rows : (m, d) tensor
        Mapped rows in the question's frame, in float64.
    target : (m, columns) tensor
        What the loss expects.
    labels : callable
        From a slope unit to the labels of these rows.
    raw : callable
        Gives the rows as they were given, when a question asks for them.
    """

    def __init__(
        self,
        rows: Tensor,
        target: Tensor,
        loss: Loss,
        row_norm: float,
        labels: Callable[[float], Tensor],
        raw: Callable[[], Tensor],
    ) -> None:
        self.rows, self.target, self.row_norm, self.labels = rows, target, row_norm, labels
        self._loss, self._raw = loss, raw

    @property
    def raw(self) -> Tensor:
        return self._raw()

    def dot(self, x: Array) -> Tensor:
        found = margins(self.rows, self.numbers(x.reshape(len(x), -1)))
        return found if x.ndim == 2 else found[:, 0]

    def slopes(self, x: Array) -> Tensor:
        found = slope_of(self._loss)(self.dot(x.reshape(len(x), -1)), self.target)
        return found if x.ndim == 2 else found[:, 0]

    def curvatures(self, x: Array) -> Tensor:
        require_one_output(self._loss)
        return curvature_of(self._loss)(self.dot(x))

    def scores(self, x: Array) -> Tensor:
        raise QueryRefused("rows on a device have no rule by which a model is scored")

    def numbers(self, values: Any) -> Tensor:
        import torch

        if isinstance(values, torch.Tensor):
            return values.to(torch.float64)
        return to_device(np.asarray(values, dtype=np.float64), self.rows.device)

    def clipped(self, vectors: Tensor, size: float) -> Tensor:
        return clip_tensors(vectors, size)

    def totals(self, vectors: Tensor) -> Tensor:
        return folded(vectors.clone())

    def joined(self, parts: Iterable[Tensor]) -> Tensor:
        import torch

        return torch.cat([flattened(part) for part in parts], dim=1)


def clip_tensors(vectors: Tensor, size: float) -> Tensor:
    """`rows.array_view.clip_vectors`, with the same guarantee."""
    import torch

    flat = flattened(vectors)
    if not flat.numel():
        return vectors
    flat = torch.where(torch.isfinite(flat).all(dim=1)[:, None], flat, 0.0)
    sizes, limit = lengths(flat), size * SAFETY
    scales = torch.where(sizes > limit, limit / sizes, 1.0)
    return (flat * torch.where(scales < SMALLEST_SCALE, 0.0, scales)[:, None]).reshape(vectors.shape)


def clip_slopes(slopes: Tensor, row_norms: Tensor, clip_norm: float) -> Tensor:
    """`kernels.clipping.clip_slopes` of (m, outputs) slopes, with the same guarantee."""
    import torch

    slopes = torch.where(torch.isfinite(slopes) & torch.isfinite(row_norms)[:, None], slopes, 0.0)
    sizes = lengths(slopes) * row_norms
    limit = clip_norm * SAFETY
    scales = torch.where(sizes > limit, limit / sizes, 1.0)
    return slopes * torch.where(scales < SMALLEST_SCALE, 0.0, scales)[:, None]


def margins(mapped: Tensor, point: Tensor) -> Tensor:
    """⟨row, column⟩ for each row and each column of the point."""
    import torch

    return torch.stack([folded(mapped * column) for column in point.T], dim=1)


def target_type(loss: Loss) -> type[np.generic]:
    """Class numbers are indices on a device."""
    kernel = kernel_of(loss)
    return np.int64 if kernel is not None and kernel[0] == loss_codes.SOFTMAX else np.float64


def curvature_of(loss: Loss) -> Callable[[Tensor], Tensor]:
    """Second derivatives from margins; a loss that is not known here is refused."""
    import torch

    kernel = kernel_of(loss)
    if kernel is None or kernel[0] != loss_codes.LOGISTIC:
        raise QueryRefused("the curvature along each feature is that of the logistic loss alone")

    def logistic(margin: Tensor) -> Tensor:
        small = torch.exp(-margin.abs())
        return small / (1.0 + small) ** 2

    return logistic


def slope_of(loss: Loss) -> Callable[[Tensor, Tensor], Tensor]:
    """Slopes (m, outputs) from margins and targets; a loss that is not known here is refused."""
    import torch

    def logistic(margin: Tensor, target: Tensor) -> Tensor:
        right = margin * target
        small = torch.exp(-right.abs())
        return -target * torch.where(right >= 0, small, 1.0) / (1.0 + small)

    def hinge(margin: Tensor, target: Tensor, h: float) -> Tensor:
        return -target * (1 + h - margin * target).clamp(0, 2 * h) / (2 * h)

    def softmax(margin: Tensor, target: Tensor) -> Tensor:
        weight = torch.exp(margin - margin.amax(dim=1, keepdim=True))
        share = weight / folded(weight.clone())[:, None]
        return share - torch.zeros_like(share).scatter_(1, target, 1.0)

    kernel = kernel_of(loss)
    if kernel is None:
        raise UnsupportedProblem(f"loss {loss.name!r} on a device", "a loss of the library", "pass X.cpu()")
    code, parameter = kernel
    known: dict[int, Callable[[Tensor, Tensor], Tensor]] = {
        loss_codes.LOGISTIC: logistic,
        loss_codes.SOFTMAX: softmax,
        loss_codes.SQUARED: lambda margin, target: margin - target,
        loss_codes.HUBER: lambda margin, target: (margin - target).clamp(-parameter, parameter),
        loss_codes.HUBERISED_HINGE: lambda margin, target: hinge(margin, target, parameter),
    }
    return known[code]
