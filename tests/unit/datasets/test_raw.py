"""Converters from the files as published: small made-up files of the same form, and adult in full where at hand."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from dpadmm.datasets import raw
from dpadmm.datasets.arrays import content_sha256, read_npz
from dpadmm.datasets.catalogue import CATALOGUE
from dpadmm.errors import InvalidData

SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "data"

ADULT_TRAIN = """\
20, Private, 100, HS-grad, 9, Never-married, Sales, Own-child, White, Male, 0, 0, 40, Cuba, <=50K
60, ?, 300, Masters, 14, Divorced, ?, Wife, Black, Female, 50, 10, 60, Peru, >50K
40, State-gov, 200, HS-grad, 9, Divorced, Sales, Wife, Black, Female, 0, 0, 20, Cuba, >50K

"""
ADULT_TEST = """\
|1x3 Cross validator
30, Private, 150, Masters, 14, Divorced, Sales, Wife, White, Male, 25, 0, 30, Cuba, >50K.
"""


@pytest.fixture
def shared() -> Path:
    if not (SHARED / "raw").is_dir():
        pytest.skip("the reference data (../shared/data beside the repository) are not on this machine")
    return SHARED


def write(folder: Path, **files: str | bytes) -> dict[str, Path]:
    paths = {}
    for name, content in files.items():
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        paths[name] = path
    return paths


def idx(array: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return gzip.compress(header + array.astype(np.uint8).tobytes())


def test_adult_in_small(tmp_path: Path) -> None:
    arrays = raw.convert(raw.adult, write(tmp_path, **{"adult.data": ADULT_TRAIN, "adult.test": ADULT_TEST}))
    assert arrays["X"].shape[0] == 2
    assert arrays["Xtest"].shape[0] == 1
    np.testing.assert_array_equal(arrays["y"], [-1, 1])
    np.testing.assert_array_equal(arrays["ytest"], [1])
    # The range counts the dropped row, so that 40 years lie half way from 20 to 60.
    np.testing.assert_array_equal(arrays["X"][:, 0], [0.0, 0.5])
    names = list(arrays["feature_names"])
    assert names[:6] == list(raw.ADULT_NUMERIC)
    assert "workclass=State-gov" in names
    assert "native-country=Peru" not in names
    assert arrays["X"][:, 6:].sum() == 2 * 8
    assert list(arrays["group"]).count("education") == 2


def test_adult_in_full_equals_the_reference(shared: Path) -> None:
    files = {name: shared / "raw" / f"{name}.gz" for name in ("adult.data", "adult.test")}
    arrays, reference = raw.convert(raw.adult, files), read_npz(shared / "adult.npz")
    assert set(arrays) == set(reference)
    for name, expected in reference.items():
        assert arrays[name].dtype == expected.dtype
        np.testing.assert_array_equal(arrays[name], expected)
    assert content_sha256(arrays) == CATALOGUE["adult"].content_sha256


def test_mushrooms(tmp_path: Path) -> None:
    first = ["p", *("abcdefghij"), "?", *("lmnopqrstuv")]
    second = ["e", *("abcdefghiz"), "k", *("lmnopqrstuw")]
    text = ",".join(first) + "\n" + ",".join(second) + "\n"
    arrays = raw.convert(raw.mushrooms, write(tmp_path, **{"agaricus-lepiota.data": text}))
    np.testing.assert_array_equal(arrays["y"], [1, -1])
    np.testing.assert_array_equal(arrays["stalk_root"], ["?", "k"])
    assert arrays["X"].shape == (2, 19 + 2 * 2)
    np.testing.assert_array_equal(arrays["X"].sum(axis=1), [21, 21])
    assert list(arrays["feature_names"][-2:]) == ["habitat=v", "habitat=w"]


def test_mushrooms_rebuilt_in_full(tmp_path: Path, shared: Path) -> None:
    reference = read_npz(shared / "mushrooms.npz")
    lines = []
    for row, label, root in zip(reference["X"], reference["y"], reference["stalk_root"], strict=True):
        cells = dict(name.split("=") for name in reference["feature_names"][row > 0]) | {"stalk-root": str(root)}
        lines.append(",".join(["p" if label > 0 else "e", *(cells[name] for name in raw.MUSHROOM_COLUMNS)]))
    files = write(tmp_path, **{"agaricus-lepiota.data": "\n".join(lines) + "\n"})
    assert content_sha256(raw.convert(raw.mushrooms, files)) == CATALOGUE["mushrooms"].content_sha256


def test_libsvm(tmp_path: Path) -> None:
    files = write(tmp_path, a="+1 1:1 3:0.5 \n-1\n", b="-1 4:2\n")
    arrays = raw.convert(raw.libsvm("a", "b", 4), files)
    parts = (arrays["X_data"], arrays["X_indices"], arrays["X_indptr"])
    X = sp.csr_matrix(parts, shape=tuple(arrays["X_shape"])).toarray()
    np.testing.assert_array_equal(X, [[1, 0, 0.5, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal(arrays["y"], [1, -1])
    np.testing.assert_array_equal(arrays["Xtest_shape"], [1, 4])
    np.testing.assert_array_equal(arrays["Xtest_indices"], [3])


def test_covtype(tmp_path: Path) -> None:
    rows = np.zeros((3, 55), dtype=int)
    rows[:, 0], rows[:, -1] = [2000, 3000, 2500], [1, 2, 7]
    text = "\n".join(",".join(map(str, row)) for row in rows) + "\n"
    arrays = raw.convert(raw.covtype, write(tmp_path, **{"covtype.data.gz": gzip.compress(text.encode())}))
    np.testing.assert_array_equal(arrays["X"][:, 0], [0, 1, 0.5])
    assert not arrays["X"][:, 1:].any()
    np.testing.assert_array_equal(arrays["y"], [-1, 1, -1])
    np.testing.assert_array_equal(arrays["y7"], [1, 2, 7])
    assert len(arrays["feature_names"]) == 54


def test_mnist(tmp_path: Path) -> None:
    images = np.arange(2 * 4 * 3).reshape(2, 4, 3)
    files = write(
        tmp_path,
        **{
            "train-images-idx3-ubyte.gz": idx(images),
            "train-labels-idx1-ubyte.gz": idx(np.array([7, 3])),
            "t10k-images-idx3-ubyte.gz": idx(images[:1]),
            "t10k-labels-idx1-ubyte.gz": idx(np.array([9])),
        },
    )
    arrays = raw.convert(raw.mnist, files)
    np.testing.assert_array_equal(arrays["X"], images.reshape(2, 12))
    np.testing.assert_array_equal(arrays["y"], [7, 3])
    np.testing.assert_array_equal(arrays["ytest"], [9])
    assert arrays["X"].dtype == np.uint8


@pytest.mark.parametrize(
    ("converter", "name", "content"),
    [
        (raw.mushrooms, "agaricus-lepiota.data", "p,SECRET-7431\n"),
        (raw.mushrooms, "agaricus-lepiota.data", ""),
        (raw.libsvm("a", "a", 2), "a", "+1 3:1\n"),
        (raw.libsvm("a", "a", 2), "a", "+1 SECRET-7431\n"),
        (raw.libsvm("a", "a", 2), "a", "7431 1:1\n"),
        (raw.covtype, "covtype.data.gz", gzip.compress(b"SECRET-7431,2\n", mtime=0)),
        (raw.covtype, "covtype.data.gz", gzip.compress(b"1,2\n", mtime=0)),
        (raw.covtype, "covtype.data.gz", b"\x1f\x8bcut"),
    ],
)
def test_other_forms_are_refused(tmp_path: Path, converter: raw.Converter, name: str, content: str | bytes) -> None:
    with pytest.raises(InvalidData, match="raw files") as caught:
        raw.convert(converter, write(tmp_path, **{name: content}))
    assert "7431" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b"\x01" + b[1:], lambda b: b + b"x"])
def test_damaged_idx_is_refused(tmp_path: Path, damage: object) -> None:
    image, label = gzip.decompress(idx(np.zeros((1, 2, 2)))), idx(np.array([0]))
    images = gzip.compress(damage(image))  # type: ignore[operator]
    names = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    contents = (images, label, images, label)
    with pytest.raises(InvalidData):
        raw.convert(raw.mnist, write(tmp_path, **{f"{n}-ubyte.gz": c for n, c in zip(names, contents, strict=True)}))
