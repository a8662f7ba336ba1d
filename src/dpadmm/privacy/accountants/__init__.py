"""Judges of events: exact Gaussian, Rényi, privacy losses, hidden passes. Each refuses what it has no proof for."""

from dpadmm.privacy.accountants.base import ACCOUNTANTS, Accountant, default_accountant, make_accountant
from dpadmm.privacy.accountants.gaussian import GaussianAccountant
from dpadmm.privacy.accountants.iteration import IterationAccountant, PrintedIterationAccountant
from dpadmm.privacy.accountants.pld import PldAccountant
from dpadmm.privacy.accountants.rdp import RdpAccountant

__all__ = [
    "ACCOUNTANTS",
    "Accountant",
    "GaussianAccountant",
    "IterationAccountant",
    "PldAccountant",
    "PrintedIterationAccountant",
    "RdpAccountant",
    "default_accountant",
    "make_accountant",
]
