"""Exact samplers: integers drawn by comparing uniform bits, without a rounding error anywhere.

| file | what it draws |
|---|---|
| `discrete_gaussian.py` | the noise of exact arithmetic |
| `binomial.py` | sizes of mini-batches |
| `trial_numbers.py` | numbers of trials of a private search |
| `law_table.py` | from any law of whole numbers that is given as a table; the two files above build on it |
"""
