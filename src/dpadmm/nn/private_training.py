"""Private training of a network: our batches, our noise and our accounting; Opacus for gradients of single rows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpadmm.errors import DpadmmError, InvalidParameter, PromiseBroken
from dpadmm.nn.augmented_views import Make as MakeView
from dpadmm.nn.augmented_views import Views
from dpadmm.nn.descent import Descent, DescentRule, Make, PublicStep
from dpadmm.nn.examples import Examples, examples_of, made_up_like, told_apart
from dpadmm.nn.network_copies import precision_of, public_weights, require_installed, trainable_copy, with_weights
from dpadmm.nn.network_rows import NetworkRows, as_vector
from dpadmm.nn.public_count import public_count
from dpadmm.nn.row_gradients import Loss
from dpadmm.nn.rows_apart import MADE_UP_ROWS, require_layers, require_rows_apart
from dpadmm.nn.smoothings import Smoothing
from dpadmm.nn.trained_network import TrainedNetwork, as_npz, fill, from_npz
from dpadmm.nn.training_record import Beginning, TrainingRecord, training_record
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.assumptions import Assumption
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.ledger import Ledger
from dpadmm.privacy.plan import Plan, Request
from dpadmm.privacy.questions import GRADIENT, ClippedGradient
from dpadmm.privacy.sampling import Everything, Poisson, Sampler, TruncatedPoisson, default_cap
from dpadmm.problem.checks import count, number
from dpadmm.sessions import Session, Work
from dpadmm.sessions.progress_bar import progress_observer

ALWAYS = ("network-row-by-row", "starting-weights-public", "rows-as-declared", "nothing-else-learned")


def training_plan(
    n_rows: int,
    *,
    epsilon: float,
    delta: float,
    rate: float,
    steps: int,
    clip: float = 1.0,
    relation: str = "replace-one",
) -> Plan:
    """What `fit` would ask of so many rows, with its noise, certified from public numbers alone.

    The parameters are those of `fit`.

    Examples
    --------
    >>> plan = training_plan(60_000, epsilon=1.0, delta=1e-5, rate=0.1, steps=60)
    >>> plan.epsilon_achieved <= 1.0
    True
    """
    budget = Budget(epsilon, delta, Relation.parse(relation))
    sampler = _sampler(number("rate", rate, strict=True), count("n_rows", n_rows, minimum=1), budget.relation)
    clipped = ClippedGradient(number("clip", clip, strict=True))
    return calibrate(budget, [Request(GRADIENT, count("steps", steps, minimum=1), clipped)], sampler, n_rows)


def fit(
    model: Any,
    examples: Any,
    loss: Loss,
    *,
    epsilon: float,
    delta: float,
    optimizer: Make,
    rate: float,
    steps: int,
    clip: float = 1.0,
    relation: str = "replace-one",
    n_rows: int | None = None,
    schedule: Make | None = None,
    smoothing: Smoothing | None = None,
    where: Callable[[Any], bool] | None = None,
    average: str | None = "ema",
    augment: int = 1,
    view: MakeView | None = None,
    at_once: int = 512,
    ledger: Ledger | str | Path | None = None,
    dataset: str | None = None,
    resume: str | Path | None = None,
    random_state: int | None = None,
    verbose: bool = False,
) -> TrainedNetwork:
    """Train a network under (ε, δ)-differential privacy. Every call spends the whole budget, but for a resumed one.

    Parameters
    ----------
    model : torch.nn.Module
        It stays as it is; a copy is trained, on the device of its weights. The weights it begins with must not have
        been learned from these rows.
    examples : torch.utils.data.Dataset or (inputs, targets)
        Private rows: a dataset with a length whose items are pairs of an input and a target, or two tensors or arrays.
    loss : callable
        From outputs and targets to one number a row, such as `torch.nn.CrossEntropyLoss(reduction="none")`.
    epsilon, delta : float
        What is promised. Choose delta well below one over the number of rows.
    optimizer : callable
        From weights to an optimiser of `torch.optim`: `functools.partial(torch.optim.Adam, lr=1e-3)`.
    rate : float
        Chance of each row to be in the batch of a step; 1 takes all rows in every step.
    steps : int
        Number of steps.
    clip : float
        Longest gradient of one row; longer ones are shortened.
    relation : {"replace-one", "add-remove"}
        Which tables are neighbours.
    n_rows : int, optional
        Public number standing for the number of rows, under add-remove, where the true one is private.
    schedule : callable, optional
        From the optimiser to a learning-rate scheduler, which steps after every step.
    smoothing : Ring or Grid, optional
        Laplacian smoothing of the noisy gradients: DP-LSSGD, DP-LSAdam.
    where : callable, optional
        Says of each weight whether it is smoothed.
    average : {"ema", None}
        Release an average of the weights that forgets early ones, or the last weights.
    augment : int
        Views of each row at each step; the gradient of a row is its mean over them, before it is clipped.
    view : callable, optional
        From a batch of inputs and a `torch.Generator` to a view of it. See docs/neural.md.
    at_once : int
        Rows that pass through the network at once. It bounds memory and changes no promise.
    ledger, dataset : optional
        Who keeps the record of what is spent, and the name of the data set that is charged.
    resume : str or Path, optional
        A file that keeps every step. If the training is killed, the same call goes on after the last step that was
        kept, with fresh noise and without a further charge.
    random_state : int, optional
        For tests only: noise that can be repeated, and a model that is NOT private.
    verbose : bool
        Show a progress bar, which knows nothing but the number of steps.

    Returns
    -------
    TrainedNetwork
        With `model`, `privacy`, `plan` and `history`.

    Notes
    -----
    *Formal guarantees.* The gradients that are released are the answers of an oracle to the plan in the result, so
    that weights, their average and the history are (ε, δ)-private (docs/proofs/neural.md). Denominators are
    rate · n_rows, a public number. A network that mixes rows is refused as far as made-up rows can show it; that it
    does not is an assumption, which the statement names.

    Examples
    --------
    >>> from functools import partial
    >>> import torch
    >>> inputs, targets = torch.randn(1000, 5), torch.randint(2, (1000,))
    >>> trained = fit(
    ...     torch.nn.Linear(5, 2), (inputs, targets), torch.nn.CrossEntropyLoss(reduction="none"),
    ...     epsilon=1.0, delta=1e-4, optimizer=partial(torch.optim.SGD, lr=0.5), rate=0.1, steps=20,
    ... )
    >>> trained.privacy.epsilon
    1.0
    """
    require_installed()
    rule = DescentRule(optimizer, schedule, smoothing, where, average)
    views, at_once = Views(augment, view), count("at_once", at_once, minimum=1)
    budget = Budget(epsilon, delta, Relation.parse(relation))
    network = trainable_copy(model)
    with _record(resume, network) as record:
        affordable = Session(ledger, dataset, random_state).afford
        goes_on = record is not None and record.has_begun  # and was charged for
        if not goes_on:
            affordable(budget)
        rows = examples_of(examples)
        public_rows, assumed = public_count(n_rows, rows.n_rows, budget.relation)
        plan = training_plan(
            public_rows, epsilon=epsilon, delta=delta, rate=rate, steps=steps, clip=clip, relation=relation
        )
        if not goes_on:
            affordable(plan)
        rehearse(network, rows, loss, rule, views)
        once = () if record is None else ("record-continued-once",)
        training = NetworkTraining(network, loss, rule, views, at_once, plan, (*assumed, *ALWAYS, *once))
        session = Session(ledger, dataset, _fresh(random_state, record))
        with progress_observer(verbose, "fit") as observe, _saying_how_to_go_on(record):
            return training.carried_out(rows, record, session, observe)


@dataclass(frozen=True, eq=False)
class NetworkTraining:
    """Everything that is public about a training, before a row is asked for anything."""

    network: Any
    loss: Loss
    rule: DescentRule
    views: Views
    at_once: int
    plan: Plan
    assumptions: tuple[str | Assumption, ...]

    def carried_out(
        self,
        examples: Examples,
        record: TrainingRecord | None,
        session: Session,
        observe: Callable[[int, int], None],
    ) -> TrainedNetwork:
        """Charge the plan, ask all gradients and state what was promised."""
        plan = self.plan
        began = record.resumed(plan) if record is not None and record.has_begun else None
        if began is not None and began.seeded and not session.seeded:
            raise PromiseBroken(
                "Got a training that was begun with a seed, to go on without one. Expected random_state as at its "
                "beginning: noise that can be repeated hides nothing. Pass it again, or choose another file."
            )
        answers = [] if record is None else list(record.answers)
        if began is not None:
            fill(self.network, from_npz(began.weights, "the weights a training began with"))
        weights = public_weights(self.network)
        descent = self.rule.start(weights)
        with session.carrying_out(plan, receipt=None if began is None else began.receipt) as work:
            if record is not None and began is None:
                record.begin(Beginning(plan, as_npz(self.network.state_dict()), work.receipt, session.seeded))
            history = [descent.take(_tensor(answer)) for answer in answers]
            oracle = self._oracle(work, examples, record, descent.steps)
            history += self._remaining(oracle, descent, weights, observe)
            released = descent.released
            work.release(as_vector(released))
        if record is not None:
            record.finish()
        statement = work.statement(descent.name, self.assumptions)
        return TrainedNetwork(with_weights(self.network, released), statement, plan, tuple(history))

    def _oracle(self, work: Work, examples: Examples, record: TrainingRecord | None, done: int) -> PrivateOracle:
        private = NetworkRows(examples, copy.deepcopy(self.network), self.loss, self.views, self.at_once, step=done)
        asked = None if record is None else record.gate_state or Gate(self.plan).to_dict()
        return work.oracle(private, store=record, asked=asked)

    def _remaining(
        self, oracle: PrivateOracle, descent: Descent, weights: list[Any], observe: Callable[[int, int], None]
    ) -> Iterator[PublicStep]:
        """Ask and step until the plan is carried out."""
        precision, total = precision_of(self.network), self.plan.steps
        while descent.steps < total:
            mean = oracle.ask(GRADIENT, as_vector(weights))
            yield descent.take(_tensor(np.asarray(mean, dtype=precision)))
            observe(descent.steps, total)


def rehearse(network: Any, rows: Examples, loss: Loss, rule: DescentRule, views: Views) -> None:
    """Everything a step does, on made-up rows: what cannot work fails before anything is charged."""
    import torch

    require_layers(network)
    made_up = made_up_like(rows, next(iter(public_weights(network))), MADE_UP_ROWS)
    require_rows_apart(copy.deepcopy(network), loss, views, made_up)
    try:
        require_rows_apart(copy.deepcopy(network), loss, views, told_apart(made_up))
    except DpadmmError:
        raise
    except Exception:  # a network or a loss that knows no whole number but 0
        pass
    weights = public_weights(network)
    rule.start(weights).take(torch.zeros(sum(weight.numel() for weight in weights)))


def _sampler(rate: float, n_rows: int, relation: Relation) -> Sampler:
    if rate > 1:
        raise InvalidParameter(
            f"rate={rate}", "0 < rate <= 1", "choose the expected batch size over the number of rows"
        )
    if rate == 1:
        return Everything()
    if relation is Relation.REPLACE_ONE:
        return TruncatedPoisson(rate, default_cap(n_rows, rate), n_rows)
    return Poisson(rate)


@contextmanager
def _record(place: object, network: Any) -> Iterator[TrainingRecord | None]:
    if place is None:
        yield None
    else:
        with training_record(place, precision_of(network)) as record:
            yield record


@contextmanager
def _saying_how_to_go_on(record: TrainingRecord | None) -> Iterator[None]:
    try:
        yield
    except BaseException as ending:
        if record is not None and record.has_begun:
            ending.add_note("The same call goes on after the last step that was kept, without a further charge.")
        raise


def _fresh(seed: int | None, record: TrainingRecord | None) -> int | None:
    """A seed that a resumed training does not share with what it resumes."""
    answered = 0 if record is None else record.answered
    if seed is None or not answered:
        return seed
    return int(np.random.SeedSequence([count("random_state", seed), answered]).generate_state(1)[0])


def _tensor(answer: Any) -> Any:
    import torch

    return torch.from_numpy(np.array(answer))
