"""Empirical checks of privacy claims: lower bounds on ε by attack, and leaky positive controls of their power."""
