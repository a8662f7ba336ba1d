"""From noisy mean gradients to weights: optimiser, schedule, smoothing and average. None of it meets a row."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from dpadmm.errors import InvalidParameter, UnsupportedProblem, shown
from dpadmm.nn.gradient_smoother import GradientSmoother
from dpadmm.nn.smoothed_optimizer import SmoothedOptimizer
from dpadmm.nn.smoothings import Smoothing

Tensor = Any
Make = Callable[[Any], Any]


class PublicStep(NamedTuple):
    """What may be known of one step: nothing in it was computed from rows but by way of the noise."""

    step: int
    learning_rate: float
    gradient_norm: float


@dataclass(frozen=True)
class DescentRule:
    """How noisy gradients become weights; a public choice.

    Parameters
    ----------
    optimizer : callable
        From a list of weights to a PyTorch optimiser.
    schedule : callable, optional
        From that optimiser to a learning-rate scheduler, which steps after every step.
    smoothing : Ring or Grid, optional
        Smooths every noisy gradient.
    where : callable, optional
        Which weights are smoothed; all by default.
    average : {"ema", None}
        What is released: an average of the weights that forgets the early ones, or the last weights.
    """

    optimizer: Make
    schedule: Make | None = None
    smoothing: Smoothing | None = None
    where: Callable[[Tensor], bool] | None = None
    average: str | None = "ema"

    def __post_init__(self) -> None:
        if self.average not in ("ema", None):
            raise InvalidParameter(f"average={shown(self.average)}", "'ema' or None", "choose one of these")
        for name in ("schedule", "where"):
            if not (getattr(self, name) is None or callable(getattr(self, name))):
                raise InvalidParameter(f"{name}={shown(getattr(self, name))}", "a function", f"pass {name} as one")

    def start(self, weights: list[Tensor]) -> Descent:
        return Descent(self, weights)

    @property
    def smooths(self) -> bool:
        """Whether any gradient is changed; a schedule may be zero at times."""
        return self.smoothing is not None and (callable(self.smoothing.strength) or self.smoothing.strength > 0)


class Descent:
    """One run of a rule. Its state is a function of the weights it began with and of the gradients it was given."""

    def __init__(self, rule: DescentRule, weights: list[Tensor]) -> None:
        self._weights = weights
        self._inner = _made(rule.optimizer, weights)
        self._optimizer = self._inner if rule.smoothing is None else _smoothed(self._inner, rule)
        self._scheduler = None if rule.schedule is None else _scheduled(rule.schedule, self._inner)
        self._average = None if rule.average is None else WeightAverage(weights)
        self.steps = 0

    @property
    def name(self) -> str:
        """As in the papers: dp-sgd, dp-adam; dp-lssgd, dp-lsadam where gradients are smoothed."""
        smoothed = "ls" if isinstance(self._optimizer, SmoothedOptimizer) else ""
        return f"dp-{smoothed}{type(self._inner).__name__.lower()}"

    def take(self, mean: Tensor) -> PublicStep:
        """One step along a noisy mean gradient, which is one vector."""
        import torch

        for weight, part in zip(self._weights, _split(mean, self._weights), strict=True):
            weight.grad = part.to(weight.device, weight.dtype, copy=True).view(weight.shape)
        rate = float(self._inner.param_groups[0].get("lr", math.nan))
        self._optimizer.step()
        if self._scheduler is not None:
            self._scheduler.step()
        if self._average is not None:
            self._average.add(self._weights)
        self.steps += 1
        for weight in self._weights:
            weight.grad = None
        return PublicStep(self.steps, rate, float(torch.linalg.vector_norm(mean)))

    @property
    def released(self) -> list[Tensor]:
        """The weights that training ends with."""
        found = self._weights if self._average is None else self._average.values
        return [value.detach().clone() for value in found]


class WeightAverage:
    """An average in which the weights after step t count in proportion to t⁸ or so: the last tenth of them, roughly.

    At step t the average moves to the newest weights by the share 9/(10 + t).
    """

    def __init__(self, weights: list[Tensor]) -> None:
        self.values = [weight.detach().clone() for weight in weights]
        self._added = 0

    def add(self, weights: list[Tensor]) -> None:
        share = 9.0 / (10.0 + self._added)
        for value, weight in zip(self.values, weights, strict=True):
            value.lerp_(weight.detach(), share)
        self._added += 1


def _split(mean: Tensor, weights: list[Tensor]) -> list[Tensor]:
    return list(mean.split([weight.numel() for weight in weights]))


def _made(make: Any, weights: list[Tensor]) -> Any:
    import torch

    if isinstance(make, torch.optim.Optimizer) or not callable(make):
        raise InvalidParameter(
            f"optimizer={shown(make)}",
            "a function that makes a PyTorch optimiser for given weights, because a copy of the model is trained",
            "pass functools.partial(torch.optim.SGD, lr=0.1), say",
        )
    made = make(weights)
    if not isinstance(made, torch.optim.Optimizer) or hasattr(made, "noise_multiplier"):
        raise InvalidParameter(
            f"an optimizer that makes {shown(made)}",
            "a plain optimiser of torch.optim: clip and noise are added before it",
            "pass functools.partial(torch.optim.SGD, lr=0.1), say",
        )
    known = {id(weight) for weight in weights}
    if not all(id(weight) in known for group in made.param_groups for weight in group["params"]):
        raise InvalidParameter(
            "an optimizer of other weights than those it is given", "these weights", "use the argument of the function"
        )
    closure = inspect.signature(made.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise UnsupportedProblem(
            f"the optimiser {type(made).__name__}, which needs a closure to compute gradients anew",
            "one that takes a step with the gradients that are there: others would not be clipped and noised",
            "use SGD, Adam or AdamW",
        )
    return made


def _smoothed(inner: Any, rule: DescentRule) -> SmoothedOptimizer:
    where = rule.where or (lambda weight: True)
    proxy = SmoothedOptimizer(inner, GradientSmoother(rule.smoothing), where)  # type: ignore[arg-type]
    proxy.require_smoothable()
    return proxy


def _scheduled(make: Make, optimizer: Any) -> Any:
    made = make(optimizer)
    needed = [
        name
        for name, parameter in inspect.signature(made.step).parameters.items()
        if parameter.default is inspect.Parameter.empty
    ]
    if needed:
        raise UnsupportedProblem(
            f"a scheduler whose step needs {', '.join(needed)}",
            "one that depends on the number of steps alone: a loss of these rows would be released without noise",
            "use CosineAnnealingLR or LambdaLR",
        )
    return made
