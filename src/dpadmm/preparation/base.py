"""What all private transformers share: a budget of their own, or a share of a model's."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dpadmm.cells.feature_tables import numeric_table, public_form, with_names
from dpadmm.cells.holders import named
from dpadmm.errors import InvalidParameter
from dpadmm.estimators.declared_rows import nominal_rows, on_invalid_rows, require_finite, require_policy
from dpadmm.estimators.parameter_types import require_plain
from dpadmm.estimators.pipelines import NOTHING_ELSE, require_nothing_learned_before
from dpadmm.estimators.sklearn_input import feature_table
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.plan import Request
from dpadmm.privacy.sampling import Everything
from dpadmm.privacy.server_address import PlaceParameter
from dpadmm.problem.losses import Squared
from dpadmm.problem.rowmap import RowMap
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from dpadmm.sessions import Session

Array = NDArray[np.float64]

SHARE = """
    share : float
        Of a model's budget, where a model takes this step; measured in μ², so that shares of full-data releases add up.
    epsilon : float or None
        Budget of a `fit` by itself. None where a model takes this step, and pays."""

BUDGET = """
    delta, relation, n_rows, invalid_rows, ledger, dataset, random_state
        Of a `fit` by itself, as in the models.
"""


COSTS_IN_ADDITION = "costs-in-addition"


class PrivateTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the private transformers; the parameters are those of its subclasses."""

    epsilon: float | None
    delta: float
    relation: str
    n_rows: int | None
    invalid_rows: str
    ledger = PlaceParameter()
    dataset: str | None
    random_state: int | None

    # -- what a subclass decides ---------------------------------------------------------------------------------

    def request(self, n_features: int) -> Request:
        """What will be asked of the rows."""
        raise TypeError("a subclass says what it asks")

    def _row_map(self, n_features: int) -> RowMap:
        """The public map under which a fit by itself sees the rows."""
        raise TypeError("a subclass maps the rows")

    def _learn(self, oracle: PrivateOracle, rowmap: RowMap, n_features: int) -> tuple[dict[str, Any], Array]:
        """Ask, and return the attributes to set with the released numbers they were made from."""
        raise TypeError("a subclass asks its questions")

    def _check(self, n_features: int, sparse_rows: bool) -> None:
        """Refuse public choices that cannot work."""

    # -- a step of a model ---------------------------------------------------------------------------------------

    def require_usable(self, n_features: int, sparse_rows: bool) -> None:
        """Refuse what cannot work, and a budget or ledger of its own: the model pays."""
        if self.epsilon is not None or not (self.ledger is None and self.dataset is None and self.random_state is None):
            raise InvalidParameter(
                f"{type(self).__name__} with a budget, ledger or seed of its own, in a model",
                "share alone",
                "drop them: a share of the model's budget pays, and the model's ledger is charged",
            )
        if self.n_rows is not None:
            raise InvalidParameter(
                f"{type(self).__name__} with n_rows, in a model", "n_rows given to the model", "give it to the model"
            )
        require_plain(self.get_params(deep=False))
        self._check(n_features, sparse_rows)

    # -- by itself -----------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from private rows, with the budget `epsilon`, `delta`. Every call spends it again."""
        # A floating-point warning about a private row would be a message about it.
        with np.errstate(all="ignore"):
            return self._fit(X)

    def _fit(self, table: Any) -> Self:
        require_plain(self.get_params(deep=False))
        require_nothing_learned_before(self)
        session = Session(self.ledger, self.dataset, self.random_state)
        budget = self._own_budget()
        session.afford(budget)
        require_policy(self.invalid_rows)
        X = feature_table(table, self.invalid_rows == "zero", self)
        n_features = int(X.shape[1])
        self._check(n_features, sparse.issparse(X))
        nominal, assumed = nominal_rows(self.n_rows, X.shape[0], budget.relation)
        rowmap = self._row_map(n_features)
        plan = calibrate(budget, [self.request(n_features)], Everything(), nominal)
        session.afford(plan)
        if self.invalid_rows == "error":
            require_finite(X)
        rows = LocalRows(PackedRows.of(rowmap, X), np.zeros(X.shape[0]), Squared(), rowmap.row_norm)
        with session.carrying_out(plan) as work:
            learned, released = self._learn(work.oracle(rows), rowmap, n_features)
            work.release(released)
        validate_data(self, named(table), skip_check_array=True)
        for name, value in learned.items():
            setattr(self, name, value)
        form = public_form(table, X, refuses=self.invalid_rows == "error")
        assumptions = (*assumed, *on_invalid_rows(self.invalid_rows), *form, NOTHING_ELSE, COSTS_IN_ADDITION)
        self.plan_ = plan
        self.privacy_ = work.statement(type(self).__name__, assumptions, subject="transformer")
        return self

    def _own_budget(self) -> Budget:
        if self.epsilon is None:
            raise InvalidParameter(
                f"{type(self).__name__} without epsilon, by itself",
                "epsilon=... of its own, or a model that takes it as a step",
                "give it a budget; a pipeline costs the total of all its parts",
            )
        return Budget(self.epsilon, self.delta, Relation.parse(self.relation))

    def _rows(self, X: Any) -> Any:
        """Rows to transform."""
        check_is_fitted(self)
        return validate_data(
            self,
            with_names(numeric_table(X, tolerant=self.invalid_rows == "zero"), X),
            reset=False,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=self.invalid_rows == "error",
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.invalid_rows == "zero"
        tags.non_deterministic = self.random_state is None
        return tags
