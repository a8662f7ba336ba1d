"""The smoothing of noisy gradients on the device they are on; it needs PyTorch and nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from dpadmm.errors import InvalidParameter, shown
from dpadmm.nn.smoothings import GridView, Smoothing, strength_at

Tensor = Any


class GradientSmoother:
    """Replaces gradients that already carry their noise by smoothed ones.

    A smoothed gradient is a function of the noisy one and of public numbers, so its privacy is the same.

    Parameters
    ----------
    smoothing : Ring or Grid
        Which entries are neighbours, and how strongly they are averaged.

    Examples
    --------
    >>> import torch
    >>> from dpadmm.nn import Ring
    >>> weight = torch.nn.Parameter(torch.zeros(2))
    >>> weight.grad = torch.tensor([1.0, 0.0])
    >>> GradientSmoother(Ring(1.0)).apply([weight], step=0)
    >>> [round(float(entry), 6) for entry in weight.grad]
    [0.6, 0.4]
    """

    def __init__(self, smoothing: Smoothing) -> None:
        if not isinstance(smoothing, Smoothing):
            raise InvalidParameter(
                f"smoothing {shown(smoothing)}", "Ring(strength) or Grid(strength, ...)", "pass Ring(1.0), say"
            )
        self.smoothing = smoothing
        self._responses: dict[tuple[Any, ...], tuple[float, Tensor]] = {}

    def fits(self, parameter: Tensor) -> bool:
        """Whether a parameter of this shape is smoothed at all."""
        return self.smoothing.joined or self.smoothing.view(tuple(parameter.shape)) is not None

    def apply(self, parameters: Iterable[Tensor], step: int) -> None:
        """Smooth the gradients of these parameters in place; those without a gradient are passed over."""
        strength = strength_at(self.smoothing, step)
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        if strength == 0.0 or not gradients:
            return
        if self.smoothing.joined:
            self._apply_joined(gradients, strength)
            return
        for gradient in gradients:
            view = self.smoothing.view(tuple(gradient.shape))
            if view is not None:
                smoothed = self._smoothed(gradient.reshape(view.batch, *view.sides), view, strength)
                gradient.copy_(smoothed.view(gradient.shape))

    def _apply_joined(self, gradients: list[Tensor], strength: float) -> None:
        import torch

        flat = torch.cat([gradient.reshape(1, -1) for gradient in gradients], dim=1)
        view = GridView(1, (flat.shape[1],))
        parts = self._smoothed(flat, view, strength)[0].split([gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view(gradient.shape))

    def _smoothed(self, values: Tensor, view: GridView, strength: float) -> Tensor:
        import torch

        axes = tuple(range(1, 1 + len(view.sides)))
        spectrum = torch.fft.rfftn(values, dim=axes)
        spectrum *= self._response(view.sides, strength, values)
        return torch.fft.irfftn(spectrum, s=view.sides, dim=axes)

    def _response(self, sides: tuple[int, ...], strength: float, like: Tensor) -> Tensor:
        """What each frequency is multiplied by; kept until the strength changes."""
        key = (sides, like.dtype, like.device)
        kept = self._responses.get(key)
        if kept is None or kept[0] != strength:
            kept = self._responses[key] = (strength, frequency_response(sides, strength, like))
        return kept[1]


def frequency_response(sides: tuple[int, ...], strength: float, like: Tensor) -> Tensor:
    """1/(1 + Σ 4·strength·sin²(πk/side)) over the axes, at the frequencies of a real Fourier transform."""
    import torch

    total = torch.ones((), dtype=torch.float64)
    for axis, side in enumerate(sides):
        last = axis == len(sides) - 1
        frequencies = torch.arange(side // 2 + 1 if last else side, dtype=torch.float64)
        along = 4.0 * strength * torch.sin(math.pi * frequencies / side) ** 2
        total = total + along.reshape(-1, *[1] * (len(sides) - 1 - axis))
    return (1.0 / total).to(dtype=like.dtype, device=like.device)
