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
from dpadmm.report.spreadsheet_text import as_text
from dpadmm.report.typical_row import TypicalRow


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
    typical : TypicalRow, optional
        What turns coefficients into effects; without it rows are not scaled.
    middle : float, optional
        Of the declared range of a regression's targets: added to the score after the row's scale.

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
    typical: TypicalRow | None = None
    middle: float | None = None

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

    @property
    def scale(self) -> float:
        """Of a typical row."""
        return 1.0 if self.typical is None else self.typical.scale

    @property
    def effects(self) -> NDArray[np.float64]:
        """Of each output and feature, on a typical row; of a category beyond the mean of its column."""
        compared = self.values.copy()
        for peers in self._categories:
            compared[:, peers] -= self.values[:, peers].mean(axis=1, keepdims=True)
        return self.scale * compared

    @property
    def effect_errors(self) -> NDArray[np.float64] | None:
        """Standard errors of `effects`; not a number for categories, where that beyond the mean is not known."""
        if self.errors is None:
            return None
        known = self.scale * self.errors
        for peers in self._categories:
            known[:, peers] = np.nan
        return known

    @property
    def _categories(self) -> list[NDArray[np.intp]]:
        """The features of each column that has several."""
        columns = np.asarray([] if self.typical is None else self.typical.columns)
        numbers, sizes = np.unique(columns, return_counts=True)
        return [np.flatnonzero(columns == number) for number in numbers[sizes > 1]]

    @property
    def row_names(self) -> tuple[str, ...]:
        """The features, then what else a score is the sum of."""
        return (*self.names, "(intercept)", *(() if self.middle is None else ("(middle of the target range)",)))

    def to_csv(self) -> str:
        """One line a feature, then the intercept; standard errors and effects in further columns.

        Names and units are texts from elsewhere: see `dpadmm.report.spreadsheet_text`. Numbers stay numbers.
        """
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(map(as_text, self.head))
        for row, name in enumerate(self.row_names):
            cells = (as_text(cell) if isinstance(cell, str) else cell for cell in self.row(row))
            writer.writerow([as_text(name), *cells])
        return stream.getvalue()

    @property
    def head(self) -> tuple[str, ...]:
        """Names of the columns of a table with a row a feature."""
        errors = self._of_each("noise std") if self.errors is not None else ()
        kinds = ("effect", "effect of one unit", "effect against the mean category")
        effects = ("typical row scale", *(name for kind in kinds for name in self._of_each(kind)), "unit")
        return (
            "feature",
            *self._of_each("coefficient before row scaling"),
            *errors,
            *(() if self.typical is None else effects),
        )

    def row(self, feature: int) -> list[float | str]:
        """What is known of a feature, in the order of `head`; after the features, of the rest of a score."""
        values, errors = self._numbers(feature)
        said = [float(number) for number in (*values, *errors)]
        if self.typical is None:
            return list(said)
        scale = self.scale if feature <= len(self.names) else 1.0  # the middle of the range is not scaled
        effects = [scale * float(value) for value in values]
        if feature >= len(self.names):
            return [*said, scale, *effects, *[""] * (2 * len(effects)), ""]
        each = [effect / self.typical.unit_sizes[feature] for effect in effects]
        return [*said, scale, *effects, *each, *self._contrasts(self.typical, feature), self.typical.units[feature]]

    def _contrasts(self, typical: TypicalRow, feature: int) -> list[float | str]:
        """Of a category: its effects beyond the mean of its column; nothing where there is no other category."""
        peers = np.flatnonzero(np.asarray(typical.columns) == typical.columns[feature])
        if len(peers) < 2:
            return [""] * len(self.outputs)
        beyond = self.values[:, feature] - self.values[:, peers].mean(axis=1)
        return [float(value) for value in typical.scale * beyond]

    def _numbers(self, feature: int) -> tuple[Any, Any]:
        """Values and standard errors, one an output."""
        errors: Any = ()
        if feature > len(self.names):
            values = np.array([self.middle])
            errors = np.zeros(1) if self.errors is not None else ()
        elif feature == len(self.names):
            values, errors = self.intercepts, () if self.intercept_errors is None else self.intercept_errors
        else:
            values, errors = self.values[:, feature], () if self.errors is None else self.errors[:, feature]
        return values, errors

    def _of_each(self, what: str) -> tuple[str, ...]:
        single = len(self.outputs) == 1
        return (what,) if single else tuple(f"{what} for {output}" for output in self.outputs)
