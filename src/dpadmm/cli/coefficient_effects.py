"""Released numbers of a model with their names, and what they come to at the scale of a typical row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpadmm.report import Coefficients, TypicalRow
from dpadmm.scoring import Input


def coefficients_of(model: Any, names: Sequence[str], inputs: Sequence[Input], encoded: bool = True) -> Coefficients:
    """Names joined to the released numbers, to their standard errors if those were computed, and to effects.

    Parameters
    ----------
    model : estimator
        Fitted, without bounds of its own.
    names : sequence of str
        Of the features.
    inputs : sequence of Input
        The raw columns that became these features.
    encoded : bool
        Whether a schema made features of them.
    """
    values = np.atleast_2d(model.coef_)
    outputs = ("score",) if len(values) == 1 else tuple(str(label) for label in model.classes_)
    errors, intercept_errors = None, None
    if model.noise_was_replayed:
        errors, intercept_errors = model.coef_std_, np.atleast_1d(model.intercept_std_)
    intercepts, middle = _intercepts(model)
    typical = _typical_row(model, inputs, encoded)
    return Coefficients(names, outputs, values, intercepts, errors, intercept_errors, typical, middle)


def _intercepts(model: Any) -> tuple[Any, float | None]:
    """What is scaled with the row, and of a regression what is not: the middle of the target's range."""
    if not hasattr(model, "target_range_"):
        return np.atleast_1d(model.intercept_), None
    lower, upper = model.target_range_
    half = (upper - lower) / 2
    return half * model.row_map_.fold(model.weights_)[1], lower + half


def _typical_row(model: Any, inputs: Sequence[Input], encoded: bool) -> TypicalRow:
    """Made from declarations alone: the middle of each range, one category a column."""
    rowmap, squares = model.row_map_, [each.middle_square for each in inputs]
    declared = [square for square in squares if square is not None]
    if len(declared) == len(squares):
        length = math.sqrt(sum(declared) + float(rowmap.intercept))
        parts = list(dict.fromkeys(each.middle for each in inputs))
        words = f"a row with {' and '.join([', '.join(parts[:-1]), parts[-1]] if parts[1:] else parts)}"
        scale = min(1.0, rowmap.row_norm / length)
    else:
        scale, words = 1.0, "a row that is no longer than the declared norm, and so is not scaled"
    features = [(each.unit, each.unit_size, i) for i, each in enumerate(inputs) for _ in range(each.width)]
    units, sizes, columns = zip(*features, strict=True)
    return TypicalRow(scale, words, rowmap.row_norm, rowmap.intercept, units, sizes, columns, encoded)


def score_words(model: Any) -> str:
    """What a score is, for a sentence."""
    if not hasattr(model, "classes_"):
        return "the prediction"
    if len(model.classes_) > 2:
        return "the score of each class, of which the largest wins,"
    kind = "the log-odds of" if hasattr(model, "predict_proba") else "the score of"
    return f"{kind} {model.classes_[1]}"


def axis_label(model: Any, coefficients: Coefficients) -> str:
    """What a bar of the picture is."""
    assert coefficients.typical is not None
    if not hasattr(model, "classes_"):
        what = "prediction"
    elif len(model.classes_) > 2:
        what = "scores of the classes"
    else:
        what = "log-odds" if hasattr(model, "predict_proba") else "score"
    return f"effect on the {what} {coefficients.typical.reach}\n(row scale {coefficients.scale:.3g})"


def scale_pair(coefficients: Coefficients) -> tuple[str, str]:
    """For the summary on the screen."""
    assert coefficients.typical is not None
    said = f"{coefficients.scale:.4g} for {coefficients.typical.words}; an effect is a coefficient times this"
    return ("row scale", said)
