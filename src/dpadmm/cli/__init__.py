"""The command line: one file a command, public checks before private reads, errors without data."""
