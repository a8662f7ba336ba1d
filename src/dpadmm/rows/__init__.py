"""Everything that holds or reads a private row. What comes out are raw sums, for an oracle alone.

| file | idea |
|---|---|
| `protocol.py` | what an oracle may ask of rows |
| `packed.py` | a table as it was given, with the scale of each row |
| `norms.py` | how long each row is, and which are finite |
| `file_pages.py` | tables mapped from a file |
| `local.py` | rows in memory |
| `wide.py` | sums that never need d × d numbers |
| `scored.py` | rows that judge a model |
| `threshold_counts.py` | how many values are below a threshold |
| `feature_curvature.py` | how curved the loss is along each feature |
| `visit.py` | one visit after another, in a hidden pass |
| `lattice_rows.py`, `lattice_sum.py` | rows and sums as integers, for exact arithmetic |
| `partitioned.py`, `dask_parts.py` | rows in several parts; parts held by Dask |
| `torch_table.py`, `torch_rows.py` | rows on a device |
"""
