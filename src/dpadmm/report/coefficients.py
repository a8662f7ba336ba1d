"""Released coefficients with their names, as a table that can be sorted, cut and written."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import InvalidParameter
from dpadmm.report.cells import as_text


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
    errors : (outputs, features) ndarray, optional
        Standard deviations of the values over the privacy noise.
    intercept_errors : (outputs,) ndarray, optional
        The same of the intercepts; given with `errors`.

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
    errors: NDArray[np.float64] | None = None
    intercept_errors: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", np.atleast_2d(np.asarray(self.values, dtype=float)))
        object.__setattr__(self, "intercepts", np.atleast_1d(np.asarray(self.intercepts, dtype=float)))
        shape = (len(self.outputs), len(self.names))
        given: list[tuple[Any, Any]] = [(self.values, self.intercepts)]
        if self.errors is not None:
            object.__setattr__(self, "errors", np.atleast_2d(np.asarray(self.errors, dtype=float)))
            object.__setattr__(self, "intercept_errors", np.atleast_1d(np.asarray(self.intercept_errors, dtype=float)))
            given.append((self.errors, self.intercept_errors))
        if any(np.shape(values) != shape or np.shape(offsets) != shape[:1] for values, offsets in given):
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
        """One line a feature, then the intercept; standard errors in further columns.

        Names are texts from elsewhere: see `dpadmm.report.cells`. Numbers stay numbers.
        """
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(map(as_text, self.head))
        for row, name in enumerate((*self.names, "(intercept)")):
            writer.writerow([as_text(name), *map(repr, self.row(row))])
        return stream.getvalue()

    @property
    def head(self) -> tuple[str, ...]:
        """Names of the columns of a table with a row a feature."""
        single = len(self.outputs) == 1
        values = ("coefficient",) if single else tuple(self.outputs)
        errors = ("noise std",) if single else tuple(f"noise std of {output}" for output in self.outputs)
        return ("feature", *values, *(errors if self.errors is not None else ()))

    def row(self, feature: int) -> list[float]:
        """Numbers of a feature, in the order of `head`; after the last feature, those of the intercept."""
        at_intercept = feature == len(self.names)
        numbers = list(self.intercepts if at_intercept else self.values[:, feature])
        if self.errors is not None and self.intercept_errors is not None:
            numbers += list(self.intercept_errors if at_intercept else self.errors[:, feature])
        return [float(number) for number in numbers]
