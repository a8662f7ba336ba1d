"""`dpadmm check`: which cells of a table do not fit its schema, for the eyes of its owner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from dpadmm.cli import options
from dpadmm.cli.failures import BAD_INPUT
from dpadmm.cli.screen import print_json

if TYPE_CHECKING:
    from dpadmm.tables.findings import Finding, Findings, Place

HELP = """\
List the cells that do not fit the schema. For the owner of the table only: the output quotes private cells.

Run it before `dpadmm fit`, which says that a table has an invalid row but never which one. Both commands read cells \
by the same rules. `check` writes nothing: no file, no ledger, no cache. Correct the cells, not the ranges: the \
privacy statement assumes that nobody chose a range after looking at the rows.

A cell is missing if it is empty or holds NA, N/A, NaN, null or None. With fill = … in its column of the schema it \
counts as that value.

The exit code is 0 if every row fits and 2 if one does not. Cells that are clipped to their range, filled, or counted \
as no category are listed too, but they fit.

\b
Examples
  dpadmm check patients.csv --schema patients.toml --target outcome
  dpadmm check patients.parquet --schema patients.toml --json
"""

NOTICE = "This output contains private data: do not share it. It is for the owner of the table."


def check(
    table: options.TableFile,
    schema: options.SchemaFile,
    target: options.Target = None,
    json: options.Json = False,
) -> None:
    from dpadmm import tables

    declared = tables.Schema.read(schema)
    findings = tables.check(table, declared if target is None else declared.with_target(target))
    if json:
        print_json(as_json(findings))
    else:
        print("\n".join([NOTICE, "", *_lines(findings), "", NOTICE]))
    if not findings.clean:
        raise typer.Exit(BAD_INPUT)


def as_json(findings: Findings) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "notice": NOTICE,
        "rows": findings.rows,
        "refused_rows": findings.refused_rows,
        "findings": [
            {
                "column": finding.column,
                "kind": finding.kind.key,
                "what": finding.kind.words,
                "refused": finding.kind.refused,
                "count": finding.count,
                "places": [{"row": place.row, "line": place.line, "value": place.value} for place in finding.places],
            }
            for finding in findings.found
        ],
    }


def _lines(findings: Findings) -> Iterator[str]:
    grouped: dict[str | None, list[Finding]] = {}
    for finding in findings.found:
        grouped.setdefault(finding.column, []).append(finding)
    for column, found in grouped.items():
        yield "the table" if column is None else f"column {column!r}"
        for finding in found:
            yield f"  {'refused' if finding.kind.refused else 'accepted'}: {_counted(finding)}"
            yield from (f"    {_where(place)}" for place in finding.places)
            if 0 < len(finding.places) < finding.count:
                yield f"    and {finding.count - len(finding.places):,} more"
        yield ""
    if findings.clean:
        yield f"All {findings.rows:,} rows fit the schema."
    elif findings.refused_rows:
        yield (
            f"{findings.refused_rows:,} of {findings.rows:,} rows do not fit the schema. `dpadmm fit` refuses the "
            "table; with --invalid-rows zero it trains, and these rows count for nothing."
        )
    else:
        yield "The table does not fit the schema, and `dpadmm fit` refuses it."


def _counted(finding: Finding) -> str:
    if not finding.places:
        return finding.kind.words
    what = "line" if finding.column is None else "cell"
    return f"{finding.count:,} {what}{'' if finding.count == 1 else 's'}, {finding.kind.words}"


def _where(place: Place) -> str:
    where = f"row {place.row:,}" if place.line is None else f"line {place.line:,}"
    return where if place.value is None else f"{where}: {place.value}"
