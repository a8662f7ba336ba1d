"""`dpadmm schema`: a schema to fill in, made from the names of the columns alone."""

from __future__ import annotations

from dpadmm.cli.header import column_names
from dpadmm.cli.options import Force, Json, OutFile, TableFile
from dpadmm.cli.outputs import check_new_file, write_new_file
from dpadmm.cli.screen import print_json, print_line

HELP = """\
Write a schema template from the column names of a table. No cell is read.

Then fill in kinds, ranges, categories and classes. Use what is known without looking at the rows.

\b
Examples
  dpadmm schema patients.csv --out patients.toml
"""


def schema(
    table: TableFile,
    out: OutFile,
    force: Force = False,
    json: Json = False,
) -> None:
    from dpadmm.tables import Schema

    check_new_file(out, force)
    names = column_names(table)
    write_new_file(out, Schema.template(names).encode("utf-8"))
    if json:
        print_json({"out": str(out), "columns": len(names)})
    else:
        print_line(f"Wrote {out} with {len(names)} columns, all ignored until you declare their kinds.")
