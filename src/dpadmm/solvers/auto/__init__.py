"""The tuning-free solver: one idea a file, `solver.py` puts them together."""
