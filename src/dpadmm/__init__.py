"""Sparse and structured linear models under differential privacy, trained by ADMM."""

from dpadmm._version import __version__

__all__ = ["__version__"]
