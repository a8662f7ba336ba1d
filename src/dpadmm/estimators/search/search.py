"""`DPSearchCV`: hyper-parameters chosen on private rows, at a total cost that is stated before it is spent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils.validation import validate_data

from dpadmm.cells.holders import named
from dpadmm.declare.budgeted_steps import BudgetedSteps
from dpadmm.declare.declaration import Declaration
from dpadmm.declare.remarks import Remark, announce, remarks_on
from dpadmm.declare.weights import DECLARED, row_weights
from dpadmm.errors import InvalidParameter
from dpadmm.estimators.base import PrivateLinearModel
from dpadmm.estimators.declared_rows import fit_unit, nominal_rows, on_invalid_rows
from dpadmm.estimators.fit_table import assumed_of_persons, encoded_targets, in_memory, persons_of
from dpadmm.estimators.parameter_types import require_plain
from dpadmm.estimators.pipelines import NOTHING_ELSE, maps_before, require_nothing_learned_before
from dpadmm.estimators.search.best_trial import best_of, draw_lots, engine_of, model_of_zeros
from dpadmm.estimators.search.candidates import Candidate, make_candidates, require_used
from dpadmm.estimators.search.row_split import AT_MOST_TWICE, Sizes, check_share, divide, require_room
from dpadmm.estimators.search.trial import Bench, Trial
from dpadmm.estimators.search.winner_methods import SpeaksForItsWinner
from dpadmm.estimators.unknown_arguments import knows_its_names
from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.plan import Plan, Request
from dpadmm.privacy.questions import GRADIENT, ClippedGradient
from dpadmm.privacy.sampling import Everything
from dpadmm.privacy.selection import Repetitions, SearchPlan, calibrate_search
from dpadmm.privacy.selection.search_plan import search_accountant
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.privacy.unit import Unit
from dpadmm.problem.checks import count
from dpadmm.problem.scores import Score, make_score
from dpadmm.randomness import make_selection_stream
from dpadmm.sessions import Session

LEAST = 0.95
"""Share of the budget's ε that every search spends: what a ledger is asked for before the table is looked at."""


class DPSearchCV(SpeaksForItsWinner, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Differentially private hyper-parameter search: the budget of the estimator pays for all of it.

    A secret random number of trials is run. Each draws a candidate at random, fits it privately on the training part
    of the rows and scores it privately on the rest. Only the trial with the best noisy score is released: its model,
    its parameters, its score. The others, and their number, are forgotten. There is no refit: it would be another fit.

    Parameters
    ----------
    estimator : DPLogisticRegression, DPLinearSVC or DPLinearRegression
        Its epsilon, delta and relation are the TOTAL promise of the search; its ledger and dataset are charged once,
        with that total; its random_state makes the whole search repeatable and NOT private.
    param_space : dict, or list of dicts
        Lists of values, or distributions; public. `solver_options` and the like may be searched too.
    trials : {"geometric", "logarithmic", "negative-binomial", "poisson"}
        Law of the number of trials. "logarithmic" leaves each trial most of the budget and often tries a single
        candidate. "poisson" may try nothing, with probability exp(−mean): then the model of all zeros is released, and
        `best_params_` is None.
    mean_trials : float
        Mean number of trials; it may become several times as many.
    shape : float or None
        Of the negative binomial.
    n_candidates : int
        How many settings to draw in advance from distributions; a grid is taken whole.
    validation : float
        Share of the rows that score.
    scoring : {"accuracy", "loss"} or None
        Share of rows predicted rightly, or one minus the clipped loss; None is "accuracy" for classifiers.
    score_bound : float or None
        Loss that counts as worst, for scoring="loss".
    accountant : {"profile", "rdp"} or None
        Bound on the total; "profile", the default, is tighter.

    Attributes
    ----------
    best_estimator_ : estimator
        The winner. Its statement and plan are those of the whole search.
    best_params_ : dict or None
        The winner's candidate.
    best_score_ : float or None
        The winner's noisy score: the largest of several noisy numbers, and so too large on average.
    plan_, privacy_
        Of the search: `print(search.privacy_)`.

    Notes
    -----
    *Formal guarantees.* docs/proofs/tuning.md: a row is in one part, so one trial costs the dearer of fit and score;
    the best of a random number of trials costs what `plan_` states. The number of trials must stay secret, so that no
    progress is shown and no time is promised.

    Examples
    --------
    >>> import numpy as np
    >>> from dpadmm import DPLogisticRegression, DPSearchCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (4000, 3)); y = (X[:, 0] > 0).astype(int)
    >>> model = DPLogisticRegression(1.0, 1e-6, classes=[0, 1], penalty="l1", random_state=0)
    >>> search = DPSearchCV(model, {"alpha": [1e-4, 1e-3]}, mean_trials=5)
    >>> plan = search.plan(n_rows=4000, n_features=3)
    >>> plan.epsilon_achieved <= 1.0, f"{plan.base_budget.epsilon:.2f}"
    (True, '0.64')
    >>> search.fit(X, y).score(X, y) > 0.9
    True
    """

    @knows_its_names
    def __init__(
        self,
        estimator: Any,
        param_space: Any,
        *,
        trials: str = "geometric",
        mean_trials: float = 10.0,
        shape: float | None = None,
        n_candidates: int = 50,
        validation: float = 0.2,
        scoring: str | None = None,
        score_bound: float | None = None,
        accountant: str | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_space = param_space
        self.trials = trials
        self.mean_trials = mean_trials
        self.shape = shape
        self.n_candidates = n_candidates
        self.validation = validation
        self.scoring = scoring
        self.score_bound = score_bound
        self.accountant = accountant

    # -- before anything is read ---------------------------------------------------------------------------------

    def plan(self, n_rows: int, n_features: int, n_classes: int = 2, unit: str = "row") -> SearchPlan:
        """What the search will cost and promise, from public numbers alone.

        Parameters
        ----------
        n_rows, n_features : int
            Of the table; with unit="person", `n_rows` is the number of persons.
        n_classes : int
            Where the estimator declares no `classes`.
        unit : {"row", "person"}
            Whose data is protected.
        """
        self._require_plain()
        sizes = {"n_rows": n_rows, "n_features": n_features, "n_classes": n_classes}
        n_rows, n_features, n_classes = (count(name, size, minimum=1) for name, size in sizes.items())
        self._require_granular()
        model = self._model()
        classes = getattr(model, "classes", None)
        labels = np.arange(n_classes) if classes is None else classes
        nominal = n_rows if model.n_rows is None else int(model.n_rows)
        return self._plan(nominal, n_features, self._overrides(labels), weighted=False, unit=fit_unit(unit))

    def remarks(self, plan: SearchPlan) -> tuple[Remark, ...]:
        """What public numbers say against a search with this plan; `fit` gives each as a warning, once."""
        asked = self._model().get_params(deep=False)
        settings = [{**asked, **one} for one in self._candidates()]
        training = plan.bases[0].n_rows
        return remarks_on(plan.base_budget, training, settings, training / plan.n_rows, unit=plan.unit)

    def check(self, unit: str = "row") -> None:
        """Refuse what can be refused without a table, a total beyond what the ledger has left included.

        `unit` is "person" if `fit` will be given the ids of the persons.
        """
        self._require_plain()
        self._budget()
        self._require_granular()
        self._repetitions()
        self._score()
        self._candidates()
        search_accountant(self.accountant)
        check_share(self.validation)
        session = self._session()
        if self._model().ledger is not None:
            session.afford(self._least_plan(fit_unit(unit)))

    def _require_plain(self) -> None:
        require_plain(self.get_params(deep=False))
        require_plain(self._model().get_params(deep=False))

    def _require_granular(self) -> None:
        if Arithmetic.parse(self._model().arithmetic) is not Arithmetic.GRANULAR:
            raise InvalidParameter(
                "a search in exact arithmetic",
                "arithmetic='granular'",
                "leave arithmetic out: scores of a search are not exact",
            )

    def _session(self) -> Session:
        model = self._model()
        return Session(model.ledger, model.dataset, model.random_state)

    def _model(self) -> PrivateLinearModel:
        if not isinstance(self.estimator, PrivateLinearModel):
            raise InvalidParameter(
                f"an estimator of type {type(self.estimator).__name__}",
                "DPLogisticRegression, DPLinearSVC or DPLinearRegression",
                "search over one of these: only a private fit can be tried privately",
            )
        return self.estimator

    def _budget(self) -> Budget:
        model = self._model()
        return Budget(model.epsilon, model.delta, Relation.parse(model.relation))

    def _repetitions(self) -> Repetitions:
        return Repetitions(self.trials, self.mean_trials, self.shape)

    def _candidates(self) -> tuple[Candidate, ...]:
        model = self._model()
        candidates = make_candidates(self.param_space, self.n_candidates, model.get_params(deep=False))
        require_used(candidates, model.penalty)
        return candidates

    def _score(self) -> Score:
        classifier = is_classifier(self._model())
        name = self.scoring if self.scoring is not None else ("accuracy" if classifier else "loss")
        if name == "accuracy" and not classifier:
            raise InvalidParameter("scoring='accuracy' of a regression", "scoring='loss'", "choose the loss")
        return make_score(name, self.score_bound)

    def _overrides(self, classes: Any) -> dict[str, Any]:
        """What every trial has in common; its budget and row count come with the plan."""
        shared: dict[str, Any] = {"ledger": None, "dataset": None, "verbose": 0, "random_state": None}
        return {**shared, "classes": classes} if is_classifier(self._model()) else shared

    def _plan(self, n_rows: int, n_features: int, overrides: dict[str, Any], weighted: bool, unit: Unit) -> SearchPlan:
        sizes, model = Sizes.of(n_rows, self.validation), self._model()
        shared = {**overrides, **_rows_of_a_trial(model, sizes)}
        models = [clone(model).set_params(**{**one, **shared}) for one in self._candidates()]
        declarations = [_declaration(model, sizes.training, n_features, weighted, unit) for model in models]

        def bases(single: Budget) -> tuple[Plan, ...]:
            return tuple(replace(declared, budget=single).plan for declared in declarations)

        law, validation = self._repetitions(), sizes.validation
        return calibrate_search(self._budget(), law, bases, n_rows, validation, self.accountant, unit)

    def _require_usable_steps(self, X: Any) -> None:
        """Refuse by public sizes what every trial would refuse: once trials run, a failure is silent."""
        for one in self._candidates():
            model = clone(self._model()).set_params(**one)
            steps = BudgetedSteps.of(model.bounds, model.graph, model.penalty, X.shape[1])
            steps.require_usable(sparse.issparse(X))

    def _least_plan(self, unit: Unit) -> SearchPlan:
        """A search of one Gaussian, at a little less than the budget: what is refused here is refused later too."""
        budget = self._budget()
        least = Budget(LEAST * budget.epsilon, budget.delta, budget.relation)

        def bases(single: Budget) -> tuple[Plan, ...]:
            return (calibrate(single, [Request(GRADIENT, 1, ClippedGradient(1.0))], Everything(), 1, unit=unit),)

        return calibrate_search(least, self._repetitions(), bases, 2, 1, self.accountant, unit)

    # -- the search ----------------------------------------------------------------------------------------------

    @knows_its_names
    def fit(self, X: Any, y: Any, public_weight: Any = None, person: Any = None) -> Self:
        """Search on private rows. Every call spends the whole budget again.

        Parameters
        ----------
        X, y, public_weight, person
            As for the estimator. With ids of persons, all rows of a person train or all of them score.
        """
        # A floating-point warning about a private row would be a message about it.
        with np.errstate(all="ignore"):
            return self._fit(X, y, public_weight, person)

    def _fit(self, table: Any, y: Any, public_weight: Any, person: Any) -> Self:
        require_nothing_learned_before(self)
        self.check("row" if person is None else "person")
        model, session = self._model(), self._session()
        stream = make_selection_stream(model.random_state)
        given = in_memory(table, y, model.invalid_rows, model)
        X, y = given.X, given.y
        target = model.declare_target(given.labels(model.reads_classes))
        persons = persons_of(person, X.shape[0], public_weight, model.invalid_rows)
        unit, number = (Unit.ROW, X.shape[0]) if persons is None else (Unit.PERSON, persons.count)
        nominal, assumed = nominal_rows(model.n_rows, number, Relation.parse(model.relation), unit)
        weights = _weights(public_weight, len(y), model)
        if _declared(model):
            require_room(Sizes.of(nominal, self.validation), number, unit)
        overrides = self._overrides(target.classes)
        plan = self._plan(nominal, X.shape[1], overrides, weights is not None, unit)
        session.afford(plan)
        self._require_usable_steps(X)
        encoded_targets(given, target, model.invalid_rows)
        engine = engine_of(plan, X)
        announce(self.remarks(plan))
        sizes, declared = Sizes.of(nominal, self.validation), _declared(model)
        with session.carrying_out(plan, engine) as work:
            lots = draw_lots(self._candidates(), plan.repetitions.draw(stream), stream, session.seeded)
            training, validation = divide(X, y, weights, sizes, declared, stream, persons)
            bench = Bench(
                model,
                target,
                plan,
                work,
                training,
                validation,
                self._score(),
                {**overrides, **_single(plan.base_budget), **_rows_of_a_trial(model, sizes)},
            )
            winner = best_of(bench, lots)
            best = winner.model or model_of_zeros(bench, X.shape[1])
            work.release(best.weights_)
        best.maps_before_ = maps_before(self)
        assumptions = (
            *target.assumptions,
            *((DECLARED,) if weights is not None or target.weigh is not None else ()),
            *assumed,
            *((AT_MOST_TWICE[unit],) if declared else ()),
            *(() if persons is None else assumed_of_persons(model.invalid_rows)),
            *on_invalid_rows(model.invalid_rows),
            NOTHING_ELSE,
            *given.assumptions,
        )
        solver = best.privacy_.solvers[0] if winner.model is not None else "none"
        statement = work.statement(solver, assumptions, candidates=len(self._candidates()))
        self._release(table, best, winner, plan, statement)
        return self

    def _release(
        self,
        table: Any,
        best: PrivateLinearModel,
        winner: Trial,
        plan: SearchPlan,
        statement: PrivacyStatement,
    ) -> None:
        """The winner speaks for the whole search: what its own fit promised would be too little."""
        asked = self._model().get_params(deep=False)
        chosen = winner.candidate if winner.model is not None else None
        best.set_params(**{**asked, **(chosen or {})})
        best.plan_, best.privacy_ = plan, statement
        best.forget_noise("a search chose it among noisy trials, and a replay would hold the choice fixed")
        validate_data(best, named(table), skip_check_array=True)
        validate_data(self, named(table), skip_check_array=True)
        self.best_estimator_, self.best_params_ = best, chosen
        self.best_score_ = winner.score if winner.model is not None else None
        self.plan_, self.privacy_ = plan, statement
        if hasattr(best, "classes_"):
            self.classes_ = best.classes_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.estimator, PrivateLinearModel):
            inner = self.estimator.__sklearn_tags__()
            tags.estimator_type, tags.classifier_tags = inner.estimator_type, inner.classifier_tags
            tags.regressor_tags, tags.input_tags = inner.regressor_tags, inner.input_tags
            tags.target_tags, tags.non_deterministic = inner.target_tags, inner.non_deterministic
        return tags


def _declaration(model: PrivateLinearModel, n_rows: int, n_features: int, weighted: bool, unit: Unit) -> Declaration:
    """Of a fit on so many rows or persons; the classes are declared, or do not matter."""
    return model.declaration(n_rows, n_features, model.declare_target(np.empty(0)), weighted, unit)


def _weights(public_weight: Any, n_rows: int, model: PrivateLinearModel) -> NDArray[np.float64] | None:
    if public_weight is not None and model.n_rows is not None:
        raise InvalidParameter(
            "public_weight with a declared n_rows",
            "one of the two",
            "drop public_weight: dividing by the largest weight would tell whether its row is there",
        )
    return row_weights(public_weight, n_rows)


def _single(budget: Budget) -> dict[str, Any]:
    return {"epsilon": budget.epsilon, "delta": budget.delta}


def _declared(model: PrivateLinearModel) -> bool:
    """Whether the real number of rows is private."""
    return model.n_rows is not None and Relation.parse(model.relation) is Relation.ADD_REMOVE


def _rows_of_a_trial(model: PrivateLinearModel, sizes: Sizes) -> dict[str, Any]:
    """The table was checked as a whole; with a private row count each part holds a row that counts as zero."""
    return {"n_rows": sizes.training, "invalid_rows": "zero"} if _declared(model) else {"n_rows": None}
