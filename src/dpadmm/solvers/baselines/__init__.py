"""Private algorithms that are not ADMM, for comparison."""
