"""One place keeps a promise: charged before anything is asked, stated only after it was kept."""

from __future__ import annotations

import numpy as np
import pytest

from dpadmm import Ledger
from dpadmm.errors import SPENT, BudgetExceeded, PromiseBroken, QueryRefused
from dpadmm.oracles.gate import Gate
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import GRADIENT, ClippedGradient
from dpadmm.privacy.sampling import Everything
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.problem import Logistic
from dpadmm.rows.local import LocalRows
from dpadmm.sessions import Session

N = 100
BUDGET = Budget(1.0, 1e-3)


def plan_of(count=2):
    return calibrate(BUDGET, [gradient(count)], Everything(), N)


def gradient(count):
    return Request("gradient", count, ClippedGradient(1.0))


def rows():
    return LocalRows(np.full((N, 2), 0.5), np.ones(N), Logistic())


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "ledger.db")
    made.set_limit("people", Budget(1.5, 2e-3), owner="Ada")
    return made


def spent(ledger):
    return ledger.spent("people")[0]


def ask(work, times):
    oracle = work.oracle(rows())
    return [oracle.ask(GRADIENT, np.zeros(2)) for _ in range(times)][-1]


def test_a_promise_is_charged_before_anything_is_asked_and_noted_when_kept(ledger):
    session = Session(ledger, "people")
    assert spent(ledger) == 0
    with session.carrying_out(plan_of()) as work:
        assert spent(ledger) > 0.9
        work.release(ask(work, 2))
    (fit,) = ledger.account("people").fits
    assert fit.committed
    statement = work.statement("by hand", ())
    assert statement.epsilon == 1.0
    assert statement == PrivacyStatement.of(plan_of(), "by hand", (), False, "model", 0)


@pytest.mark.parametrize("times", [0, 1])
def test_what_was_planned_and_not_asked_is_never_released(ledger, times):
    with pytest.raises(PromiseBroken), Session(ledger, "people").carrying_out(plan_of()) as work:
        work.release(ask(work, times) if times else np.zeros(2))
    assert spent(ledger) > 0.9
    assert not ledger.account("people").fits[0].committed
    with pytest.raises(PromiseBroken):
        work.statement("by hand", ())


@pytest.mark.parametrize("times", [0, 1])
def test_nor_is_it_where_no_ledger_compares(times):
    with pytest.raises(PromiseBroken), Session().carrying_out(plan_of()) as work:
        work.release(ask(work, times) if times else np.zeros(2))


def test_no_question_is_answered_beyond_the_plan():
    with pytest.raises(QueryRefused), Session().carrying_out(plan_of()) as work:
        ask(work, 3)


def test_work_that_ends_without_a_release_says_so(ledger):
    with (
        pytest.raises(PromiseBroken, match="without a release"),
        Session(ledger, "people").carrying_out(plan_of()) as work,
    ):
        ask(work, 2)


def test_whatever_ends_the_work_early_says_that_the_budget_is_spent(ledger):
    with pytest.raises(ZeroDivisionError) as ending, Session(ledger, "people").carrying_out(plan_of()):
        raise ZeroDivisionError
    assert SPENT in ending.value.__notes__
    assert spent(ledger) > 0.9


def test_nothing_is_charged_for_what_cannot_be_paid(ledger):
    ledger.set_limit("people", Budget(0.5, 2e-3), owner="Ada")
    session = Session(ledger, "people")
    with pytest.raises(BudgetExceeded):
        session.afford(BUDGET)
    with pytest.raises(BudgetExceeded), session.carrying_out(plan_of()):
        raise AssertionError("never begun")
    assert spent(ledger) == 0


def test_a_plan_has_one_oracle():
    with pytest.raises(PromiseBroken, match="second oracle"), Session().carrying_out(plan_of()) as work:
        assert work.oracle(rows()) is not work.oracle(rows())


def test_runs_of_a_search_are_no_part_of_a_single_fit():
    with pytest.raises(PromiseBroken, match="another plan"), Session().carrying_out(plan_of()) as work:
        work.trial(plan_of(), rows(), None)


def test_a_seeded_session_says_so():
    session = Session(seed=1)
    with session.carrying_out(plan_of()) as work:
        work.release(ask(work, 2))
    assert session.seeded
    assert work.statement("by hand", ()).seeded


def going_on(ledger, receipt, asked):
    with Session(ledger, "people").carrying_out(plan_of(), receipt=receipt) as work:
        oracle = work.oracle(rows(), asked=asked)
        oracle.ask(GRADIENT, np.zeros(2))


def interrupted(ledger, receipts):
    with Session(ledger, "people").carrying_out(plan_of()) as work:
        receipts.append(work.receipt)
        ask(work, 2)
        raise KeyboardInterrupt


def test_work_that_goes_on_needs_the_state_of_its_gate(ledger):
    """Otherwise one charge would pay for the whole plan as often as it is interrupted."""
    receipts, gate = [], Gate(plan_of())
    with pytest.raises(KeyboardInterrupt):
        interrupted(ledger, receipts)
    gate.admit(gate.line("gradient"), 2)
    with pytest.raises(PromiseBroken, match="state of its gate"):
        going_on(ledger, receipts[0], None)
    with pytest.raises(QueryRefused, match="have been answered"):
        going_on(ledger, receipts[0], gate.to_dict())
