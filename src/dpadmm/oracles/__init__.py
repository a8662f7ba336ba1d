"""The one door to the data: everything a solver learns about the rows passes through an oracle."""
