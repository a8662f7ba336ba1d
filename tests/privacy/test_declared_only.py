"""T14 and T15: nothing is scaled by what the rows show, nothing extra is asked of them, and the account says all."""

from __future__ import annotations

import inspect
from functools import partial

import numpy as np
import pytest

from dpadmm import DPLinearRegression, DPLinearSVC, DPLogisticRegression
from dpadmm.errors import InputError, InvalidParameter
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.ledger import Ledger
from dpadmm.solvers.base import SOLVERS

from .taint import observe

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(-1, 1, (50, 3)), RNG.integers(0, 2, 50)
MODELS = {
    "logistic": partial(DPLogisticRegression, classes=[0, 1]),
    "svm": partial(DPLinearSVC, classes=[0, 1]),
    "regression": partial(DPLinearRegression, target_bounds=(0, 1)),
}


class TestT14:
    """Min-max or standard scaling by the private rows is no option; bounds are numbers that were declared."""

    @pytest.mark.parametrize("name", MODELS)
    @pytest.mark.parametrize("bounds", ["minmax", "auto", "standard", "data", True, np.nan])
    def test_bounds_from_the_rows_are_refused(self, name, bounds):
        with pytest.raises((InputError, TypeError)):
            MODELS[name](1.0, 1e-3, bounds=bounds).fit(X, Y)

    @pytest.mark.parametrize("bounds", ["minmax", "auto", "data", True, np.nan, ()])
    def test_target_bounds_from_the_rows_are_refused(self, bounds):
        with pytest.raises((InputError, TypeError)):
            DPLinearRegression(1.0, 1e-3, target_bounds=bounds).fit(X, Y)

    def test_target_bounds_that_were_not_declared_are_a_constant(self):
        for targets in (Y, 1e6 * Y, np.zeros(len(Y))):
            assert DPLinearRegression(1.0, 1e-3).fit(X, targets).target_range_ == (-1.0, 1.0)

    @pytest.mark.parametrize("solver", list(SOLVERS))
    def test_verbose_output_is_the_same_for_other_rows(self, solver):
        model = DPLogisticRegression(1.0, 1e-3, classes=[0, 1], solver=solver, steps=3, batch_size=10, verbose=1)
        one, two = (observe(model, 1e3 * table, labels) for table, labels in ((X, Y), (-(X**2), 1 - Y)))
        assert one["failure"] is None
        assert (one["stdout"], one["warnings"]) == (two["stdout"], two["warnings"])


class TestT15:
    """An objective that is looked at, a validation set or an early stop would be queries; none of them exists."""

    @pytest.mark.parametrize("name", MODELS)
    def test_no_parameter_asks_for_more(self, name):
        known = set(inspect.signature(MODELS[name].func).parameters)
        assert not known & {
            "tol",
            "early_stopping",
            "validation_fraction",
            "n_iter_no_change",
            "callbacks",
            "warm_start",
        }

    @pytest.mark.parametrize("solver", list(SOLVERS))
    @pytest.mark.parametrize("option", ["tol", "early_stopping", "callback", "best_iterate"])
    def test_no_solver_option_does(self, solver, option):
        model = DPLogisticRegression(1.0, 1e-3, classes=[0, 1], solver=solver, solver_options={option: 1e-3})
        with pytest.raises(InvalidParameter, match="unknown option"):
            model.fit(X, Y)

    def test_the_ledger_charges_what_the_oracle_performed(self, tmp_path):
        """Three full-data fits, recomputed from their events by dp_accounting."""
        from dp_accounting import GaussianDpEvent, NeighboringRelation
        from dp_accounting.pld import PLDAccountant

        ledger = Ledger.create(tmp_path / "ledger.db")
        ledger.set_limit("table", Budget(5.0, 1e-4), owner="Ada")
        other = PLDAccountant(NeighboringRelation.REPLACE_ONE)
        for steps in (2, 3, 5):
            model = DPLogisticRegression(
                0.5, 1e-5, classes=[0, 1], solver="full-admm", steps=steps, ledger=ledger, dataset="table"
            ).fit(X, Y)
            for part in model.plan_.event.parts:
                other.compose(GaussianDpEvent(part.noise_multiplier), part.count)
        assert ledger.spent("table")[0] == pytest.approx(other.get_epsilon(1e-4), rel=1e-3)
