"""auto: model-based private ADMM that needs no tuning.

1. One joint release of label correlation and second moment gives a quadratic model and whitened coordinates.
2. Rounds of capped gradients in these coordinates; each noisy gradient G at z is re-expressed through the model as
   the estimate Hz − G of −∇f(0), and all estimates are averaged by the precision their noise is known to have.
3. After each round the posterior mean of the model (noise against a prior without preferred direction), with any
   penalty and constraint by ADMM on the released model, is the next point.
Where nμ is large a few rounds first refine the coordinates by a clipped second moment in the whitened ones. Where a
d × d second moment is too much, the mean row (and the diagonal, where it can be seen) takes its place. Under a sparse
penalty and with little noise, one release a third of the way tells how much of its curvature each feature has left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import InvalidParameter, UnsupportedProblem
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import (
    CURVATURE,
    GRADIENT,
    MOMENTS,
    SECOND_MOMENT,
    ClippedGradient,
    FeatureCurvature,
    Kind,
    Question,
    SecondMoment,
)
from dpadmm.problem.checks import count
from dpadmm.problem.problem import Problem
from dpadmm.problem.regularizers import L1, ElasticNet, Zero
from dpadmm.problem.smoothers import Identity, Smoother
from dpadmm.solvers import admm
from dpadmm.solvers.auto.coordinates import Coordinates
from dpadmm.solvers.auto.curvature import Curvature, Even, relaxed
from dpadmm.solvers.auto.first_release import FirstRelease, first_release_of
from dpadmm.solvers.auto.gradient_evidence import Evidence, Track, fuse
from dpadmm.solvers.auto.label_signal import NO_DOUBT, Doubt, agreement, doubted
from dpadmm.solvers.auto.measured_curvature import measured, question
from dpadmm.solvers.auto.moment_cleaning import clean_whitened_moment, symmetrised
from dpadmm.solvers.auto.noise_adjusted_penalty import screened
from dpadmm.solvers.auto.penalised_model import Model
from dpadmm.solvers.auto.rare_class import lengthening, likeness, mean_label, usual_prior
from dpadmm.solvers.auto.rules import SUFFICIENT_STATISTICS_UP_TO, Rules, choose_rules, for_weak_noise, loss_model
from dpadmm.solvers.auto.wide_coordinates import SpikedCoordinates
from dpadmm.solvers.auto.wide_rules import WideRules, choose_wide_rules
from dpadmm.solvers.base import SOLVERS, Oracle, Setting, Solution, Traits

Array = NDArray[np.float64]
REFINING_GRADIENT = Kind[Array]("refining gradient")

MOST_REPLAYED = 1000
"""Features beyond which a replay, which decomposes several d × d matrices, takes longer than most fits."""


@dataclass(frozen=True, eq=False)
class AutoState:
    t: int
    point: admm.Iterate
    z: Array
    coordinates: Coordinates | SpikedCoordinates
    curvature: Curvature
    older: tuple[Evidence, ...]
    track: Track
    correlation: Array
    doubt: Doubt = NO_DOUBT
    likeness: float = 0.0


@SOLVERS.register("auto")
@dataclass(frozen=True)
class Auto(Traits):
    """Parameters
    ----------
    rules : Rules
        The schedule, chosen by `default` from public numbers.
    smoother : Smoother
        Only the identity: smoothing belongs to solvers that step along gradients.
    """

    rules: Rules
    smoother: Smoother = field(default_factory=Identity)

    name: ClassVar[str] = "auto"
    samples: ClassVar[bool] = False
    takes_clip: ClassVar[bool] = False
    takes_smoother: ClassVar[bool] = False
    stand_in: ClassVar[str | None] = "full-admm"
    numbers_per_weight: ClassVar[int] = 14

    def __post_init__(self) -> None:
        if not isinstance(self.rules, Rules):
            raise InvalidParameter("rules of another type", "dpadmm.solvers.auto.rules.Rules", "leave them out")
        if not isinstance(self.smoother, Identity):
            raise UnsupportedProblem(
                "smoothing with solver 'auto'", "smoothing=None", "use 'full-admm' or 'dp-sadmm' with smoothing"
            )

    @property
    def steps(self) -> int:
        """One update for the moments, one for each gradient."""
        return 1 + self.rules.refine_rounds + self.rules.final_rounds

    @property
    def _curvature_round(self) -> int:
        """The update that first asks how curved the loss is; zero if none does."""
        rules = self.rules
        return 1 + rules.refine_rounds + rules.final_rounds // 3 if rules.curvature_share else 0

    @property
    def first_release(self) -> FirstRelease:
        """How the second moment is seen: whole, or by its mean row."""
        return first_release_of(self.rules)

    @classmethod
    def fits(cls, problem: Problem) -> bool:
        """Whether the loss has a model."""
        return loss_model(problem.loss) is not None

    def why_no_transcript(self, problem: Problem) -> str:
        """Why the noise of this solver's answers is not followed to its coefficients; empty if it is."""
        if isinstance(self.rules, WideRules) or problem.shape[0] > MOST_REPLAYED:
            return f"a table of more than {MOST_REPLAYED} features has none: a replay would take too long"
        return ""

    @classmethod
    def default(cls, problem: Problem, setting: Setting, batch_size: int, **chosen: Any) -> Self:
        model = loss_model(problem.loss)
        if model is None:
            raise UnsupportedProblem(
                f"solver 'auto' with loss {problem.loss.name!r} and {problem.loss.outputs} outputs",
                "one output or softmax",
                "use 'full-admm'",
            )
        signal = setting.n_rows * setting.gaussian_mu * 2 / setting.record_distance
        features, classes, steps = problem.shape[0], max(2, problem.loss.outputs), chosen.pop("steps", None)
        if features <= SUFFICIENT_STATISTICS_UP_TO:
            rules = choose_rules(signal, features, classes, model, steps is None and _chooses_features(problem))
            if model.calibrated and isinstance(problem.regularizer, Zero):
                rules = for_weak_noise(rules, features / signal)
        else:
            rules = choose_wide_rules(signal, features, classes, model)
        rules = replace(rules, label_noise=1 / setting.n_rows)
        if steps is not None:
            if count("steps", steps, minimum=1) < 2:
                raise InvalidParameter(f"steps={steps} with solver 'auto'", "steps >= 2", "give it two steps or more")
            rules = replace(rules, refine_rounds=0, final_rounds=steps - 1, **_single_phase_shares())
        return cls(**{"rules": rules, **chosen})

    def requests(self, problem: Problem, clip_norm: float) -> tuple[Request, ...]:
        """Shares of μ² become relative noise: a share f over k releases asks for noise proportional to √(k/f)."""
        rules, gradient = self.rules, ClippedGradient(self.rules.cap)
        if rules.curvature_share and (isinstance(rules, WideRules) or not _shows_curvature(problem)):
            raise UnsupportedProblem(
                "a share of the budget for the curvature along features",
                "the logistic loss and rules for a whole second moment",
                "leave the rules out",
            )
        refining = min(1, rules.refine_rounds)
        asked: tuple[tuple[str, int, float, Question[Any]], ...] = (
            (MOMENTS, 1, rules.moment_share, self.first_release.question(problem)),
            (REFINING_GRADIENT, rules.refine_rounds, rules.refine_share, gradient),
            (SECOND_MOMENT, refining, rules.spectrum_share, SecondMoment()),
            (CURVATURE, int(rules.curvature_share > 0), rules.curvature_share, FeatureCurvature()),
            (GRADIENT, rules.final_rounds, rules.final_share, gradient),
        )
        return tuple(
            Request(kind, times, question, True, math.sqrt(times / share))
            for kind, times, share, question in asked
            if times
        )

    def init(self, problem: Problem) -> AutoState:
        start, blank = admm.start(problem), self.first_release.blank(problem)
        return AutoState(0, start, start.x, blank, self._even(blank), (), Track(), start.x)

    def update(self, state: AutoState, problem: Problem, oracle: Oracle) -> AutoState:
        if state.t == 0:
            return replace(self._begin(state, problem, oracle), t=1)
        refining = state.t <= self.rules.refine_rounds
        if state.t == self._curvature_round:
            state = self._measure_curvature(state, problem, oracle)
        kind = REFINING_GRADIENT if refining else GRADIENT
        state = self._round(state, problem, oracle, kind)
        if state.t == self.rules.refine_rounds:
            state = self._refine(state, problem, oracle)
        return replace(state, t=state.t + 1)

    def finish(self, state: AutoState, problem: Problem) -> Solution:
        point = state.point
        return Solution(problem.constraint.recover(point.x, point.y), point.x, point.y, self.steps)

    def last_gradient(self, state: AutoState, noise_std: float) -> Array:
        """Gradient at the last point, in its coordinates, as the model and all evidence tell it."""
        newest = state.track.evidence(state.curvature.apply, noise_std**2 * _centring(state.z))
        return np.asarray(state.curvature.apply(state.z) - fuse(newest, state.older).mean)

    def _even(self, coordinates: Coordinates | SpikedCoordinates) -> Even:
        return Even(self.rules.curvature * coordinates.energy)

    def _begin(self, state: AutoState, problem: Problem, oracle: Oracle) -> AutoState:
        correlation, coordinates = self.first_release.ask(oracle, problem)
        state = replace(
            state,
            correlation=_centred(correlation),
            doubt=self._doubt(correlation, coordinates, problem, oracle),
            likeness=self._likeness(correlation, coordinates, problem),
        )
        state = self._enter(state, problem, coordinates, oracle, ())
        return self._solve(state, problem, state.older[0])

    def _enter(
        self,
        state: AutoState,
        problem: Problem,
        coordinates: Coordinates | SpikedCoordinates,
        oracle: Oracle,
        carried: tuple[Evidence, ...],
    ) -> AutoState:
        """Move to new coordinates with the evidence of the moments, and what else is carried over."""
        oracle.change_coordinates(coordinates.matrix)
        unit = self.rules.slope_unit
        # Correlation is released for rows divided by row_norm.
        mean = coordinates.pull_back(unit * state.correlation * problem.row_norm)
        spread = unit**2 * oracle.noise_std(MOMENTS) ** 2 * _centring(state.correlation) * problem.row_norm**2
        evidence = Evidence(mean, _column(spread * coordinates.scale, mean))
        z = coordinates.from_model(state.point.x)
        return replace(
            state,
            coordinates=coordinates,
            curvature=self._even(coordinates),
            older=(evidence, *carried),
            track=Track(),
            z=z,
        )

    def _round(self, state: AutoState, problem: Problem, oracle: Oracle, kind: Kind[Array]) -> AutoState:
        gradient = _centred(oracle.ask(kind, state.z))
        track = state.track.add(state.z, gradient, self.rules.recency)
        newest = track.evidence(state.curvature.apply, oracle.noise_std(kind) ** 2 * _centring(state.z))
        confidence = self._confidence(state, newest) if state.t == self.steps - 1 else 1.0
        return self._solve(replace(state, track=track), problem, fuse(newest, state.older), confidence)

    def _reads_labels(self, coordinates: Coordinates | SpikedCoordinates, problem: Problem) -> bool:
        """Whether the first release tells of the labels: there are two classes, rows are as long as declared and
        have an intercept that can carry a majority."""
        return self.rules.doubt is not None and problem.unit_rows and isinstance(coordinates, Coordinates)

    def _doubt(
        self, correlation: Array, coordinates: Coordinates | SpikedCoordinates, problem: Problem, oracle: Oracle
    ) -> Doubt:
        if not self._reads_labels(coordinates, problem):
            return NO_DOUBT
        assert isinstance(coordinates, Coordinates)
        assert self.rules.doubt is not None
        noise, moment_noise = oracle.noise_std(MOMENTS), self._moment_noise(oracle)
        doubt = doubted(correlation, coordinates, noise, moment_noise, self.rules.doubt, self.rules.label_noise)
        # Noise that comes back through a hinge's model would lift every doubt of even classes.
        return doubt if self.rules.calibrated else replace(doubt, even=0.0)

    def _moment_noise(self, oracle: Oracle) -> float:
        """Of an entry of the first second moment, of rows divided by their norm."""
        return oracle.noise_std(MOMENTS) / math.sqrt(self.rules.balance)

    def _likeness(self, correlation: Array, coordinates: Coordinates | SpikedCoordinates, problem: Problem) -> float:
        """How far labels are alike: of two classes, without a penalty, which has a length of its own in mind."""
        if not (self._reads_labels(coordinates, problem) and isinstance(problem.regularizer, Zero)):
            return 0.0
        assert isinstance(coordinates, Coordinates)
        return likeness(correlation, coordinates)

    def _confidence(self, state: AutoState, newest: Evidence) -> Array | float:
        """Factor on the released margins; directions beyond that of the mean row count as far as they are trusted."""
        if state.doubt == NO_DOUBT and state.likeness == 0.0:
            return self.rules.confidence
        coordinates = state.coordinates
        assert isinstance(coordinates, Coordinates)
        likeness = state.likeness if self.rules.calibrated else 0.0
        confidence = self.rules.confidence * lengthening(likeness, state.z, coordinates)
        squares = coordinates.energy * state.z**2
        common, signal = math.sqrt(float(squares[-1])), math.sqrt(float(squares[:-1].sum()))
        label_variance = max(1 - mean_label(state.correlation, coordinates) ** 2, 0.0)
        chance = self.rules.label_noise * label_variance * self.rules.slope_unit**2 * coordinates.energy
        confidence[:-1] *= state.doubt.trust(agreement(state.older[0], newest, coordinates, chance), common, signal)
        return confidence

    def _solve(
        self, state: AutoState, problem: Problem, evidence: Evidence, confidence: Array | float = 1.0
    ) -> AutoState:
        """Posterior mean of the model: the noise is known, the prior has no preferred direction."""
        scale = usual_prior(self.rules.prior_scale, self.rules.alike_prior_scale, state.likeness)
        prior = scale * state.coordinates.prior
        z, stiff = state.curvature.posterior(evidence, prior)
        z, stiff = np.ascontiguousarray((z.T * confidence).T), relaxed(stiff, confidence)
        if isinstance(problem.regularizer, Zero) and problem.constraint.is_identity:
            x = state.coordinates.to_model(z)
            y = problem.constraint.feasible_auxiliary(x)
            return replace(state, z=z, point=admm.Iterate(x, y, np.zeros_like(y)))
        problem = screened(problem, evidence, state.coordinates) if _chooses_features(problem) else problem
        point = Model(state.coordinates, stiff, z).minimise(problem, state.point)
        return replace(state, z=state.coordinates.from_model(_released(problem, point)), point=point)

    def _measure_curvature(self, state: AutoState, problem: Problem, oracle: Oracle) -> AutoState:
        coordinates = state.coordinates
        assert isinstance(coordinates, Coordinates)
        answer = oracle.ask(CURVATURE, coordinates.to_model(state.z), question(coordinates))
        square_std = self._moment_noise(oracle) * problem.row_norm**2
        return replace(
            state,
            curvature=measured(
                answer,
                oracle.noise_std(CURVATURE),
                coordinates,
                square_std,
                self.rules.curvature,
                problem.constraint.free,
            ),
        )

    def _refine(self, state: AutoState, problem: Problem, oracle: Oracle) -> AutoState:
        """New coordinates from the second moment of the whitened rows; the gradients so far come along."""
        old = state.coordinates
        assert isinstance(old, Coordinates)
        new = _rewhitened(old, oracle, self.rules.flattening)
        evidence = state.track.evidence(
            state.curvature.apply, oracle.noise_std(REFINING_GRADIENT) ** 2 * _centring(state.z)
        )
        carried = _carried(evidence, old, new)
        x = (
            problem.constraint.recover(state.point.x, state.point.y)
            if problem.constraint.is_identity
            else state.point.x
        )
        state = replace(state, point=admm.Iterate(x, state.point.y, state.point.dual))
        return self._enter(state, problem, new, oracle, (carried,))


def _rewhitened(old: Coordinates, oracle: Oracle, flattening: float) -> Coordinates:
    """From the second moment of the rows in old coordinates, none of whose d × d steps outlives this."""
    whitened = clean_whitened_moment(symmetrised(oracle.ask(SECOND_MOMENT)), oracle.noise_std(SECOND_MOMENT))
    return Coordinates.whiten(old.model_of(whitened), old.length, flattening)


def _carried(evidence: Evidence, old: Coordinates, new: Coordinates) -> Evidence:
    """Evidence of old coordinates, in new ones."""
    turn = new.matrix.T @ (old.basis / np.sqrt(old.scale))
    mean = turn @ evidence.mean
    return Evidence(mean, _column((turn**2).sum(axis=1) * float(evidence.variance), mean))


def _released(problem: Problem, point: admm.Iterate) -> Array:
    """The sparse block where there is one: the point at which the next gradient is asked."""
    return problem.constraint.recover(point.x, point.y) if problem.constraint.is_identity else point.x


def _chooses_features(problem: Problem) -> bool:
    """Whether the penalty supposes that few features matter, of a loss whose curvature can be asked for."""
    penalty = problem.regularizer
    chooses = isinstance(penalty, L1) or (isinstance(penalty, ElasticNet) and penalty.l1_ratio > 0)
    return chooses and problem.constraint.is_identity and _shows_curvature(problem)


def _shows_curvature(problem: Problem) -> bool:
    """Whether the curvature of the loss along single features can be asked for."""
    model = loss_model(problem.loss)
    return model is not None and model.shows_curvature


def _single_phase_shares() -> dict[str, Any]:
    asked = {"moment_share": 0.25, "final_share": 0.75}
    return {**asked, "refine_share": 0.0, "spectrum_share": 0.0, "curvature_share": 0.0}


def _centred(values: Array) -> Array:
    """Softmax gradients sum to zero over the classes; noise that does not is dropped."""
    return values if values.ndim == 1 else values - values.mean(axis=1, keepdims=True)


def _centring(values: Array) -> float:
    """Share of the noise variance that centring keeps."""
    return 1.0 if values.ndim == 1 else 1.0 - 1.0 / values.shape[1]


def _column(values: Array, like: Array) -> Array:
    return values if like.ndim == 1 else values[:, None]
