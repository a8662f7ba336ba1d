"""The scikit-learn face of the library."""

from typing import TYPE_CHECKING

from dpadmm.estimators.linear import DPLinearRegression, DPLinearSVC, DPLogisticRegression
from dpadmm.estimators.row_maps import GroupNorm, LaplacianBlur, Scattering
from dpadmm.lazy import on_first_use

if TYPE_CHECKING:
    from dpadmm.estimators.search import DPSearchCV

__all__ = [
    "DPLinearRegression",
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPSearchCV",
    "GroupNorm",
    "LaplacianBlur",
    "Scattering",
]

__getattr__ = on_first_use(__name__, {"DPSearchCV": "dpadmm.estimators.search"})
