"""Laplacian smoothing for optimisers that Opacus made private: a proxy between the noise and the step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from dpadmm.errors import InvalidParameter, PrivacyError, UnsupportedProblem
from dpadmm.nn.gradient_smoother import GradientSmoother
from dpadmm.nn.smoothings import Smoothing

Private = TypeVar("Private")
Parameter = Any
Where = Callable[[Parameter], bool] | Iterable[Parameter] | None

FINISHED = "dpadmm_smoothed_steps"
"""Under this key a state dict keeps how many steps were smoothed, for schedules."""


def smooth(optimizer: Private, smoothing: Smoothing, where: Where = None) -> Private:
    """Smooth every noisy gradient of a private optimiser before its step: DP-SGD becomes DP-LSSGD, DP-Adam DP-LSAdam.

    Parameters
    ----------
    optimizer : opacus.optimizers.DPOptimizer
        What `PrivacyEngine.make_private` returned, of any kind. It is changed in place.
    smoothing : Ring or Grid
        Which entries of a weight are neighbours, and how strongly they are averaged.
    where : callable or iterable of parameters, optional
        Which parameters are smoothed: a function that says so of each, or the parameters themselves. All by default.

    Returns
    -------
    The optimiser that was passed.

    Notes
    -----
    *Formal guarantees.* The smoothing reads gradients after clipping, noise and scaling, and public numbers. So it is
    post-processing: whatever was private before is as private after, at every strength. Strength 0 changes no bit.

    Examples
    --------
    >>> import torch
    >>> from opacus.optimizers import DPOptimizer
    >>> from dpadmm.nn import Ring, smooth
    >>> sgd = torch.optim.SGD(torch.nn.Linear(3, 2).parameters(), lr=0.1)
    >>> private = DPOptimizer(sgd, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=8)
    >>> smooth(private, Ring(1.0)) is private
    True
    """
    _require_private(optimizer)
    private: Any = optimizer
    smoother = GradientSmoother(smoothing)
    proxy = SmoothedOptimizer(private.original_optimizer, smoother, _chooser(where))
    proxy.require_smoothable()
    private.original_optimizer = proxy
    return optimizer


class SmoothedOptimizer:
    """Stands where a private optimiser expects the one it wraps; smooths the gradients, then lets that one step.

    Everything else is the wrapped optimiser's: parameter groups, state, defaults, hooks.
    """

    def __init__(self, inner: Any, smoother: GradientSmoother, chosen: Callable[[Parameter], bool]) -> None:
        self.inner, self.smoother, self._chosen = inner, smoother, chosen
        self.finished = 0

    def step(self, closure: object = None) -> Any:
        if closure is not None:
            raise PrivacyError(
                "Got a closure in the step of a smoothed optimiser. Expected none: it would compute gradients anew, "
                "without clipping and without noise. Call step() of the private optimiser without a closure."
            )
        self.smoother.apply(self._parameters(), self.finished)
        result = self.inner.step()
        self.finished += 1
        return result

    def state_dict(self) -> dict[str, Any]:
        return {**self.inner.state_dict(), FINISHED: self.finished}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        rest = dict(state)
        finished = rest.pop(FINISHED, None)
        if finished is None and callable(self.smoother.smoothing.strength):
            raise InvalidParameter(
                "the state of an optimiser that was not smoothed, for a smoothing with a schedule",
                "a state that says how many steps were smoothed",
                "store the state after smooth(...) was called, or use a constant strength",
            )
        self.inner.load_state_dict(rest)
        self.finished = finished or 0

    def require_smoothable(self) -> None:
        """Refuse parameters that cannot be smoothed, and a choice of none."""
        chosen = list(self._parameters())
        for parameter in chosen:
            require_whole(parameter)
        if not any(self.smoother.fits(parameter) for parameter in chosen):
            raise InvalidParameter(
                "a smoothing that fits none of the chosen parameters",
                "at least one parameter of its shape",
                "use Ring(strength), or give the Grid the size of the images that a layer reads",
            )

    def _parameters(self) -> Iterator[Parameter]:
        return (each for group in self.inner.param_groups for each in group["params"] if self._chosen(each))

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # not there yet while a copy is being made
            raise AttributeError(name)
        return getattr(self.inner, name)

    def __repr__(self) -> str:
        return f"{self.inner!r} after {self.smoother.smoothing}"

    # Private optimisers set these on what they wrap.
    @property
    def param_groups(self) -> Any:
        return self.inner.param_groups

    @param_groups.setter
    def param_groups(self, groups: Any) -> None:
        self.inner.param_groups = groups

    @property
    def state(self) -> Any:
        return self.inner.state

    @state.setter
    def state(self, state: Any) -> None:
        self.inner.state = state

    @property
    def defaults(self) -> Any:
        return self.inner.defaults

    @defaults.setter
    def defaults(self, defaults: Any) -> None:
        self.inner.defaults = defaults


def _chooser(where: Where) -> Callable[[Parameter], bool]:
    if where is None:
        return lambda parameter: True
    if callable(where):
        return where
    listed = {id(parameter): parameter for parameter in where}
    return lambda parameter: id(parameter) in listed


def _require_private(optimizer: Any) -> None:
    needed = ("original_optimizer", "noise_multiplier", "max_grad_norm", "pre_step")
    if not all(hasattr(optimizer, name) for name in needed):
        raise UnsupportedProblem(
            f"an optimiser of type {type(optimizer).__name__}, which adds no noise",
            "one that Opacus made private",
            "pass the optimiser that PrivacyEngine.make_private returned, or use dpadmm.nn.fit",
        )
    if isinstance(optimizer.original_optimizer, SmoothedOptimizer):
        raise InvalidParameter(
            "an optimiser that is smoothed already", "one that is not", "call smooth once, with the strength you want"
        )


def require_whole(parameter: Parameter) -> None:
    """Refuse weights in pieces, whose neighbours are elsewhere, and weights of less than single precision."""
    import torch

    if hasattr(parameter, "full_tensor"):
        raise UnsupportedProblem(
            "parameters that are sharded over processes",
            "whole parameters in every process",
            "use DistributedDataParallel instead of fully sharded data parallelism",
        )
    if parameter.dtype not in (torch.float32, torch.float64):
        raise UnsupportedProblem(
            f"parameters of type {parameter.dtype}",
            "torch.float32 or torch.float64",
            "keep the parameters in single precision: model.float()",
        )
