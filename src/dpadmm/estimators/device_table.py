"""X in a torch tensor on an accelerator, y anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.cells.target_columns import has_public_type
from dpadmm.declare.target import Target
from dpadmm.errors import InvalidData, InvalidDataType
from dpadmm.estimators.declared_rows import require_valid
from dpadmm.estimators.sklearn_input import label_column
from dpadmm.problem.rowmap import RowMap
from dpadmm.rows.torch_rows import TorchRows
from dpadmm.rows.torch_table import all_finite, pack_tensor, require_double_precision, to_device

Array = NDArray[np.float64]


class DeviceTable:
    """Rows that stay on their device. Labels are encoded in memory, by the code that encodes all labels.

    Parameters
    ----------
    X : (n, d) dense tensor of real numbers
        Any precision; blocks of rows are made float64.
    y : (n,) tensor or array
        On any device.
    """

    place = "on a device"
    is_sparse = False
    assumptions: tuple[str, ...] = ()

    def __init__(self, X: Any, y: Any) -> None:
        import torch

        if X.layout != torch.strided or X.is_complex():
            raise InvalidDataType("a tensor that is sparse or complex", "a dense tensor of real numbers", "convert it")
        if X.ndim != 2:
            raise InvalidData(f"X with {X.ndim} dimensions. Expected 2D array", "rows and columns", "reshape it")
        if not X.shape[0] or not X.shape[1]:
            raise InvalidData("a tensor without rows or columns", "at least one of each", "pass one that is not empty")
        require_double_precision(X.device)
        self._X, self._y, self._typed = X.detach(), label_column(y), has_public_type(y)
        self.n_rows, self.n_features = int(X.shape[0]), int(X.shape[1])
        if len(self._y) != self.n_rows:
            raise InvalidData("X and y of inconsistent lengths", "one label a row", "pass matching X and y")

    def labels(self, needed: bool) -> NDArray[Any]:
        return self._y if self._typed or not needed else self._y.astype(object)

    def rows(self, rowmap: RowMap, target: Target, weights: Array | None, strict: bool) -> TorchRows:
        encoded, valid = target.encode(self._y)
        if strict:
            require_valid(all_finite(self._X), bool(valid.all()))
        if target.weigh is not None:
            weights = target.weigh(encoded) * (1.0 if weights is None else weights)
        table = pack_tensor(rowmap, self._X, to_device(valid, self._X.device))
        return TorchRows(table, encoded, target.loss, rowmap.row_norm, weights)
