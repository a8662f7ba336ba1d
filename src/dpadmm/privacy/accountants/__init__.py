"""Judges of events: exact Gaussian, Rényi, and privacy-loss distributions. Each refuses what it has no proof for."""

from dpadmm.privacy.accountants.base import ACCOUNTANTS, Accountant, default_accountant, make_accountant
from dpadmm.privacy.accountants.gaussian import GaussianAccountant
from dpadmm.privacy.accountants.pld import PldAccountant
from dpadmm.privacy.accountants.rdp import RdpAccountant

__all__ = [
    "ACCOUNTANTS",
    "Accountant",
    "GaussianAccountant",
    "PldAccountant",
    "RdpAccountant",
    "default_accountant",
    "make_accountant",
]
