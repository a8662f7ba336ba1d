"""Audit of one fit on a real table: canaries decided by fair coins, and an attacker who guesses the coins.

Canaries are made-up rows added to the table. Under replace-one each is a row whose target is one of two; under
add-remove it is there or not, and the number of rows is a declared one. The attacker sees the released model and the
canaries, nothing else, so that the result is post-processing of a private fit and of coins that are nobody's data: it
may be published, unless the fit was seeded and so not private.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from dpadmm.audit.canary_guesses import guess_lower_bound
from dpadmm.audit.lower_bound import require_probabilities
from dpadmm.audit.neighbours import long_row
from dpadmm.audit.power import power_of_guesses
from dpadmm.declare.target import Target
from dpadmm.errors import InvalidParameter
from dpadmm.estimators.base import PrivateLinearModel
from dpadmm.estimators.fit_table import in_memory
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.ledger import Payment
from dpadmm.problem.checks import count
from dpadmm.randomness import make_streams, public_generator

FEWEST_CANARIES = 20
GUESSED = 0.54
"""Share of the canaries guessed about: the upper and lower 27 percent tell two near normal laws best apart."""


@dataclass(frozen=True, eq=False)
class Canaries:
    """Rows made up for an audit, in the features of the table. They must not be taken from it.

    Parameters
    ----------
    rows : (m, d) array
        Raw rows, as the estimator takes them.
    targets : (m,)
        Label or target of each.
    others : (m,), optional
        The other target each may have instead, under replace-one.
    """

    rows: Any
    targets: Any
    others: Any = None


@dataclass(frozen=True)
class OneRunResult:
    """What one fit showed about its canaries.

    Attributes
    ----------
    claimed, delta : float
        The promise under attack.
    proven : float
        What the accountant proves of the plan of the fit.
    lower_bound : float
        With probability at least `confidence` no smaller ε is true at `delta`. Above `claimed`: the claim is refuted.
    confidence : float
        Over the coins and the noise of the one fit.
    runs : int
        Always 1.
    canaries, guesses, correct : int
        Coins thrown, guesses made about them (a number fixed before), and right ones.
    power : float
        Lower bound to expect of an honest Gaussian that spends its whole claim, each canary in a column of its own.
    detectable_noise : float
        As in `AuditResult`, for such canaries.
    solver, relation : str
        Of the fit.
    seeded : bool
        The noise came from a seed: the fit was NOT private, and this result must not be published.
    """

    claimed: float
    delta: float
    proven: float
    lower_bound: float
    confidence: float
    runs: int
    canaries: int
    guesses: int
    correct: int
    power: float
    detectable_noise: float
    solver: str
    relation: str
    seeded: bool

    @property
    def refuted(self) -> bool:
        return self.lower_bound > self.claimed


def audit_one_run(
    estimator: PrivateLinearModel,
    X: Any,
    y: Any,
    canaries: int | Canaries = 500,
    guesses: int | None = None,
    confidence: float = 0.99,
) -> OneRunResult:
    """Fit once on a real table with canaries in it, and guess from the model what each canary's coin was.

    This is a private fit like any other and costs the estimator's whole (ε, δ): give the estimator `ledger` and
    `dataset` and it is charged there. Its model is thrown away, because canaries would spoil it.

    Parameters
    ----------
    estimator : estimator
        Unfitted; it stays so. Leave penalties out: they cost no privacy, and a strong one hides the canaries.
    X, y
        The private table, as `fit` takes it.
    canaries : int or Canaries
        How many rows to make up, each with a new column of its own that is zero in all other rows: the attack with
        most power, on a model with that many more coefficients and a copy of the table that much wider. Or rows of
        your own making, in the columns of the table; they disturb each other, and `power` is then too high.
    guesses : int, optional
        How many of the canaries to guess about, the most extreme half up and half down; 54 percent if left out.
    confidence : float
        Of the lower bound.

    Returns
    -------
    OneRunResult

    Formal guarantees
    -----------------
    docs/proofs/audit.md, Claims 4 to 6: if the fit is (ε, δ)-private under the estimator's relation, the bound exceeds
    ε with probability at most 1 − `confidence`, whatever the table and the canaries.

    Examples
    --------
    >>> import numpy as np
    >>> from dpadmm import DPLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3)); y = (X[:, 0] > 0).astype(int)
    >>> model = DPLogisticRegression(epsilon=1.0, classes=[0, 1], random_state=0)
    >>> result = audit_one_run(model, X, y, canaries=200)
    >>> result.runs, result.canaries, result.guesses, result.refuted
    (1, 200, 108, False)
    """
    budget = Budget(estimator.epsilon, estimator.delta, Relation.parse(estimator.relation))
    require_probabilities(budget.delta, confidence)
    Payment(estimator.ledger, estimator.dataset, seeded=estimator.random_state is not None).check(budget)
    given = in_memory(X, y, estimator.invalid_rows, estimator)
    X, y = given.X, given.y
    model: PrivateLinearModel = clone(estimator)
    target = model.declare_target(y)
    if isinstance(canaries, Canaries):
        chosen = _checked(canaries, X, budget.relation)
    else:
        X, chosen = _with_own_columns(model, X, target, count("canaries", canaries, minimum=FEWEST_CANARIES))
    coins = _coins(len(chosen.targets), model.random_state)
    made = _even(guesses, len(coins))
    model.fit(*_with_canaries(model, X, y, chosen, coins))
    correct = _right_guesses(_evidence(model, chosen, target), coins, made)
    power = power_of_guesses(budget.epsilon, budget.delta, len(coins), made, confidence)
    return OneRunResult(
        budget.epsilon,
        budget.delta,
        model.plan_.epsilon_achieved,
        guess_lower_bound(correct, made, len(coins), budget.delta, confidence),
        confidence,
        1,
        len(coins),
        made,
        correct,
        power.expected,
        power.noise,
        model.privacy_.solver,
        str(budget.relation),
        model.privacy_.seeded,
    )


def _with_own_columns(model: PrivateLinearModel, X: Any, target: Target, number: int) -> tuple[Any, Canaries]:
    """The table with `number` columns of zeros, and as many rows that are long in one of them and nowhere else."""
    n_rows, n_features = X.shape
    _refuse_structure(model)
    if model.bounds is not None:
        own = model.declaration(n_rows, n_features, target).rowmap
        model.bounds = (*(own.lower or ()), *[0.0] * number), (*(own.upper or ()), *[1.0] * number)
    rowmap = model.declaration(n_rows, n_features + number, target).rowmap
    rows = np.array([long_row(rowmap, n_features + number, n_features + i) for i in range(number)], dtype=X.dtype)
    low, high = target.opposites
    return _beside(X, number), Canaries(rows, np.repeat(np.asarray([high]), number), np.repeat([low], number))


def _refuse_structure(model: PrivateLinearModel) -> None:
    """Graphs, groups and smoothers speak of the table's own columns."""
    if model.graph is not None or model.groups is not None or not isinstance(model.smoothing, (int, float, type(None))):
        raise InvalidParameter(
            "a graph, groups or a smoother with canaries in columns of their own",
            "canaries in the columns of the table",
            "pass canaries=Canaries(rows, targets, others), or audit without this penalty: it costs no privacy",
        )


def _beside(X: Any, number: int) -> Any:
    empty = (X.shape[0], number)
    if sparse.issparse(X):
        return sparse.csr_matrix(sparse.hstack([X, sparse.csr_matrix(empty, dtype=X.dtype)], format="csr"))
    return np.hstack([X, np.zeros(empty, dtype=X.dtype)])


def _checked(canaries: Canaries, X: Any, relation: Relation) -> Canaries:
    rows, targets = np.asarray(canaries.rows, dtype=X.dtype), np.asarray(canaries.targets)
    others = None if canaries.others is None else np.asarray(canaries.others)
    fits = rows.ndim == 2 and rows.shape[1] == X.shape[1] and targets.shape == (len(rows),)
    if not fits or len(rows) < FEWEST_CANARIES or not np.isfinite(rows).all():
        raise InvalidParameter(
            f"canaries of shape {rows.shape} with targets of shape {targets.shape}",
            f"at least {FEWEST_CANARIES} finite rows in the columns of the table, one target each",
            "make up more rows, or pass a number of canaries",
        )
    if relation is Relation.REPLACE_ONE and (
        others is None or others.shape != targets.shape or np.any(others == targets)
    ):
        raise InvalidParameter(
            "canaries without another target for each",
            "under replace-one each canary has one of two different targets",
            "pass Canaries(rows, targets, others)",
        )
    return Canaries(rows, targets, others)


def _coins(number: int, random_state: int | None) -> NDArray[np.bool_]:
    """Fair and secret, and independent of the noise of the fit; repeatable if the fit is."""
    if random_state is not None:
        make_streams(random_state)  # refuses what is no seed
        return public_generator(random_state).random(number) < 0.5
    chosen = make_streams().sampling
    return np.array([chosen.binomial(1, 0.5) for _ in range(number)], dtype=bool)


def _even(guesses: int | None, number: int) -> int:
    """Fixed before the fit: as many guesses up as down."""
    wanted = round(GUESSED * number) if guesses is None else count("guesses", guesses, minimum=2)
    if wanted > number:
        raise InvalidParameter(f"{wanted} guesses about {number} canaries", "at most one each", "guess less")
    return wanted - wanted % 2


def _with_canaries(
    model: PrivateLinearModel, X: Any, y: NDArray[Any], canaries: Canaries, coins: NDArray[np.bool_]
) -> tuple[Any, NDArray[Any]]:
    """The table with every canary as its coin says."""
    rows, targets = canaries.rows, canaries.targets
    if Relation.parse(model.relation) is Relation.REPLACE_ONE:
        targets = np.where(coins, targets, canaries.others)
        if model.n_rows is not None:
            model.n_rows += len(coins)
    else:
        rows, targets = rows[coins], targets[coins]
        if model.n_rows is None:
            # The count of the canaries is secret; that of the table was taken as public, and half of them are expected.
            model.n_rows = X.shape[0] + len(coins) // 2
    if sparse.issparse(X):
        rows = sparse.csr_matrix(rows)
        return sparse.csr_matrix(sparse.vstack([X, rows], format="csr")), np.concatenate([y, targets])
    return np.vstack([X, rows]), np.concatenate([y, targets])


def _evidence(model: PrivateLinearModel, canaries: Canaries, target: Target) -> NDArray[np.float64]:
    """How much the released model speaks for each canary's coin having shown heads."""
    margins = model.margins(canaries.rows)
    margins = margins.reshape(len(margins), -1)
    if target.classes is None:
        encoded, _ = target.encode(canaries.targets)
        return np.asarray(margins[:, 0] * np.sign(encoded))
    if margins.shape[1] == 1:
        margins = np.hstack([-margins, margins])
    mine = _scores_of(margins, canaries.targets, target)
    if canaries.others is None:
        return np.asarray(mine - margins.mean(axis=1))
    return np.asarray(mine - _scores_of(margins, canaries.others, target))


def _scores_of(margins: NDArray[np.float64], labels: NDArray[Any], target: Target) -> NDArray[np.float64]:
    encoded, _ = target.encode(labels)
    position = (encoded > 0).astype(int) if margins.shape[1] == 2 else encoded
    return np.asarray(margins[np.arange(len(margins)), position])


def _right_guesses(evidence: NDArray[np.float64], coins: NDArray[np.bool_], guesses: int) -> int:
    """Heads for the highest half, tails for the lowest; nothing is said about those between."""
    order, half = np.argsort(evidence, kind="stable"), guesses // 2
    return int(np.sum(coins[order[-half:]]) + np.sum(~coins[order[:half]]))
