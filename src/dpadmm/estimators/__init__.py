"""The scikit-learn face of the library."""

from dpadmm.estimators.blur import LaplacianBlur
from dpadmm.estimators.linear import DPLinearRegression, DPLinearSVC, DPLogisticRegression

__all__ = ["DPLinearRegression", "DPLinearSVC", "DPLogisticRegression", "LaplacianBlur"]
