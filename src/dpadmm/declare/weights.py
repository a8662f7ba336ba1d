"""Public weights of rows and classes, scaled to [0, 1]: a contribution is multiplied after it was clipped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import InvalidParameter, shown

Array = NDArray[np.float64]

DECLARED = "weights-public"


def row_weights(public_weight: Any, n_rows: int) -> Array | None:
    """One weight a row, divided by the largest."""
    if public_weight is None:
        return None
    try:
        weights = np.asarray(public_weight, dtype=np.float64)
    except (TypeError, ValueError):
        weights = np.empty(0)
    if weights.shape != (n_rows,):
        raise InvalidParameter("public_weight of another shape", "one number a row", "give one weight a row")
    return _scaled(weights, "public_weight")


def class_weights(class_weight: Any, classes: NDArray[Any]) -> Array | None:
    """One weight a class, divided by the largest; classes that are not named weigh one."""
    if class_weight is None:
        return None
    if not isinstance(class_weight, Mapping):
        raise InvalidParameter(
            f"class_weight={shown(class_weight)}",
            "None or a dictionary {label: weight}",
            "declare the weights: how common a class is in the table is private",
        )
    named = {**dict.fromkeys(classes.tolist(), 1.0), **class_weight}
    if len(named) != len(classes):
        raise InvalidParameter(
            "a class_weight with a label that is no class", "labels among the classes", "correct the labels"
        )
    try:
        weights = np.array([named[label] for label in classes.tolist()], dtype=np.float64)
    except (TypeError, ValueError):
        weights = np.array([np.nan])
    return _scaled(weights, "class_weight")


def _scaled(weights: Array, name: str) -> Array:
    if not (np.all(np.isfinite(weights)) and np.all(weights >= 0) and weights.max(initial=0.0) > 0):
        raise InvalidParameter(
            f"{name} with a weight that is negative or not finite, or with none above zero",
            "finite weights of at least zero, one of them positive",
            "correct the weights",
        )
    return np.asarray(weights / weights.max())
