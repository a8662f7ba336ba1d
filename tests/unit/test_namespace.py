"""What `import dpadmm` offers: every name, on first use, without importing anything heavy before."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dpadmm

NOTHING_HEAVY = "import dpadmm, sys; assert not {'numpy', 'scipy', 'sklearn'} & set(sys.modules); "


@pytest.mark.parametrize("name", dpadmm.__all__)
def test_every_name_is_found(name: str) -> None:
    assert getattr(dpadmm, name) is not None
    assert name in dir(dpadmm)


@pytest.mark.parametrize("use", ["dpadmm.audit.audit_model", "dpadmm.datasets.names"])
def test_subpackages_are_imported_on_first_use(use: str) -> None:
    """In a process of its own: here some other test has imported them."""
    subprocess.run([sys.executable, "-c", NOTHING_HEAVY + f"assert callable({use})"], check=True)
