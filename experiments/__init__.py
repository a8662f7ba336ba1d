"""Commands behind the numbers in the documentation. Run from the repository root with `python -m experiments.NAME`."""
