"""What the figures compare: this library's solvers, the papers' algorithms as printed, and baselines."""
