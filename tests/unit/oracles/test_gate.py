"""The gate: what it admits, what it stores, and what a restored one still refuses."""

from __future__ import annotations

import copy
import json
import os
import pickle
from dataclasses import replace

import numpy as np
import pytest

from dpadmm.errors import DpadmmError, FileProblem, PromiseBroken, QueryRefused
from dpadmm.oracles.gate import Gate, Line
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import DIFFERENCE, GRADIENT, SNAPSHOT, ClippedGradient, GradientDifference
from dpadmm.privacy.sampling import Everything, Permutation, Poisson
from dpadmm.randomness import make_streams
from tests.asking import answering

X0 = np.zeros(2)


@pytest.fixture
def plan():
    requests = [
        Request(SNAPSHOT, 2, ClippedGradient(1.0), full_data=True),
        Request(DIFFERENCE, 3, GradientDifference(2.0), relative_noise=0.8),
    ]
    return calibrate(Budget(1.0, 0.05), requests, Poisson(0.5), 8, cache=False)


def oracle(gate, store=None):
    return PrivateOracle(answering(np.ones(2), 8), gate, make_streams(0), store=store)


def stored(gate):
    return json.loads(json.dumps(gate.to_dict()))


class TestRestored:
    def test_a_restored_gate_refuses_what_was_asked_and_admits_the_rest(self, plan):
        gate = Gate(plan)
        asked = oracle(gate)
        asked.ask(SNAPSHOT, X0)
        asked.ask(DIFFERENCE, X0, X0, 0.5)
        again = Gate.restored(plan, stored(gate))
        assert again.spent == gate.spent
        rest = oracle(again)
        rest.ask(SNAPSHOT, X0)
        with pytest.raises(QueryRefused, match="all 2 planned"):
            rest.ask(SNAPSHOT, X0)
        rest.ask(DIFFERENCE, X0, X0, 0.5)
        with pytest.raises(PromiseBroken):
            rest.require_promise_kept()
        rest.ask(DIFFERENCE, X0, X0, 0.5)
        rest.require_promise_kept()

    def test_what_was_asked_and_never_answered_is_gone(self, plan):
        gate = Gate(plan)
        oracle(gate).begin(SNAPSHOT, X0)
        rest = oracle(Gate.restored(plan, stored(gate)))
        rest.ask(SNAPSHOT, X0)
        with pytest.raises(QueryRefused):
            rest.ask(SNAPSHOT, X0)

    def test_its_state_is_a_few_public_numbers(self, plan):
        gate = Gate(plan)
        oracle(gate).ask(SNAPSHOT, X0 + 0.123456)
        assert stored(gate) == {
            "version": 1,
            "plan": plan.digest,
            "queries": {"difference": [0, 0], "snapshot": [1, 1]},
            "variation": 0.0,
        }
        assert not [value for value in vars(gate).values() if isinstance(value, np.ndarray)]

    @pytest.mark.parametrize(
        "change",
        [
            {"version": 2},
            {"plan": "0" * 64},
            {"queries": {"snapshot": [0, 0]}},
            {"queries": {"difference": [0, 0], "snapshot": [1, 2]}},
            {"queries": {"difference": [4, 4], "snapshot": [0, 0]}},
            {"queries": {"difference": [-1, -1], "snapshot": [0, 0]}},
            {"queries": {"difference": [0.5, 0], "snapshot": [0, 0]}},
            {"queries": {"difference": [0], "snapshot": [0, 0]}},
            {"queries": [0, 0]},
            {"queries": {"difference": [True, False], "snapshot": [0, 0]}},
            {"variation": -1.0},
            {"variation": float("nan")},
            {"variation": "0"},
            {"more": 1},
        ],
    )
    def test_forged_states_are_refused(self, plan, change):
        with pytest.raises(FileProblem):
            Gate.restored(plan, stored(Gate(plan)) | change)

    def test_the_cost_of_exact_noise_is_restored_too(self):
        request = Request(GRADIENT, 2, ClippedGradient(1.0))
        plan = calibrate(Budget(1.0, 1e-3), [request], Everything(), 8, arithmetic=Arithmetic.EXACT)
        gate, most = Gate(plan), 1e-6 * 1e-3 / (1 + np.e)
        gate.reserve(0.75 * most)
        again = Gate.restored(plan, stored(gate))
        with pytest.raises(QueryRefused, match="reserved"):
            again.reserve(0.5 * most)


class Kept:
    def __init__(self, fails=False):
        self.entries, self.fails = [], fails

    def keep(self, gate_state, kind, answer):
        if self.fails:
            raise OSError("the disk is full")
        self.entries.append((gate_state, kind, np.copy(answer)))


class TestStore:
    def test_state_and_answer_are_kept_before_the_answer_leaves(self, plan):
        store = Kept()
        asked = oracle(Gate(plan), store)
        answer = asked.ask(SNAPSHOT, X0)
        ((state, kind, kept),) = store.entries
        assert kind == SNAPSHOT
        assert state["queries"]["snapshot"] == [1, 1]
        np.testing.assert_array_equal(kept, answer)

    def test_an_answer_that_cannot_be_kept_does_not_leave_and_is_paid_for(self, plan):
        asked = oracle(Gate(plan), Kept(fails=True))
        for _ in range(2):
            with pytest.raises(OSError, match="full"):
                asked.ask(SNAPSHOT, X0)
        with pytest.raises(QueryRefused):
            asked.ask(SNAPSHOT, X0)


class TestTickets:
    def test_a_sum_that_was_formed_elsewhere_is_answered_as_one_formed_here(self, plan):
        usual = oracle(Gate(plan)).ask(SNAPSHOT, X0)
        asked = oracle(Gate(plan))
        ticket = asked.begin(SNAPSHOT, X0)
        assert (ticket.clip, ticket.at) == (1.0, (X0,))
        np.testing.assert_array_equal(asked.end(ticket, np.ones(2)), usual)
        assert asked.spent.parts[0].count == 1

    def test_a_ticket_is_good_once_and_where_it_was_begun(self, plan):
        asked, other = oracle(Gate(plan)), oracle(Gate(plan))
        ticket = asked.begin(DIFFERENCE, X0, X0, 0.5)
        assert ticket.clip == 0.5
        with pytest.raises(QueryRefused, match="not open"):
            other.end(ticket, np.ones(2))
        asked.end(ticket, np.ones(2))
        with pytest.raises(QueryRefused, match="not open"):
            asked.end(ticket, np.ones(2))

    def test_beginning_is_charged(self, plan):
        asked = oracle(Gate(plan))
        for _ in range(2):
            asked.begin(SNAPSHOT, X0)
        with pytest.raises(QueryRefused):
            asked.begin(SNAPSHOT, X0)
        with pytest.raises(PromiseBroken):
            asked.require_promise_kept()

    def test_a_place_that_is_refused_is_not_charged(self, plan):
        asked = oracle(Gate(plan))
        for point in (np.array([np.nan, 0.0]), np.zeros(3), np.full(2, 1e31)):
            with pytest.raises(DpadmmError):
                asked.begin(SNAPSHOT, point)
        assert asked.begin(SNAPSHOT, X0).batch.rows is None

    def test_nobody_takes_part_where_the_clip_is_zero(self, plan):
        asked = oracle(Gate(plan))
        ticket = asked.begin(DIFFERENCE, X0, X0, 0.0)
        assert len(ticket.batch.rows) == 0
        np.testing.assert_array_equal(asked.end(ticket, np.full(2, np.nan)), np.zeros(2))


class TestGate:
    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
    def test_it_is_never_copied(self, plan, copied):
        with pytest.raises(TypeError, match="twice"):
            copied(Gate(plan))

    def test_a_line_of_another_gate_leaves_the_promise_unkept(self, plan):
        gate, other = Gate(plan), Gate(plan)
        gate.record(other.line(SNAPSHOT), 2)
        assert gate.spent.parts[0].count == 0

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"noise_multiplier": 0.0}, "without noise"),
            ({"noise_multiplier": float("inf")}, "without noise"),
            ({"clip_norm": 0.999}, "move less"),
            ({"question": ClippedGradient(1.001)}, "move less"),
            ({"sampler": Permutation(8)}, "secret order"),
        ],
    )
    def test_unsound_queries_are_refused(self, plan, change, words):
        snapshot, difference = plan.queries
        gate = Gate(replace(plan, queries=(replace(snapshot, **change), difference)))
        with pytest.raises(QueryRefused, match=words):
            gate.admit(gate.line(SNAPSHOT))
        assert gate.line(SNAPSHOT).asked == 0

    def test_contributions_much_longer_than_what_they_move_are_refused(self, plan):
        """Lemma 1 of docs/proofs/float.md bounds contributions by √2 times the reach."""

        class Distant(ClippedGradient):
            size = 1.5

        snapshot, _ = plan.queries
        gate = Gate(replace(plan, queries=(replace(snapshot, question=Distant(1.0)),)))
        with pytest.raises(QueryRefused, match="rounding"):
            gate.admit(gate.line(SNAPSHOT))

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
    def test_a_forked_child_is_refused(self, plan):
        gate = Gate(plan)
        gate._process += 1
        with pytest.raises(QueryRefused, match="process"):
            gate.line(SNAPSHOT)

    def test_a_line_says_what_was_planned(self, plan):
        line = Gate(plan).line(DIFFERENCE)
        assert isinstance(line, Line)
        assert (line.kind, line.query, line.question) == (DIFFERENCE, plan.queries[1], GradientDifference(2.0))
