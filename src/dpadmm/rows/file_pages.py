"""Tables mapped from a file: pages that were read are let go, so that a table larger than memory stays on disk."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

FORGET_AFTER = 1 << 28
"""Bytes read between two times of letting go."""

SHARED_MODES = ("r", "r+")
"""Of `numpy.memmap`. A private mapping ("c") may hold changes that only its pages know."""


class FilePages:
    """The pages behind an array, if they come from a file.

    Parameters
    ----------
    X : array
        Any array or sparse matrix; only dense ones that are views of a shared `numpy.memmap` have pages to let go.
    """

    def __init__(self, X: Any) -> None:
        self._mapping, self._read = _shared_mapping(X), 0

    def after(self, n_bytes: int) -> None:
        """Note that this much was read. Values are never lost: a page that is needed again is read again."""
        if self._mapping is None:
            return
        self._read += n_bytes
        if self._read >= FORGET_AFTER:
            self._read = 0
            self._mapping.madvise(mmap.MADV_DONTNEED)


def _shared_mapping(X: Any) -> mmap.mmap | None:
    shared = False
    while isinstance(X, np.ndarray):
        shared = isinstance(X, np.memmap) and X.mode in SHARED_MODES
        X = X.base
    return X if shared and isinstance(X, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED") else None
