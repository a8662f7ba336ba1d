"""Thresholds at a false alarm of 1e-9: a test of a law passes for every seed, and its mutants do not."""

from __future__ import annotations

ALARM = 1e-9


class Law(AssertionError):
    """A sample that its law would produce less than once in 10⁹ times."""


def require(p_value, what):
    if not p_value >= ALARM:
        raise Law(f"{what}: p = {p_value:.3g}")


def two_sided(value, law):
    return 2 * min(law.cdf(value), law.sf(value))
