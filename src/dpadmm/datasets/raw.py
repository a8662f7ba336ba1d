"""Raw files as their homes publish them → the arrays we keep (reference data: ranges and vocabularies are public)."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpadmm.datasets.arrays import Arrays
from dpadmm.errors import InvalidData

Converter: TypeAlias = Callable[[Mapping[str, Path]], Arrays]

_GZIP_MAGIC = b"\x1f\x8b"
ADULT_COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)
ADULT_NUMERIC = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
MUSHROOM_COLUMNS = (
    "cap-shape",
    "cap-surface",
    "cap-color",
    "bruises",
    "odor",
    "gill-attachment",
    "gill-spacing",
    "gill-size",
    "gill-color",
    "stalk-shape",
    "stalk-root",
    "stalk-surface-above-ring",
    "stalk-surface-below-ring",
    "stalk-color-above-ring",
    "stalk-color-below-ring",
    "veil-type",
    "veil-color",
    "ring-number",
    "ring-type",
    "spore-print-color",
    "population",
    "habitat",
)
COVTYPE_COLUMNS = (
    "Elevation",
    "Aspect",
    "Slope",
    "Horizontal_Distance_To_Hydrology",
    "Vertical_Distance_To_Hydrology",
    "Horizontal_Distance_To_Roadways",
    "Hillshade_9am",
    "Hillshade_Noon",
    "Hillshade_3pm",
    "Horizontal_Distance_To_Fire_Points",
    *(f"Wilderness_Area{i}" for i in range(1, 5)),
    *(f"Soil_Type{i}" for i in range(1, 41)),
)
LODGEPOLE_PINE = 2


def convert(converter: Converter, files: Mapping[str, Path]) -> Arrays:
    """Run a converter; whatever it stumbles over becomes one `InvalidData`."""
    arrays = None
    try:
        arrays = converter(files)
    except (OSError, EOFError, zlib.error, ValueError, KeyError, IndexError, struct.error):
        arrays = None
    if arrays is None:
        raise InvalidData(
            "raw files that do not have the form published for this data set",
            "the files " + ", ".join(sorted(files)) + " as their home offers them",
            "fetch them again, or place the converted npz in the folder named by DPADMM_DATA",
        )
    return arrays


def _bytes(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if content.startswith(_GZIP_MAGIC) else content


def _rows(path: Path, n_fields: int) -> list[list[str]]:
    """Comma-separated fields of every line but blanks and `|` remarks."""
    lines = _bytes(path).decode("ascii").splitlines()
    rows = [[part.strip() for part in line.split(",")] for line in lines if line.strip() and not line.startswith("|")]
    if not rows or any(len(row) != n_fields for row in rows):
        raise ValueError("unexpected number of fields")
    return rows


def _signs(values: Iterable[str], positive: str, negative: str) -> NDArray[np.float32]:
    sign = {positive: 1.0, negative: -1.0}
    return np.array([sign[value] for value in values], dtype=np.float32)


def _one_hot(columns: Mapping[str, NDArray[Any]]) -> tuple[NDArray[np.float32], list[str], list[str]]:
    """Indicator columns in attribute order, values alphabetical; their names; the attribute of each."""
    blocks, names, groups = [], [], []
    for attribute, values in columns.items():
        vocabulary = np.unique(values)
        blocks.append((values[:, None] == vocabulary[None, :]).astype(np.float32))
        names += [f"{attribute}={value}" for value in vocabulary]
        groups += [attribute] * len(vocabulary)
    return np.hstack(blocks), names, groups


def _min_max(values: NDArray[Any], lower: NDArray[Any], upper: NDArray[Any]) -> NDArray[np.float32]:
    width = np.where(upper > lower, upper - lower, 1.0)
    scaled: NDArray[np.float32] = ((values - lower) / width).astype(np.float32)
    return scaled


def adult(files: Mapping[str, Path]) -> Arrays:
    """adult.data and adult.test: rows with `?` dropped, ranges over all rows, 6 numeric + one-hot columns."""
    train, test = (np.array(_rows(files[name], len(ADULT_COLUMNS))) for name in ("adult.data", "adult.test"))
    table = np.vstack([train, test])
    numeric = table[:, [ADULT_COLUMNS.index(name) for name in ADULT_NUMERIC]].astype(np.float64)
    lower, upper = numeric.min(axis=0), numeric.max(axis=0)
    complete = ~(table == "?").any(axis=1)
    n_train = int(complete[: len(train)].sum())
    table, numeric = table[complete], numeric[complete]
    words = {
        name: table[:, i] for i, name in enumerate(ADULT_COLUMNS) if name not in ADULT_NUMERIC and name != "income"
    }
    indicators, names, groups = _one_hot(words)
    X = np.hstack([_min_max(numeric, lower, upper), indicators])
    # The test file writes its labels with a full stop.
    y = _signs((label.rstrip(".") for label in table[:, -1]), ">50K", "<=50K")
    return {
        "X": X[:n_train],
        "y": y[:n_train],
        "Xtest": X[n_train:],
        "ytest": y[n_train:],
        "feature_names": np.array([*ADULT_NUMERIC, *names]),
        "numeric_names": np.array(ADULT_NUMERIC),
        "num_lo": lower,
        "num_hi": upper,
        "Xnum_raw": numeric[:n_train].astype(np.float32),
        "Xnum_raw_test": numeric[n_train:].astype(np.float32),
        "group": np.array(["num"] * len(ADULT_NUMERIC) + groups),
    }


def mushrooms(files: Mapping[str, Path]) -> Arrays:
    """agaricus-lepiota.data: one-hot of 21 attributes, stalk-root (which has missing values) kept apart."""
    table = np.array(_rows(files["agaricus-lepiota.data"], 1 + len(MUSHROOM_COLUMNS)))
    columns = {name: table[:, 1 + i] for i, name in enumerate(MUSHROOM_COLUMNS)}
    stalk_root = columns.pop("stalk-root")
    X, names, _ = _one_hot(columns)
    return {
        "X": X,
        "y": _signs(table[:, 0], "p", "e"),
        "feature_names": np.array(names),
        "stalk_root": stalk_root,
    }


def covtype(files: Mapping[str, Path]) -> Arrays:
    """covtype.data.gz: 54 columns min-maxed to [0, 1]; +1 is lodgepole pine."""
    import pandas as pd

    frame = pd.read_csv(files["covtype.data.gz"], header=None, dtype=np.int32, compression="infer")
    table = frame.to_numpy()
    if table.shape[1] != len(COVTYPE_COLUMNS) + 1:
        raise ValueError("unexpected number of columns")
    values, kinds = table[:, :-1].astype(np.float64), table[:, -1]
    lower, upper = values.min(axis=0), values.max(axis=0)
    return {
        "X": _min_max(values, lower, upper),
        "y": np.where(kinds == LODGEPOLE_PINE, 1, -1).astype(np.float32),
        "y7": kinds.astype(np.int8),
        "num_lo": lower,
        "num_hi": upper,
        "feature_names": np.array(COVTYPE_COLUMNS),
    }


def libsvm(train: str, test: str, n_features: int) -> Converter:
    """A converter for a pair of LIBSVM text files: `label index:value …`, indices from 1."""

    def run(files: Mapping[str, Path]) -> Arrays:
        return {
            **_libsvm_part(files[train], n_features, "X", "y"),
            **_libsvm_part(files[test], n_features, "Xtest", "ytest"),
        }

    return run


def _libsvm_part(path: Path, n_features: int, stem: str, labels: str) -> Arrays:
    y: list[float] = []
    indices: list[int] = []
    data: list[float] = []
    indptr = [0]
    for line in _bytes(path).decode("ascii").splitlines():
        label, *entries = line.split()
        y.append({1.0: 1.0, -1.0: -1.0}[float(label)])
        for entry in entries:
            index, value = entry.split(":")
            indices.append(int(index) - 1)
            data.append(float(value))
        indptr.append(len(indices))
    if not y or (indices and not 0 <= min(indices) <= max(indices) < n_features):
        raise ValueError("feature index out of range")
    return {
        f"{stem}_data": np.array(data, dtype=np.float32),
        f"{stem}_indices": np.array(indices, dtype=np.int32),
        f"{stem}_indptr": np.array(indptr, dtype=np.int64),
        f"{stem}_shape": np.array([len(y), n_features], dtype=np.int64),
        labels: np.array(y, dtype=np.float32),
    }


def mnist(files: Mapping[str, Path]) -> Arrays:
    """The four idx files: images flattened to rows of pixels (0–255), labels as digits."""
    arrays: Arrays = {}
    for prefix, stem, labels in (("train", "X", "y"), ("t10k", "Xtest", "ytest")):
        images = _idx(files[f"{prefix}-images-idx3-ubyte.gz"], dimensions=3)
        arrays[stem] = images.reshape(len(images), -1)
        arrays[labels] = _idx(files[f"{prefix}-labels-idx1-ubyte.gz"], dimensions=1).astype(np.int64)
    return arrays


def _idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """An idx file of bytes: two zero bytes, type 8, number of dimensions, big-endian sizes, the values."""
    content = _bytes(path)
    if content[:4] != bytes([0, 0, 8, dimensions]):
        raise ValueError("not an idx file of bytes")
    shape = struct.unpack(f">{dimensions}I", content[4 : 4 + 4 * dimensions])
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * dimensions).reshape(shape).copy()
