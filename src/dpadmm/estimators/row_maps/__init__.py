"""Public maps of single rows, for use before any estimator."""

from dpadmm.estimators.row_maps.group_norm import GroupNorm
from dpadmm.estimators.row_maps.laplacian_blur import LaplacianBlur
from dpadmm.estimators.row_maps.scattering import Scattering

__all__ = ["GroupNorm", "LaplacianBlur", "Scattering"]
