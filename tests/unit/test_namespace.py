"""What `import dpadmm` offers: every name, on first use, without importing anything heavy before."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import dpadmm
from dpadmm.errors import InvalidParameter
from dpadmm.privacy.accountants import ACCOUNTANTS
from dpadmm.registry import Registry
from dpadmm.solvers import SOLVERS

NOTHING_HEAVY = "import dpadmm, sys; assert not {'numpy', 'scipy', 'sklearn'} & set(sys.modules); "


@pytest.mark.parametrize("name", dpadmm.__all__)
def test_every_name_is_found(name: str) -> None:
    assert getattr(dpadmm, name) is not None
    assert name in dir(dpadmm)


@pytest.mark.parametrize("use", ["dpadmm.audit.audit_model", "dpadmm.datasets.names"])
def test_subpackages_are_imported_on_first_use(use: str) -> None:
    """In a process of its own: here some other test has imported them."""
    subprocess.run([sys.executable, "-c", NOTHING_HEAVY + f"assert callable({use})"], check=True)


UNUSED = {
    "dpadmm.exact_samplers.discrete_gaussian",
    "dpadmm.rows.lattice_rows",
    "dpadmm.privacy.accountants.pld",
    "dpadmm.solvers.auto.noise_spread.replay",
    "dpadmm.solvers.noisy_admm",
    "dpadmm.solvers.sadmm",
    "dpadmm.solvers.vradmm",
}


def test_a_fit_with_defaults_loads_no_other_solver_or_accountant() -> None:
    fit = "import numpy as np; X = np.eye(200, 3); dpadmm.DPLogisticRegression().fit(X, np.arange(200) % 2); "
    check = f"loaded = {UNUSED} & set(sys.modules); assert not loaded, loaded"
    subprocess.run([sys.executable, "-W", "ignore", "-c", NOTHING_HEAVY + fit + check], check=True)
    assert all(find_spec(module) for module in UNUSED)


@pytest.mark.parametrize("registry", [SOLVERS, ACCOUNTANTS], ids=lambda registry: registry.kind)
def test_every_registered_class_is_found_by_its_name(registry: Registry[Any]) -> None:
    """A class that is not at home in its registry would be found only by those who import its module."""
    source = "".join(path.read_text() for path in Path(dpadmm.__file__).parent.rglob("*.py"))
    registered = re.findall(rf'@{registry.kind.upper()}S\.register\("([^"]+)"\)', source)
    assert sorted(registered) == list(registry)
    assert {registry[name].name for name in registry} == set(registry)


def test_a_name_with_a_home_is_not_taken_by_another_module() -> None:
    shapes = Registry[type]("shape", homes={"square": "somewhere.else"})
    assert "square" in shapes
    assert shapes.names() == ("square",)
    with pytest.raises(InvalidParameter, match="shape name 'square' twice"):
        shapes.register("square")(dict)
