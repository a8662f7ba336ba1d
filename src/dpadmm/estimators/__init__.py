"""The scikit-learn face of the library."""

from dpadmm.estimators.blur import LaplacianBlur
from dpadmm.estimators.linear import DPLinearRegression, DPLinearSVC, DPLogisticRegression
from dpadmm.estimators.search import DPSearchCV

__all__ = ["DPLinearRegression", "DPLinearSVC", "DPLogisticRegression", "DPSearchCV", "LaplacianBlur"]
