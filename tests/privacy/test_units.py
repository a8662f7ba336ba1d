"""Promises for different units are told apart wherever plans meet: digests, files, sums, ledgers, statements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpadmm import DPLogisticRegression, DPSearchCV, Ledger, compose_statements, load_model
from dpadmm.errors import BudgetExceeded, FileProblem, InvalidParameter, PromiseBroken
from dpadmm.oracles.gate import Gate
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.calibration import calibrate, verify_plan
from dpadmm.privacy.composition import compose_plans
from dpadmm.privacy.ledger import verify
from dpadmm.privacy.plan import Plan, Request
from dpadmm.privacy.questions import ClippedGradient
from dpadmm.privacy.sampling import Everything
from dpadmm.privacy.selection import Repetitions, calibrate_search, require_any_agreement
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.privacy.unit import Unit
from dpadmm.privacy.wording.sentence import BESIDE_UNITS, NEIGHBOURS, UNITS

BUDGET = Budget(1.0, 1e-5)


def plan_for(unit, n=1000, budget=BUDGET):
    return calibrate(budget, [Request("gradient", 3, ClippedGradient(1.0))], Everything(), n, unit=unit)


def test_a_plan_for_rows_is_written_without_its_unit():
    assert "unit" not in plan_for(Unit.ROW).to_dict()
    assert plan_for(Unit.PERSON).to_dict() == {
        **plan_for(Unit.ROW).to_dict(),
        "unit": "person",
        "proof_status": plan_for(Unit.PERSON).proof_status,
    }


@pytest.mark.parametrize("unit", Unit)
def test_a_plan_comes_back_from_a_file(unit):
    plan = plan_for(unit)
    assert Plan.from_dict(plan.to_dict()) == plan
    assert verify_plan(plan) <= 1.0
    assert Gate.restored(plan, Gate(plan).to_dict()).plan.unit is unit


def test_units_make_different_digests_at_one_noise():
    row, person, owner = map(plan_for, Unit)
    assert len({row.digest, person.digest, owner.digest}) == 3
    assert row.queries == person.queries == owner.queries
    with pytest.raises(FileProblem):
        Plan.from_dict({**person.to_dict(), "unit": "household"})
    with pytest.raises(FileProblem):
        Gate.restored(person, Gate(row).to_dict())


@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_a_statement_names_its_unit(unit, relation):
    plan = plan_for(unit, budget=Budget(1.0, 1e-5, relation))
    statement = PrivacyStatement.of(plan, "full-admm", (), seeded=False)
    assert UNITS[unit] in statement.text
    assert NEIGHBOURS[unit, relation] in statement.text
    assert BESIDE_UNITS[unit] in statement.text
    assert statement.facts.unit.number == 1000
    assert f"over all {unit}s" in statement.text
    assert PrivacyStatement.from_dict(statement.to_dict()) == statement
    assert not statement.contradictions(plan)
    other = plan_for(Unit.ROW if unit is not Unit.ROW else Unit.PERSON, budget=Budget(1.0, 1e-5, relation))
    assert "unit" in statement.contradictions(other)


def test_a_hopeless_budget_is_one_for_persons():
    plan = plan_for(Unit.PERSON, n=5, budget=Budget(0.1, 1e-5))
    assert "number of persons" in PrivacyStatement.of(plan, "full-admm", (), seeded=False).outlook


def test_plans_of_different_units_do_not_add_up():
    row, person, owner = map(plan_for, Unit)
    assert compose_plans([person, person], 1e-5).unit is Unit.PERSON
    for pair in ((row, person), (person, owner), (owner, row)):
        with pytest.raises(InvalidParameter, match="different units"):
            compose_plans(pair, 1e-5)
    with pytest.raises(InvalidParameter, match="different numbers of persons"):
        compose_plans([person, plan_for(Unit.PERSON, n=999)], 1e-5)


def table(seed=0):
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(300), 2)
    X = rng.uniform(-1, 1, (600, 2))
    return X, (X[:, 0] > 0).astype(int), ids


CHOSEN = {"epsilon": 0.5, "delta": 1e-5, "classes": [0, 1], "row_norm": 2.0}


def test_statements_of_different_units_do_not_add_up():
    X, y, ids = table()
    first, second = (DPLogisticRegression(**CHOSEN).fit(X, y, person=ids) for _ in range(2))
    assert "one person with all their rows" in compose_statements(first, second).text
    with pytest.raises(InvalidParameter, match="different units"):
        compose_statements(first, DPLogisticRegression(**CHOSEN).fit(X, y))


def test_a_model_for_persons_is_saved_and_loaded(tmp_path):
    X, y, ids = table()
    model = DPLogisticRegression(**CHOSEN).fit(X, y, person=ids)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.plan_ == model.plan_
    assert loaded.plan_.unit is Unit.PERSON
    assert loaded.privacy_ == model.privacy_


def test_a_search_has_one_unit():
    def bases(single):
        return (plan_for(Unit.ROW, n=800, budget=single),)

    law = Repetitions("geometric", 3.0, None)
    search = calibrate_search(BUDGET, law, bases, 1000, 200)
    mixed = replace(search, score=replace(search.score, unit=Unit.PERSON))
    with pytest.raises(PromiseBroken, match="different units"):
        require_any_agreement(mixed)


# -- ledgers -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "ledger.db")
    made.set_limit("people", Budget(3.0, 1e-4), owner="Ada", unit="person")
    made.set_limit("rows", Budget(3.0, 1e-4), owner="Ada")
    return made


def test_a_data_set_takes_fits_of_its_unit_alone(ledger):
    X, y, ids = table()
    for dataset, mine, other in (("people", ids, None), ("rows", None, ids)):
        model = DPLogisticRegression(**CHOSEN, ledger=ledger, dataset=dataset)
        model.fit(X, y, person=mine)
        spent = ledger.spent(dataset)
        with pytest.raises(BudgetExceeded, match="different units do not add up"):
            model.fit(X, y, person=other)
        assert ledger.spent(dataset) == spent
    assert verify(ledger.place).ok


def test_a_search_is_charged_to_a_data_set_of_its_unit(ledger):
    X, y, ids = table()
    model = DPLogisticRegression(**CHOSEN, penalty="l1", ledger=ledger, dataset="people")
    search = DPSearchCV(model, {"alpha": [1e-4, 1e-3]}, mean_trials=2)
    with pytest.raises(BudgetExceeded, match="unit"):
        search.fit(X, y)
    search.fit(X, y, person=ids)
    assert len(ledger.account("people").fits) == 1


def test_the_price_of_another_unit_is_refused(ledger):
    assert ledger.price("people", plan_for(Unit.PERSON)) > 0
    for unit in (Unit.ROW, Unit.OWNER):
        with pytest.raises(BudgetExceeded, match="unit"):
            ledger.price("people", plan_for(unit))


def test_the_unit_of_a_data_set_is_fixed(ledger):
    ledger.set_limit("people", Budget(4.0, 1e-4), owner="Ada")
    assert ledger.account("people").unit is Unit.PERSON
    assert ledger.account("people").limit.epsilon == 4.0
    with pytest.raises(InvalidParameter, match="fixed when a data set is declared"):
        ledger.set_limit("people", Budget(4.0, 1e-4), owner="Ada", unit="row")
    with pytest.raises(InvalidParameter, match="'row', 'person' or 'owner'"):
        ledger.set_limit("new", Budget(4.0, 1e-4), owner="Ada", unit="household")


def test_the_unit_outlives_the_balances_that_entries_carry(ledger):
    """Now and then an entry carries what all data sets have spent: the unit is part of it."""
    for number in range(70):
        ledger.set_limit(f"data {number}", Budget(1.0, 1e-4), owner="Ada", unit=list(Unit)[number % 3])
    opened = Ledger(ledger.place)
    assert opened.account("people").unit is Unit.PERSON
    assert opened.account("data 2").unit is Unit.OWNER
    with pytest.raises(BudgetExceeded, match="unit"):
        opened.check("people", plan_for(Unit.ROW))
    assert "unit" not in ledger.entries[2].content
    assert ledger.entries[1].content["unit"] == "person"
