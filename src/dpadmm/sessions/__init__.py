"""The life of a promise, from the first look at the budget to the statement; needs no scikit-learn."""

from dpadmm.sessions.session import Session, Work

__all__ = ["Session", "Work"]
