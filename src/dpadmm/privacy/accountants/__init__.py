"""Judges of events: exact Gaussian, Rényi, privacy losses, hidden passes. Each refuses what it has no proof for."""

from dpadmm.privacy.accountants.base import ACCOUNTANTS, Accountant, default_accountant, make_accountant

__all__ = ["ACCOUNTANTS", "Accountant", "default_accountant", "make_accountant"]
