"""Groups of features brought to mean zero and variance one within each row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import InvalidParameter
from dpadmm.estimators.row_maps.row_map_base import PublicRowMap
from dpadmm.problem.checks import count, number

ROWS_TOGETHER = 256


class GroupNorm(PublicRowMap):
    """Maps each row so that every group of neighbouring features has mean zero and variance one *within this row*.

    Unlike a scaler or batch normalisation it compares no rows, so nothing is learned and nothing is charged. Rows then
    differ in shape and no longer in brightness or contrast, and all of them are about equally long.

    Parameters
    ----------
    groups : int
        A divisor of the number of features. After `Scattering`, 27 groups of a grey picture hold three maps each.
    floor : float
        Added to the variance of a group, so that a group without contrast stays near zero.

    Examples
    --------
    >>> import numpy as np
    >>> from dpadmm import GroupNorm
    >>> GroupNorm(2).fit_transform(np.array([[1.0, 3.0, 10.0, 30.0]])).round(3).tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
    """

    def __init__(self, groups: int = 1, floor: float = 1e-5) -> None:
        self.groups = groups
        self.floor = floor

    def _prepare(self, n_features: int) -> None:
        number("floor", self.floor, strict=True)
        if n_features % count("groups", self.groups, minimum=1):
            raise InvalidParameter(
                f"groups={self.groups} for {n_features} features",
                "a number of groups that divides the number of features",
                "choose another number of groups",
            )

    def _map(self, rows: NDArray[Any]) -> NDArray[Any]:
        out = np.empty(rows.shape, dtype=rows.dtype)
        for start in range(0, len(rows), ROWS_TOGETHER):
            block = slice(start, start + ROWS_TOGETHER)
            # In float64 first: a sum that casts as it goes would be cut where a buffer ends, which may be anywhere.
            groups = rows[block].astype(np.float64).reshape(-1, self.groups, rows.shape[1] // self.groups)
            groups -= groups.mean(axis=2, keepdims=True)
            groups /= np.sqrt((groups**2).mean(axis=2, keepdims=True) + self.floor)
            out[block] = groups.reshape(-1, rows.shape[1])
        return out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
