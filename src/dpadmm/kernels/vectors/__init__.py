"""The innermost loops over rows as vector instructions, written out for Numba: `dense_*` for dense rows, `*sparse_*`
for stored entries, all built of `instructions.py`."""
