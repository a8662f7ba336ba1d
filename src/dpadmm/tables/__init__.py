"""Tables of the user: a declared schema, CSV and Parquet reading, and encoding into numbers."""

from dpadmm.tables.check import check
from dpadmm.tables.encode import EncodedTable, encode
from dpadmm.tables.on_disk import encoded_on_disk
from dpadmm.tables.reading import read_table
from dpadmm.tables.schema import Schema, TargetColumn

__all__ = ["EncodedTable", "Schema", "TargetColumn", "check", "encode", "encoded_on_disk", "read_table"]
