"""What people read: the coefficient picture, the HTML page, the report folder, and test metrics."""

from dpadmm.report.coefficients import Coefficients
from dpadmm.report.content import Report
from dpadmm.report.folder import REPORT_FILES, write_report
from dpadmm.report.metrics import classification_metrics, regression_metrics

__all__ = ["REPORT_FILES", "Coefficients", "Report", "classification_metrics", "regression_metrics", "write_report"]
