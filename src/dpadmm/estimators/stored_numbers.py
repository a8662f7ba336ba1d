"""The numbers of a model file: an archive of plain arrays, each checked before a byte of memory is taken for it.

The library writes arrays uncompressed, so a file never needs more memory than its own size. A compressed file, or one
whose headers promise more than it holds, is refused before anything is read from it.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import FileProblem
from dpadmm.estimators.stored_graph import PREFIX
from dpadmm.stored_json import unreadable

MOST_NUMBERS = 1 << 34
"""Bytes of a file of numbers: two billion weights."""
SUFFIX = ".npy"
LONGEST_HEADER = 10_000

FLOATS, LABELS, COUNTS = "f", "biufUS", "iu"
KINDS: Mapping[str, str] = {
    "weights": FLOATS,
    "coef": FLOATS,
    "intercept": FLOATS,
    "classes": LABELS,
    "spread_weights": FLOATS,
    "spread_margins": FLOATS,
    PREFIX + "values": "biuf",
    PREFIX + "rows": COUNTS,
    PREFIX + "columns": COUNTS,
    PREFIX + "shape": COUNTS,
    PREFIX + "sparse": "b",
}
"""What an array of each name may hold, by the kind of its type."""
NEEDED = ("weights", "coef", "intercept")

WHAT = "the numbers of a model"


def read_numbers(content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of a model file; `FileProblem` for anything that the library would not have written."""
    try:
        with ZipFile(io.BytesIO(content)) as archive:
            return _arrays(archive)
    except FileProblem:
        raise
    except Exception:  # of whatever kind: the readers of archives and of headers promise none
        raise unreadable(WHAT, "that are no archive of arrays") from None


def _arrays(archive: ZipFile) -> dict[str, NDArray[Any]]:
    members = archive.infolist()
    names = [member.filename.removesuffix(SUFFIX) for member in members]
    if len(set(names)) < len(names) or not set(names) <= set(KINDS) or not set(NEEDED) <= set(names):
        raise unreadable(WHAT, "with a missing, repeated or unknown array")
    return {name: _array(archive, member, KINDS[name]) for name, member in zip(names, members, strict=True)}


def _array(archive: ZipFile, member: ZipInfo, kinds: str) -> NDArray[Any]:
    """One array, copied out of the archive once its header fits its length."""
    plain = member.compress_type == ZIP_STORED and member.file_size == member.compress_size
    if not plain or not member.filename.endswith(SUFFIX):
        raise unreadable(WHAT, "that are compressed, or no arrays")
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, fortran, dtype = read_header[version](stream, max_header_size=LONGEST_HEADER)
        if dtype.kind not in kinds or dtype.hasobject or dtype.fields or any(length < 0 for length in shape):
            raise unreadable(WHAT, "with an array of another type")
        values = stream.read()  # no more than the file holds; its checksum is compared at the end
    if math.prod(shape) * dtype.itemsize != len(values) or not dtype.itemsize:
        raise unreadable(WHAT, "with an array that is not as long as its header says")
    array = np.frombuffer(values, dtype).reshape(shape, order="F" if fortran else "C").copy("K")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise unreadable(WHAT, "with a NaN or an infinity")
    return array
