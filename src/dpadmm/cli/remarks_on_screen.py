"""Warnings from public numbers alone, one line each on standard error, as they come: before a budget is charged."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dpadmm.errors import PublicWarning

if TYPE_CHECKING:
    from dpadmm.declare.remarks import Remark


@contextmanager
def remarks_told() -> Iterator[list[dict[str, str]]]:
    """Print each `PublicWarning` of the block, and collect it for `--json`; other warnings go their usual way."""
    told: list[dict[str, str]] = []
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if not isinstance(message, PublicWarning):
            usual(message, category, *where, **more)
            return
        told.append({"kind": message.key, "text": str(message)})
        print(f"warning: {message}", file=sys.stderr, flush=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", PublicWarning)
        warnings.showwarning = show
        yield told


def worded(remarks: Iterable[Remark]) -> list[dict[str, str]]:
    """Remarks that nobody gave as warnings, for `--json`."""
    return [{"kind": remark.category.key, "text": remark.text} for remark in remarks]
