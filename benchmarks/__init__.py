"""How fast and how large: every row a ratio of things measured in one run, on one thread unless it says otherwise.

`make bench` runs all of it and renders docs/performance.md; `python -m benchmarks --quick` leaves out what is slow, and
`--only NAME` picks parts. `make peers` first, to have the peers in the table. Data: `$DPADMM_DATA` or the cache of
`dpadmm.datasets`; a table that is in neither is replaced by a simulated one of the same shape, and the row says so.
"""
