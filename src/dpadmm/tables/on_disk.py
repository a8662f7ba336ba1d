"""A Parquet file larger than memory → numbers in a mapped file, block of rows by block of rows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from dpadmm.errors import FileProblem, InvalidData
from dpadmm.files import why
from dpadmm.tables.encode import EncodedTable, Policy, encode, refuse_invalid
from dpadmm.tables.schema import Schema

BLOCK_ROWS = 1 << 16


@contextmanager
def encoded_on_disk(
    path: str | Path,
    schema: Schema,
    folder: str | Path,
    *,
    with_target: bool,
    invalid_rows: Policy = "error",
    with_person: bool = False,
    block_rows: int = BLOCK_ROWS,
) -> Iterator[EncodedTable]:
    """Encode a Parquet file as `encode` would, with the rows in float32 in a file that is gone afterwards.

    The file holds private rows. It can be read by its owner alone and has no name while it is used, so that it cannot
    outlive this process, however it ends; where the system knows no nameless files it is removed at the end.

    Parameters
    ----------
    path : str or Path
        A Parquet file.
    schema, with_target, invalid_rows, with_person
        As for `encode`.
    folder : str or Path
        Where there is room for rows × features × 4 bytes.
    block_rows : int
        Rows in memory at a time.
    """
    path = Path(path)
    if path.suffix.lower() != ".parquet" or not path.is_file():
        raise FileProblem(
            f"the table {path}, which is not a Parquet file",
            "a Parquet file that exists",
            "correct the path, convert the table to Parquet, or read it into memory",
        )
    if not Path(folder).is_dir():
        raise FileProblem(
            f"the folder {folder}, which does not exist", "a folder that exists", "make it, or name another"
        )
    with ExitStack() as stack:
        with _told():
            scratch = stack.enter_context(tempfile.TemporaryFile(dir=folder))
            read = partial(encode, schema=schema, with_target=with_target, invalid_rows="zero", with_person=with_person)
            parts = [_stored(read(frame), scratch.fileno()) for frame in row_blocks(path, block_rows)]
        if not parts:
            raise InvalidData(f"the empty table {path}", "at least one row", "give a table that has rows")
        valid = np.concatenate([part.valid for part in parts])
        if invalid_rows == "error":
            refuse_invalid(valid)
        X = np.memmap(scratch, dtype=np.float32, mode="r", shape=(len(valid), schema.n_features))
        y = np.concatenate([part.y for part in parts if part.y is not None]) if with_target else None
        ids = [part.person for part in parts if part.person is not None]
        yield EncodedTable(X, y, schema.feature_names, valid, np.concatenate(ids) if ids else None)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise FileProblem(
            f"a folder for the rows that does not take them ({why(problem)})",
            "a folder that can be written, with room for rows × features × 4 bytes",
            "make room there, or name another folder",
        ) from None


def _stored(block: EncodedTable, file: int) -> EncodedTable:
    """Append the rows of a block to the file; the rest of the block is small."""
    rows = np.ascontiguousarray(block.X, dtype=np.float32).data.cast("B")
    while rows:
        rows = rows[os.write(file, rows) :]
    return EncodedTable(np.empty((0, block.X.shape[1])), block.y, block.feature_names, block.valid, block.person)


def row_blocks(path: Path, block_rows: int = BLOCK_ROWS) -> Iterator[pd.DataFrame]:
    """Row blocks; reader errors quote cells, so they end here and are not even chained."""
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=block_rows):
                yield pa.Table.from_batches([batch]).to_pandas(ignore_metadata=True, integer_object_nulls=True)
        return
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError):
        pass
    raise InvalidData(f"the table {path}, which cannot be read", "a Parquet file", "repair the file or write it again")
