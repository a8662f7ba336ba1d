"""Sparse and structured linear models under differential privacy, trained by ADMM.

Examples
--------
>>> from dpadmm import DPLogisticRegression
>>> DPLogisticRegression(epsilon=0.5).epsilon
0.5
"""

from __future__ import annotations

from dpadmm._version import __version__
from dpadmm.lazy import on_first_use

_HOMES = {
    "DPLogisticRegression": "dpadmm.estimators",
    "DPLinearSVC": "dpadmm.estimators",
    "DPLinearRegression": "dpadmm.estimators",
    "GroupNorm": "dpadmm.estimators",
    "LaplacianBlur": "dpadmm.estimators",
    "Scattering": "dpadmm.estimators",
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


__getattr__ = on_first_use(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
