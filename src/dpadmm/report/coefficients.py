"""Released coefficients with their names, as a table that can be sorted, cut and written."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import InvalidParameter


@dataclass(frozen=True, eq=False)
class Coefficients:
    """The numbers of a fitted linear model.

    Parameters
    ----------
    names : sequence of str
        One a feature.
    outputs : sequence of str
        One a column of scores: a single one for two classes or a regression, else one a class.
    values : (outputs, features) ndarray
    intercepts : (outputs,) ndarray

    Examples
    --------
    >>> import numpy as np
    >>> table = Coefficients(("age", "work"), ("score",), np.array([[0.0, -2.0]]), np.array([1.0]))
    >>> table.largest(1).tolist(), table.nonzero
    ([1], 1)
    """

    names: Sequence[str]
    outputs: Sequence[str]
    values: NDArray[np.float64]
    intercepts: NDArray[np.float64]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", np.atleast_2d(np.asarray(self.values, dtype=float)))
        object.__setattr__(self, "intercepts", np.atleast_1d(np.asarray(self.intercepts, dtype=float)))
        shape = (len(self.outputs), len(self.names))
        if self.values.shape != shape or self.intercepts.shape != shape[:1]:
            raise InvalidParameter(
                f"coefficients of shape {self.values.shape}", f"shape {shape}", "name every feature and every output"
            )

    @property
    def magnitudes(self) -> NDArray[np.float64]:
        """Norm over the outputs of each feature's coefficients."""
        return np.asarray(np.sqrt(np.sum(self.values**2, axis=0)))

    @property
    def nonzero(self) -> int:
        """How many features take part in the model."""
        return int(np.count_nonzero(self.magnitudes))

    def largest(self, how_many: int) -> NDArray[np.intp]:
        """Numbers of the largest non-zero features, largest first; ties in the order of the table."""
        order = np.argsort(-self.magnitudes, kind="stable")[:how_many]
        return order[self.magnitudes[order] > 0]

    def to_csv(self) -> str:
        """One line a feature, then the intercept."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        single = len(self.outputs) == 1
        writer.writerow(["feature", *(["coefficient"] if single else self.outputs)])
        for name, column in zip(self.names, self.values.T, strict=True):
            writer.writerow([name, *map(repr, column.tolist())])
        writer.writerow(["(intercept)", *map(repr, self.intercepts.tolist())])
        return stream.getvalue()
