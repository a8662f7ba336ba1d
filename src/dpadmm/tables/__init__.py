"""Tables of the user: a declared schema, CSV and Parquet reading, and encoding into numbers."""

from dpadmm.tables.encode import EncodedTable, encode
from dpadmm.tables.reading import read_table
from dpadmm.tables.schema import Schema, Target

__all__ = ["EncodedTable", "Schema", "Target", "encode", "read_table"]
