"""Many owners, one model."""
