"""From the object a user passes to rows of numbers: each cell is read by itself (docs/proofs/rows.md).

| file | idea |
|---|---|
| `cells.py` | what one cell means: a number, a label, or neither |
| `columns.py` | labels and targets |
| `pandas_cells.py` | the cells of a column of pandas or pyarrow |
| `tables.py` | features: arrays, lists, DataFrames, sparse matrices, tensors |
| `holders.py` | who holds a table: this process, Dask or torch |
"""
