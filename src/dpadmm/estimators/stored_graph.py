"""A graph that was given as a matrix, in a model file: its entries that are not zero, as a few short arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm.stored_json import unreadable

PREFIX = "graph_"
LONGEST_EDGE = 3
MOST_DENSE = 1 << 26
"""Entries of a matrix that is made dense again, and edges of any; what is larger stays sparse, and means the same."""


def to_arrays(graph: Any) -> dict[str, NDArray[Any]]:
    """What a model file holds of a matrix."""
    entries = sparse.coo_array(graph)
    return {
        PREFIX + "values": entries.data,
        PREFIX + "rows": entries.row,
        PREFIX + "columns": entries.col,
        PREFIX + "shape": np.array(entries.shape),
        PREFIX + "sparse": np.array(sparse.issparse(graph)),
    }


def from_arrays(arrays: Mapping[str, NDArray[Any]], parameter: Any, n_features: int) -> Any:
    """The graph of a model file; `parameter` is what its words say, which is all there is of a list of edges.

    Earlier versions wrote arrays as lists of rows: a row longer than an edge, or one that begins with a fraction.
    """
    if PREFIX + "values" in arrays:
        values, rows, columns, shape = (arrays[PREFIX + name] for name in ("values", "rows", "columns", "shape"))
        n_edges, width = shape.tolist()
        if (
            width != n_features
            or not 0 <= n_edges <= MOST_DENSE
            or not values.shape == rows.shape == columns.shape == (len(values),)
        ):
            raise unreadable("a graph", "that is no matrix with a column for each feature")
        entries = sparse.coo_matrix((values, (rows, columns)), shape=(n_edges, width))
        is_sparse = arrays[PREFIX + "sparse"].item() or n_edges * width > MOST_DENSE
        return entries.tocsr() if is_sparse else entries.toarray()
    if parameter and (len(parameter[0]) > LONGEST_EDGE or isinstance(parameter[0][0], float)):
        return np.asarray(parameter)
    return parameter
