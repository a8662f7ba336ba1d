"""The report folder: the privacy statement, the plan, the coefficients and a page that shows them all."""

from __future__ import annotations

import json
from pathlib import Path

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
        "statement.txt": report.statement.text + "\n",
        "statement.json": report.statement.to_json() + "\n",
        "plan.json": json.dumps({**report.plan.to_dict(), "digest": report.plan.digest}, indent=2) + "\n",
        "coefficients.csv": report.coefficients.to_csv(),
        "report.html": report_page(report, picture),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "coefficients.png").write_bytes(picture)
