"""What people read: the coefficient picture, the HTML page, the report folder, test metrics, and what was spent."""

from dpadmm.report.coefficients import Coefficients
from dpadmm.report.content import Report
from dpadmm.report.folder import REPORT_FILES, promise_texts, write_report
from dpadmm.report.metrics import classification_metrics, regression_metrics
from dpadmm.report.spending import Spending, spending_picture
from dpadmm.report.typical_row import TypicalRow

__all__ = [
    "REPORT_FILES",
    "Coefficients",
    "Report",
    "Spending",
    "TypicalRow",
    "classification_metrics",
    "promise_texts",
    "regression_metrics",
    "spending_picture",
    "write_report",
]
