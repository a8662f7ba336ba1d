"""What is public about labels and targets, and the loss of each model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.cells.one_cell import Label, label
from dpadmm.cells.target_columns import numeric_column, positions
from dpadmm.declare.weights import class_weights
from dpadmm.errors import InvalidParameter, shown
from dpadmm.problem.losses import Huber, HuberisedHinge, Logistic, Softmax, Squared
from dpadmm.problem.losses.base import Loss
from dpadmm.problem.rowmap import LARGEST_BOUND

REGRESSIONS: dict[str, Loss] = {"squared": Squared(), "huber": Huber(0.5)}
"""Losses of a target that is a number, scaled to [−1, 1]."""


@dataclass(frozen=True, eq=False)
class Target:
    """What is public about the target.

    `encode` gives targets as the loss wants them, and which of them are valid; `weigh`, if any, the weights of
    encoded targets, within [0, 1]. Either `classes` or `range` is declared.
    """

    loss: Loss
    encode: Callable[[NDArray[Any]], tuple[NDArray[Any], NDArray[np.bool_]]]
    classes: NDArray[Any] | None = None
    assumptions: tuple[str, ...] = ()
    weigh: Callable[[NDArray[Any]], NDArray[np.float64]] | None = None
    range: tuple[float, float] | None = None

    @property
    def opposites(self) -> tuple[Any, Any]:
        """Two targets that pull a model in opposite directions: first and last class, or the ends of the range."""
        if self.classes is not None:
            return self.classes[0], self.classes[-1]
        assert self.range is not None
        return self.range


def logistic_loss(n_classes: int) -> Loss:
    """Logistic for two classes, softmax for more."""
    return Logistic() if n_classes == 2 else Softmax(n_classes)


def hinge_loss(n_classes: int) -> Loss:
    """The huberised hinge, of two classes only."""
    if n_classes != 2:
        raise InvalidParameter(
            "more than two classes. Only binary classification is supported",
            "two classes",
            "use DPLogisticRegression for more than two classes",
        )
    return HuberisedHinge()


def regression_loss(name: str) -> Loss:
    """The loss of a regression by its name."""
    if name not in REGRESSIONS:
        raise InvalidParameter(f"loss={shown(name)}", "'squared' or 'huber'", "choose one of these")
    return REGRESSIONS[name]


def target_of_classes(loss: Callable[[int], Loss], classes: NDArray[Any], class_weight: Any, assumption: str) -> Target:
    """Labels of known classes; what is assumed about them says where they come from."""
    weights = class_weights(class_weight, classes)
    weigh = None if weights is None else partial(_weigh_labels, weights)
    encode = partial(_encode_labels, classes.tolist())
    return Target(loss(len(classes)), encode, classes, (assumption,), weigh)


def target_of_range(loss: Loss, target_bounds: Any) -> Target:
    """Numbers in a declared range; without one, from −1 to 1."""
    bounds = declared_range(target_bounds)
    return Target(loss, partial(_encode_numbers, *bounds), range=bounds)


def declared_classes(classes: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """The classes as an array that holds each of them exactly."""
    listed = isinstance(classes, (Sequence, np.ndarray)) or hasattr(classes, "iloc")
    given = list(classes) if listed and getattr(classes, "shape", None) != () else []
    names = [] if isinstance(classes, (str, bytes)) else [label(each) for each in given]
    if len(set(names)) < 2 or len(set(names)) != len(names):
        raise InvalidParameter(
            "one class or none", "at least two different class labels", "declare all classes in `classes`"
        )
    labels = np.empty(0) if None in names else np.asarray(classes if isinstance(classes, np.ndarray) else given)
    if labels.dtype.kind == "O":
        labels = np.asarray(names)
    if labels.dtype == np.longdouble:  # which no file of a model keeps
        labels = labels.astype(np.float64)
    if labels.dtype.kind not in "biufUS" or [label(each) for each in labels] != names or not _writable(names):
        raise InvalidParameter(
            "classes of several sorts, or that one array or file cannot hold exactly",
            "only numbers, only truth values or only text",
            "rename the classes, for instance as text",
        )
    return labels


def _writable(names: Sequence[Any]) -> bool:
    """Whether all texts can be written to a file: half of a surrogate pair is no letter of UTF-8."""
    try:
        "".join(name for name in names if isinstance(name, str)).encode()
    except UnicodeEncodeError:
        return False
    return True


def declared_range(target_bounds: Any) -> tuple[float, float]:
    """The public range of a target."""
    try:
        lower, upper = map(float, (-1, 1) if target_bounds is None else target_bounds)
    except (TypeError, ValueError):
        lower, upper = np.nan, np.nan
    if not (abs(lower) <= LARGEST_BOUND and abs(upper) <= LARGEST_BOUND and lower < upper):
        raise InvalidParameter(
            "target_bounds that are not a finite range", "(lower, upper) with lower < upper", "declare the range"
        )
    return lower, upper


def _encode_labels(classes: Sequence[Label], y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """±1 for two classes, class numbers for more, in one byte a row if they fit."""
    index = positions(y, classes)
    valid = index >= 0
    index[~valid] = 0
    if len(classes) == 2:
        index *= 2
        index -= 1
    return index, valid


def _weigh_labels(weights: NDArray[np.float64], target: NDArray[Any]) -> NDArray[np.float64]:
    """Weight of each encoded label."""
    return np.asarray(np.where(target > 0, weights[1], weights[0]) if len(weights) == 2 else weights[target])


def _encode_numbers(lower: float, upper: float, y: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Targets clipped to the declared range and scaled to [−1, 1]."""
    numbers = numeric_column(y)
    valid = np.isfinite(numbers)
    numbers[~valid] = lower
    np.clip(numbers, lower, upper, out=numbers)
    numbers -= lower
    numbers *= 2 / (upper - lower)
    numbers -= 1
    return numbers, valid
