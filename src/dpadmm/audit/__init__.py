"""Empirical checks of privacy claims: lower bounds on ε by attack, and leaky positive controls of their power."""

from dpadmm.audit.end_to_end import AuditResult, audit_fit, audit_solver, worst_pair
from dpadmm.audit.lower_bound import (
    GaussianBound,
    LowerBound,
    epsilon_lower_bound,
    gaussian_lower_bound,
    gaussian_power,
)

__all__ = [
    "AuditResult",
    "GaussianBound",
    "LowerBound",
    "audit_fit",
    "audit_solver",
    "epsilon_lower_bound",
    "gaussian_lower_bound",
    "gaussian_power",
    "worst_pair",
]
