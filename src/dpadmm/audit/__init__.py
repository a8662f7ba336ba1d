"""Empirical checks of privacy claims: lower bounds on ε by attack, and leaky positive controls of their power."""

from dpadmm.audit.canary_guesses import guess_lower_bound, guess_tail
from dpadmm.audit.end_to_end import AuditResult, audit_fit, audit_solver
from dpadmm.audit.lower_bound import (
    GaussianBound,
    LowerBound,
    epsilon_lower_bound,
    gaussian_lower_bound,
    gaussian_power,
)
from dpadmm.audit.neighbours import worst_pair, worst_tables
from dpadmm.audit.one_run import Canaries, OneRunResult, audit_one_run
from dpadmm.audit.power import Power, power_of_guesses, power_of_pairs, power_of_threshold
from dpadmm.audit.saved_model import CheckedModel, ModelAudit, NoAttack, audit_model, check_model

__all__ = [
    "AuditResult",
    "Canaries",
    "CheckedModel",
    "GaussianBound",
    "LowerBound",
    "ModelAudit",
    "NoAttack",
    "OneRunResult",
    "Power",
    "audit_fit",
    "audit_model",
    "audit_one_run",
    "audit_solver",
    "check_model",
    "epsilon_lower_bound",
    "gaussian_lower_bound",
    "gaussian_power",
    "guess_lower_bound",
    "guess_tail",
    "power_of_guesses",
    "power_of_pairs",
    "power_of_threshold",
    "worst_pair",
    "worst_tables",
]
