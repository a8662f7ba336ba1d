"""The npz layout of a data set on disk: read, check, write, and a checksum of what the arrays say."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dpadmm.datasets.dataset import Dataset, Features
from dpadmm.errors import FileProblem
from dpadmm.files import replacing

Arrays: TypeAlias = dict[str, NDArray[Any]]

_PARTS = ("", "_data", "_indices", "_indptr", "_shape")
CORE = tuple([f"X{part}" for part in _PARTS] + ["y"] + [f"Xtest{part}" for part in _PARTS] + ["ytest"])


def content_sha256(arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of the features and labels themselves: name, dtype, shape and little-endian row-major bytes of each.

    An npz file written twice differs in its zip headers and compression; this does not.
    """
    digest = hashlib.sha256()
    for name in CORE:
        if name in arrays:
            array = np.asarray(arrays[name])
            little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
            digest.update(f"{name} {little.dtype.str} {little.shape}\n".encode())
            digest.update(little.data)
    return digest.hexdigest()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, as hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_npz(path: Path) -> Arrays:
    """The arrays of an npz file; never unpickles.

    Raises
    ------
    FileProblem
        If the file cannot be read or lacks features or labels of matching length.
    """
    arrays: Arrays = {}
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, KeyError, zlib.error, zipfile.BadZipFile, AttributeError):
        arrays = {}
    if not _complete(arrays):
        raise FileProblem(
            f"the file {path}, which is not a readable data set",
            "an npz file without pickles, with X (or X_data, X_indices, X_indptr, X_shape) and y of equal length",
            "remove the file so that it is fetched again, or write it with numpy.savez_compressed",
        )
    return arrays


def _complete(arrays: Arrays) -> bool:
    """Whether features and labels are there, numeric and of equal length, in the split too if there is one."""

    def paired(stem: str, labels: str) -> bool:
        try:
            X, y = _features(arrays, stem), arrays[labels]
        except (KeyError, ValueError, TypeError, IndexError, OverflowError):
            return False
        numeric = X.dtype.kind in "biuf" and y.dtype.kind in "biuf"
        return numeric and X.ndim == 2 and y.ndim == 1 and X.shape[0] == y.size

    return paired("X", "y") and ("ytest" not in arrays or paired("Xtest", "ytest"))


def write_npz(arrays: Mapping[str, NDArray[Any]], target: Path) -> None:
    """Write `target` whole or not at all."""
    with replacing(target) as stream:
        np.savez_compressed(stream, **dict(arrays))  # type: ignore[arg-type]


def to_dataset(name: str, arrays: Arrays, *, description: str, licence: str, verified: bool) -> Dataset:
    """Arrays as stored → `Dataset`: CSR assembled, pixels divided by 255, ±1 labels as integers."""
    names = arrays.get("feature_names")
    has_test = "ytest" in arrays
    return Dataset(
        name=name,
        X=_features(arrays, "X"),
        y=arrays["y"].astype(np.int64),
        X_test=_features(arrays, "Xtest") if has_test else None,
        y_test=arrays["ytest"].astype(np.int64) if has_test else None,
        feature_names=None if names is None else tuple(map(str, names)),
        extras={key: value for key, value in arrays.items() if key not in CORE and key != "feature_names"},
        description=description,
        licence=licence,
        verified=verified,
    )


def _features(arrays: Arrays, stem: str) -> Features:
    if stem not in arrays:
        data, indices, indptr, shape = (arrays[f"{stem}{part}"] for part in _PARTS[1:])
        sparse = sp.csr_matrix((data, indices, indptr), shape=tuple(map(int, shape)))
        sparse.check_format(full_check=True)
        return sparse
    dense = arrays[stem]
    if dense.dtype == np.uint8:
        return np.divide(dense, 255, dtype=np.float32)
    return np.ascontiguousarray(dense)
