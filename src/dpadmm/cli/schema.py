"""`dpadmm schema`: a schema to fill in, made from the names of the columns alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpadmm.cli.header import column_names
from dpadmm.cli.options import Force, Json, TableFile
from dpadmm.cli.output_folder import check_new_file
from dpadmm.cli.screen import print_json, print_line

HELP = """\
Write a schema template from the column names of a table; no value is read.

Fill in kinds, ranges, categories and classes from what is known without looking at the data.

\b
Examples
  dpadmm schema patients.csv --out patients.toml
"""


def schema(
    table: TableFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="The .toml file to write.")],
    force: Force = False,
    json: Json = False,
) -> None:
    from dpadmm.files import replacing
    from dpadmm.tables import Schema

    check_new_file(out, force)
    names = column_names(table)
    with replacing(out) as stream:
        stream.write(Schema.template(names).encode("utf-8"))
    if json:
        print_json({"out": str(out), "columns": len(names)})
    else:
        print_line(f"Wrote {out} with {len(names)} columns, all ignored until you declare their kinds.")
