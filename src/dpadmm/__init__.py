"""Sparse and structured linear models under differential privacy, trained by ADMM.

Examples
--------
>>> from dpadmm import DPLogisticRegression
>>> DPLogisticRegression(epsilon=0.5).epsilon
0.5
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dpadmm._version import __version__

_HOMES = {
    "DPLogisticRegression": "dpadmm.estimators",
    "DPLinearSVC": "dpadmm.estimators",
    "DPLinearRegression": "dpadmm.estimators",
    "LaplacianBlur": "dpadmm.estimators",
    "PrivateGraph": "dpadmm.preparation",
    "PrivateQuantileClipper": "dpadmm.preparation",
    "PrivateSecondMoment": "dpadmm.preparation",
    "compose_statements": "dpadmm.preparation",
    "DPSearchCV": "dpadmm.estimators.search",
    "load_model": "dpadmm.estimators.persistence",
    "Budget": "dpadmm.privacy.budget",
    "Ledger": "dpadmm.privacy.ledger",
    "Plan": "dpadmm.privacy.plan",
    "PrivacyStatement": "dpadmm.privacy.statement",
    "at_most_threads": "dpadmm.kernels.threads",
    "audit": "dpadmm.audit",
    "datasets": "dpadmm.datasets",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    """Heavy imports happen on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dpadmm' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    return home if _HOMES[name].endswith(f".{name}") else getattr(home, name)


def __dir__() -> list[str]:
    return sorted(__all__)
