"""The scikit-learn face of the library."""

from typing import TYPE_CHECKING, Any

from dpadmm.estimators.blur import LaplacianBlur
from dpadmm.estimators.linear import DPLinearRegression, DPLinearSVC, DPLogisticRegression

if TYPE_CHECKING:
    from dpadmm.estimators.search import DPSearchCV

__all__ = ["DPLinearRegression", "DPLinearSVC", "DPLogisticRegression", "DPSearchCV", "LaplacianBlur"]


def __getattr__(name: str) -> Any:
    """A search is loaded by those who search."""
    if name == "DPSearchCV":
        from dpadmm.estimators.search import DPSearchCV

        return DPSearchCV
    raise AttributeError(f"module 'dpadmm.estimators' has no attribute {name!r}")
