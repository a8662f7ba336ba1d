"""Standard errors that the privacy noise implies, computed from released answers when they are first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.declare.recipe import Recipe
from dpadmm.privacy.outlook import signal
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.wording import rounded_down
from dpadmm.problem.problem import Problem
from dpadmm.problem.rowmap import RowMap
from dpadmm.solvers.auto.noise_spread.transcript import Listener, Transcript
from dpadmm.solvers.base import Oracle, Solver

if TYPE_CHECKING:
    from dpadmm.solvers.auto.noise_spread.replay import Spread

Array = NDArray[np.float64]

LEAST_SIGNAL = 500.0
"""nμ from which standard errors are stated. Below it a transcript tells too little of the rows to replay it on
(docs/uncertainty.md)."""

NOT_COMPUTED = "the model was saved before they were computed; ask for coef_std_ before saving"


class Uncertain:
    """What a fitted model knows of its noise: a transcript to replay, the replays, or why there is neither.

    The rows never come near: a transcript holds noisy answers, which were paid for, and public numbers.
    """

    row_map_: RowMap
    _transcript: Transcript | None = None
    _spread: Spread | None = None
    _no_spread: str = "the model is not fitted"

    def replay_noise(self) -> None:
        """Compute the standard errors now, so that `save` keeps them."""
        if self._spread is None:
            from dpadmm.solvers.auto.noise_spread.replay import noise_spread

            knows_its_noise(self)
            assert self._transcript is not None
            self._spread = noise_spread(self._transcript)

    @property
    def noise_was_replayed(self) -> bool:
        """Whether standard errors were computed, here or before the model was saved."""
        return self._spread is not None

    def _listen(self, oracle: Oracle, recipe: Recipe, prepared: bool) -> Oracle:
        """The oracle to train with: one that keeps its answers, where replays are possible."""
        too_little = why_too_little(recipe.plan)
        self.forget_noise(why_no_spread(recipe.solver, recipe.problem, prepared) or too_little)
        return oracle if self._no_spread else Listener(oracle)

    def forget_noise(self, why: str) -> None:
        """Have no standard errors, and say why."""
        self._transcript = self._spread = None
        self._no_spread = why

    @property
    def noise_replays(self) -> Spread | None:
        """The replays, if they were made or stored."""
        return self._spread

    def keep_replays(self, spread: Spread) -> None:
        """Take over replays that were stored."""
        self._spread = spread

    @property
    def why_no_noise(self) -> str:
        """Why there are no standard errors; empty if there are, or if they can be computed."""
        return "" if self._transcript is not None or self._spread is not None else self._no_spread

    @property
    def quick_to_replay(self) -> bool:
        """Whether the standard errors would take a second or so."""
        return self._transcript is not None and self._transcript.quick

    def _noise_spread(self) -> Spread:
        self.replay_noise()
        assert self._spread is not None
        return self._spread

    def _folded_std(self) -> tuple[Array, Array]:
        """Of coefficients and intercepts in raw units, (features, outputs) and (outputs,)."""
        spread = self._noise_spread()
        folded = [self.row_map_.fold(deviation) for deviation in spread.weights]
        coef, offset = (np.stack(each) for each in zip(*folded, strict=True))
        return spread.std(coef), spread.std(offset)


def why_no_spread(solver: Solver[Any], problem: Problem, prepared: bool) -> str:
    """Why a fit will have no standard errors, from public choices; empty if it will."""
    if prepared:
        return "the private preparation adds noise of its own, which standard errors would leave out"
    return solver.why_no_transcript(problem)


def why_too_little(plan: Plan) -> str:
    """Why a plan tells too little about the rows for replays, from public numbers; empty if it tells enough."""
    reached = signal(plan.budget, plan.n_rows)
    if reached >= LEAST_SIGNAL:
        return ""
    return (
        f"the budget is small for this number of rows (n mu = {rounded_down(reached, 3)}; below {LEAST_SIGNAL:g} "
        "standard errors came out too small in tests)"
    )


def knows_its_noise(model: Uncertain) -> bool:
    """For `available_if`: true, or an AttributeError that says why there are no standard errors."""
    if why := model.why_no_noise:
        raise AttributeError(f"this {type(model).__name__} has no standard errors: {why}")
    return True
