"""Steps of a pipeline that learned from the rows before a private step saw them: found and refused.

scikit-learn does not tell an estimator which pipeline it is in. So a fit looks among its callers for a pipeline that is
fitting it. It cannot find a scaler that was used by hand before the fit. Every statement says that such steps are not
covered.
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import currentframe
from types import FrameType
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer

from dpadmm.errors import PrivacyError
from dpadmm.estimators.row_maps import GroupNorm, LaplacianBlur, Scattering
from dpadmm.estimators.row_maps.row_map_base import PublicRowMap
from dpadmm.privacy.statement import PrivacyStatement

NOTHING_ELSE = "nothing-else-learned"
LEARN_NOTHING = (Scattering, GroupNorm, LaplacianBlur, FunctionTransformer, Normalizer, Binarizer)
"""Steps that map each row by itself. A subclass may do anything in its `fit`, so it is not among them."""


def learns_nothing(step: Any) -> bool:
    """Whether a step of a pipeline maps each row by itself, without looking at others."""
    if type(step) is Pipeline:
        return all(learns_nothing(part) for _, part in step.steps)
    return step is None or (isinstance(step, str) and step == "passthrough") or type(step) in LEARN_NOTHING


def is_stated(step: Any) -> bool:
    """Whether a step learned privately, and has a statement that says so."""
    if type(step) is Pipeline:
        return all(is_stated(part) or learns_nothing(part) for _, part in step.steps)
    return isinstance(getattr(step, "privacy_", None), PrivacyStatement)


def require_nothing_learned_before(estimator: Any) -> None:
    """Refuse to be fitted in a pipeline on rows that an earlier step changed by what it learned from them."""
    before = reversed(list(_steps_before(estimator)))
    learned = [type(step).__name__ for step in before if not (learns_nothing(step) or is_stated(step))]
    if learned:
        raise PrivacyError(
            f"Got a pipeline, a stack or a transformed target, in which {', '.join(learned)} learned from the rows "
            f"before {type(estimator).__name__}. "
            "Expected earlier steps that are private themselves or map each row by itself: what a step learns without "
            "noise tells about single rows, and then no statement of the last step is true of the pipeline. "
            "Declare the ranges (bounds=...), let PrivateQuantileClipper learn them, or put a public rule on single "
            "rows, or a step that was fitted on public rows, into a FunctionTransformer (docs/pitfalls.md)."
        )


def maps_before(estimator: Any) -> tuple[str, ...]:
    """The public maps of a pipeline that rows went through before the estimator, the first one first.

    Of maps of this library all parameters are named; of others, which may hold anything, the class alone.
    """
    nearest_first = [part for step in _steps_before(estimator) for part in reversed(_flat(step))]
    public = [step for step in reversed(nearest_first) if learns_nothing(step)]
    return tuple(step.described() if isinstance(step, PublicRowMap) else type(step).__name__ for step in public)


def _flat(step: Any) -> list[Any]:
    """The parts of a pipeline that do anything; any other step as it is."""
    if type(step) is Pipeline:
        return [part for _, inner in step.steps for part in _flat(inner)]
    return [] if step is None or isinstance(step, str) else [step]


def _steps_before(estimator: Any) -> Iterator[Any]:
    """Steps before the estimator in whatever is fitting it, the nearest first; of a target, too."""
    inner, inside = estimator, currentframe()
    frame = None if inside is None else inside.f_back
    while frame is not None and frame.f_back is not None:
        frame = frame.f_back
        # Only frames of a fit are asked for their variables.
        if not frame.f_code.co_name.lstrip("_").startswith("fit"):
            continue
        caller = frame.f_locals.get("self")
        if caller is inner:
            continue
        if isinstance(caller, Pipeline):
            yield from _parts_before(caller, inner, frame)
            inner = caller
        elif isinstance(caller, TransformedTargetRegressor):
            yield caller.transformer_
            inner = caller
        elif isinstance(caller, BaseEstimator) and getattr(caller, "final_estimator_", None) is inner:
            yield from caller.estimators_  # of a stack: the last of its models is fitted on what these predict
            inner = caller


def _parts_before(pipeline: Pipeline, inner: Any, frame: FrameType) -> list[Any]:
    """Steps before the one that is being fitted, the nearest first; that may hold `inner` out of sight."""
    parts = [part for _, part in pipeline.steps]
    found = next((place for place, part in enumerate(parts) if part is inner), None)
    if found is None:
        # `_fit` fits all steps but the last, and counts them; only then is the last one fitted.
        middle = frame.f_code.co_name == "_fit"
        found = frame.f_locals.get("step_idx", 0) if middle else len(parts) - 1
    return parts[:found][::-1]
