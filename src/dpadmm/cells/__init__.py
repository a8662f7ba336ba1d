"""From the object a user passes to rows of numbers: each cell is read by itself (docs/proofs/rows.md).

| file | idea |
|---|---|
| `one_cell.py` | what one cell means: a number, a label, or neither |
| `target_columns.py` | labels and targets |
| `pandas_cells.py` | the cells of a column of pandas or pyarrow |
| `feature_tables.py` | features: arrays, lists, DataFrames, sparse matrices, tensors |
| `text_columns.py` | how a table with text in it is refused |
| `holders.py` | who holds a table: this process, Dask or torch |
"""
