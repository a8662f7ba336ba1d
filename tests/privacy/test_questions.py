"""Questions by themselves: where they may be asked, how far a row can reach, and how an answer is taken apart."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np
import pytest

from dpadmm.errors import Diverged, FileProblem, InvalidParameter, QueryRefused
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.facts import QueryFacts
from dpadmm.privacy.passage import Passage
from dpadmm.privacy.questions import (
    CentredScore,
    ClippedGradient,
    CountsBelow,
    FeatureCurvature,
    FeatureMoment,
    GradientDifference,
    HiddenWalk,
    JointMoments,
    LocalMinimum,
    RowMoments,
    SecondMoment,
)
from dpadmm.privacy.questions.base import QUESTIONS, Space, require_point

BINARY, SOFTMAX = Space((4,), 4), Space((4, 3), 4)
WALK = HiddenWalk(0.3, Passage(40, 0.7, 0.5, 1.0))
POINT, POINTS = np.arange(4.0), np.arange(12.0).reshape(4, 3)
# A question, where it is asked, what it is asked at, and how many numbers its noise is added to.
ASKED = [
    (ClippedGradient(0.3), BINARY, (POINT,), 4),
    (ClippedGradient(0.3), SOFTMAX, (POINTS,), 12),
    (GradientDifference(0.6), BINARY, (POINT, -POINT, 0.2), 4),
    (CentredScore(0.5), SOFTMAX, (POINTS,), 1),
    (CountsBelow(4, 2), BINARY, (np.zeros((2, 4)),), 8),
    (FeatureCurvature(), BINARY, (POINT, POINT), 4),
    (FeatureMoment(), BINARY, (), 16),
    (SecondMoment(), BINARY, (), 16),
    (JointMoments(0.3, 1), BINARY, (), 4 + 16),
    (JointMoments(0.3, 3), SOFTMAX, (), 12 + 16),
    (RowMoments(0.3, 0.2, 0.1, 1), BINARY, (), 4 + 4 + 4 + 1),
    (RowMoments(0.3, 0.0, 0.1, 3), SOFTMAX, (), 12 + 4 + 1),
]
EACH = pytest.mark.parametrize(("question", "space", "at", "entries"), ASKED)


def test_every_question_is_here():
    """Local minima are no sums; tests/privacy/test_decentralised.py has them."""
    of_the_library = {QUESTIONS[name] for name in QUESTIONS if QUESTIONS[name].__module__.startswith("dpadmm.")}
    assert {type(question) for question, *_ in ASKED} | {HiddenWalk, LocalMinimum} == of_the_library


@EACH
def test_an_answer_put_together_again_is_what_was_noised(question, space, at, entries):
    released = np.random.default_rng(0).normal(size=entries)
    mean = released if question.name in ("joint-moments", "row-moments") else released.reshape(_shape(question, space))
    np.testing.assert_allclose(question.noised(question.answer(mean, space)), released, rtol=1e-14)


def _shape(question, space):
    square = question.name in ("feature-moment", "second-moment")
    return (4, 4) if square else space.point_shape if question.name == "clipped-gradient" else (-1,)


@EACH
def test_it_is_asked_in_its_place_and_nowhere_else(question, space, at, entries):
    question.accept(at, space)
    with pytest.raises(QueryRefused):
        question.accept((*at, POINT), space)
    if at:
        with pytest.raises(QueryRefused):
            question.accept(at[:-1], space)
        with pytest.raises(QueryRefused):
            question.accept((at[0][1:], *at[1:]), space)


def test_moments_planned_for_another_loss_are_refused():
    for one, other in (
        (JointMoments(0.3, 1), JointMoments(0.3, 3)),
        (RowMoments(0.3, 0, 0, 1), RowMoments(0, 0, 0, 3)),
    ):
        one.accept((), BINARY)
        other.accept((), SOFTMAX)
        with pytest.raises(QueryRefused, match="loss"):
            one.accept((), SOFTMAX)
        with pytest.raises(QueryRefused, match="loss"):
            other.accept((), BINARY)
    assert (BINARY.outputs, SOFTMAX.outputs) == (1, 3)


def test_hidden_passes_are_never_asked_for_one_by_one():
    with pytest.raises(QueryRefused):
        WALK.accept((POINT,), BINARY)


@pytest.mark.parametrize("shape", [(3,), (5,), (4, 1), (1, 4), ()])
def test_points_of_another_shape_are_refused(shape):
    with pytest.raises(QueryRefused, match="shape"):
        require_point(np.zeros(shape), BINARY)


def test_points_end_at_a_norm_of_a_thousand_billion_billion_billions():
    """docs/proofs/float.md: below 10³⁰ no margin overflows."""
    for spread in (1, 4):
        far = np.where(np.arange(4) < spread, 1e30 / math.sqrt(spread), 0.0)
        require_point(0.999 * far, BINARY)
        for wrong in (1.001 * far, far + np.inf, far * np.nan):
            with pytest.raises(Diverged):
                require_point(wrong, BINARY)
        FeatureCurvature().accept((0.999 * far, POINT), BINARY)
        with pytest.raises(QueryRefused):
            FeatureCurvature().accept((1.001 * far, POINT), BINARY)


@pytest.mark.parametrize("weights", [-POINT, POINT * np.nan, np.array([0, 0, 0, np.inf])])
def test_weights_of_curvatures_are_finite_and_not_negative(weights):
    with pytest.raises(QueryRefused):
        FeatureCurvature().accept((POINT, weights), BINARY)


@pytest.mark.parametrize("clip", [-1e-9, 0.6 + 1e-9, math.nan, math.inf])
def test_a_difference_is_clipped_no_higher_than_planned(clip):
    with pytest.raises(QueryRefused):
        GradientDifference(0.6).accept((POINT, POINT, clip), BINARY)
    assert GradientDifference(0.6).accept((POINT, POINT, 0.6), BINARY) == 0.6
    assert GradientDifference(0.6).gradient_clip == 0.3


@pytest.mark.parametrize(
    ("question", "replaced", "added"),
    [
        (ClippedGradient(0.3), 0.3, 0.3),
        (GradientDifference(0.6), 0.6, 0.6),
        (CentredScore(0.5), 0.5, 0.5),
        (WALK, 0.3, 0.3),
        (CountsBelow(4, 3), math.sqrt(12) / 2, math.sqrt(12) / 2),
        (FeatureCurvature(), math.sqrt(2) / 2, 1.0),
        (FeatureMoment(), math.sqrt(2) / 2, 1.0),
        (SecondMoment(), math.sqrt(2) / 2, 1.0),
        # docs/proofs/auto.md, Claim 1: J = 4 for one output, and ‖s‖² = 1 − 1/K for K.
        (JointMoments(0.3, 1), 1.0, math.sqrt(1.3)),
        (JointMoments(0.01, 3), math.sqrt(8 / 3) / 2, math.sqrt(2 / 3 + 0.01)),
        (JointMoments(0.3, 3), math.sqrt(max(8 / 3, 4 / 3 + 0.6 + 1 / (18 * 0.3))) / 2, math.sqrt(2 / 3 + 0.3)),
        (JointMoments(0.3, 3, 1.0, True), math.sqrt(4 / 3 + 0.6 + 1 / (18 * 0.3)) / 2, math.sqrt(2 / 3 + 0.3)),
        (JointMoments(0.01, 3, 1.0, True), math.sqrt(2.0) / 2, math.sqrt(2 / 3 + 0.01)),
        # Claim 4.
        (RowMoments(0.3, 0.2, 0.1, 1), math.sqrt(1.3), math.sqrt(1.6)),
        (RowMoments(0.3, 0.2, 0.1, 3), math.sqrt(2 / 3 + 0.3), math.sqrt(2 / 3 + 0.6)),
    ],
)
def test_how_far_a_row_reaches(question, replaced, added):
    assert question.reach(Relation.REPLACE_ONE) == pytest.approx(replaced, rel=1e-14)
    assert question.reach(Relation.ADD_REMOVE) == pytest.approx(added, rel=1e-14)
    assert question.size == question.reach(Relation.ADD_REMOVE)


@pytest.mark.parametrize(
    "made",
    [
        lambda: JointMoments(0.0, 1),
        lambda: JointMoments(0.51, 1),
        lambda: JointMoments(0.334, 3),
        lambda: RowMoments(0.3, 0.3, 0.21, 1),
        lambda: RowMoments(0.3, 0.2, 0.134, 3),
        lambda: RowMoments(1.01, 0.0, 0.0, 1),
        lambda: RowMoments(0.0, -0.01, 0.0, 1),
        lambda: CountsBelow(0, 1),
        lambda: CountsBelow(1, 0),
    ],
)
def test_weights_without_a_proof_are_refused(made):
    with pytest.raises(InvalidParameter):
        made()


@pytest.mark.parametrize("wrong", ["expected", "clip", "moves", "multiplier"])
def test_stored_facts_have_no_size_of_zero(wrong):
    facts = QueryFacts("gradient", "clipped-gradient", 3, "full", 100.0, 0.3, 0.6, 2.0, False)
    assert facts.noise == pytest.approx(0.6)
    assert facts.noise_on_mean == pytest.approx(0.006)
    with pytest.raises((FileProblem, ValueError)):
        QueryFacts(**{**asdict(facts), wrong: 0.0})
