"""The report folder: the privacy statement, the plan, the coefficients and a page that shows them all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpadmm.report.content import Report
from dpadmm.report.page import report_page
from dpadmm.report.picture import coefficient_picture

REPORT_FILES = (
    "statement.txt",
    "statement.json",
    "plan.json",
    "coefficients.csv",
    "coefficients.png",
    "report.html",
)


def write_report(folder: Path, report: Report) -> None:
    """Write the files named in `REPORT_FILES` into an existing folder."""
    picture = coefficient_picture(report.coefficients, report.axis_label, report.relevant)
    texts = {
        **promise_texts(report.statement.to_dict(), report.plan.to_dict(), report.plan.digest),
        "coefficients.csv": report.coefficients.to_csv(),
        "report.html": report_page(report, picture),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "coefficients.png").write_bytes(picture)


def promise_texts(statement: Mapping[str, Any], plan: Mapping[str, Any], digest: str) -> dict[str, str]:
    """What the files that repeat a model's promise say, letter for letter."""
    return {
        "statement.txt": statement["statement"] + "\n",
        "statement.json": json.dumps(statement, indent=2) + "\n",
        "plan.json": json.dumps({**plan, "digest": digest}, indent=2) + "\n",
    }
