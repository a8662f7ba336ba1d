"""What a privacy statement stores: keys and numbers. `privacy/wording/` words them, and nothing reads words back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from dpadmm.errors import InvalidParameter
from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.assumptions import Assumption
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.proofs import CITATIONS, SENSITIVITIES
from dpadmm.privacy.questions import QUESTIONS, CentredScore, ClippedGradient, GradientDifference, HiddenWalk
from dpadmm.privacy.sampling import SAMPLERS, Permutation
from dpadmm.privacy.selection.repetitions import Repetitions
from dpadmm.privacy.unit import Protected
from dpadmm.stored_json import exactly, flag, listed, reading, real, record, text, texts, unreadable, whole

VERSION = 2
SUBJECTS = ("model", "transformer", "composition")
HIDDEN_PASSES, CLIPPED, DIFFERENCE, SCORE = (
    HiddenWalk.name,
    ClippedGradient.name,
    GradientDifference.name,
    CentredScore.name,
)
FULL = "full"

Read = TypeVar("Read")


@dataclass(frozen=True)
class QueryFacts:
    """One kind of query.

    Attributes
    ----------
    kind, question
        The name under which the solver asks, and the name of the question.
    count, sampler, expected
        How often, over which rows, and how many of them are expected.
    clip, moves, multiplier
        Bound on one row's contribution, how far one row can move the sum, and noise on the sum over the clip.
    discrete
        Whether the noise is discrete Gaussian.
    rounding
        Of hidden passes: what is charged for rounding, as a share of the noise at every row.
    """

    kind: str
    question: str
    count: int
    sampler: str
    expected: float
    clip: float
    moves: float
    multiplier: float
    discrete: bool
    rounding: float | None = None

    def __post_init__(self) -> None:
        _known(self.question in QUESTIONS)
        _known(self.sampler in SAMPLERS or self.sampler == Permutation.name)
        _known((self.question == HIDDEN_PASSES) == (self.rounding is not None))
        _known(min(self.expected, self.clip, self.moves, self.multiplier) > 0)

    @property
    def noise(self) -> float:
        """Standard deviation of the noise on the sum."""
        return self.multiplier * self.clip

    @property
    def noise_on_mean(self) -> float:
        """Of the noise on the mean; of hidden passes, on the gradient of one row."""
        return self.multiplier * self.clip / self.expected


@dataclass(frozen=True)
class RunFacts:
    """A fit or a score within a search: its rows, and what is asked of them."""

    rows: int
    queries: tuple[QueryFacts, ...]


@dataclass(frozen=True)
class SearchFacts:
    """The law of the trials, how many candidates there are, and what one trial promises and asks."""

    candidates: int
    epsilon: float
    delta: float
    repetitions: Repetitions
    fits: tuple[RunFacts, ...]
    score: RunFacts

    def __post_init__(self) -> None:
        _known(len(self.score.queries) == 1)


@dataclass(frozen=True)
class Share:
    """What one budgeted step, or "training", costs of the budget."""

    step: str
    share: float


@dataclass(frozen=True)
class Outlook:
    """A budget too small for its rows to learn from: nμ, and from where on there is hope."""

    signal: float
    least: float


@dataclass(frozen=True)
class Facts:
    """Everything a statement says, without a sentence; the attributes are those of `PrivacyStatement`."""

    subject: str
    epsilon: float
    delta: float
    relation: str
    epsilon_achieved: float
    accountant: str
    proofs: tuple[str, ...]
    unit: Protected
    solvers: tuple[str, ...]
    seeded: bool
    plan_digest: str
    library_version: str
    arithmetic: str
    queries: tuple[QueryFacts, ...]
    assumptions: tuple[Assumption, ...]
    search: SearchFacts | None = None
    split: tuple[Share, ...] = ()
    outlook: Outlook | None = None

    def __post_init__(self) -> None:
        Budget(self.epsilon, self.delta, Relation.parse(self.relation))
        # Only a total of parts of earlier versions has something to quote.
        _known(self.subject == "composition" or not self.assumes("as-stored"))
        _known(self.subject in SUBJECTS and self.arithmetic in list(Arithmetic))
        _known(all(claim in CITATIONS or claim == SENSITIVITIES for claim in self.proofs))

    @property
    def asked(self) -> tuple[QueryFacts, ...]:
        """Every kind of query, those of a search's trials included."""
        if self.search is None:
            return self.queries
        runs = (*self.search.fits, self.search.score)
        return (*self.queries, *(query for run in runs for query in run.queries))

    def assumes(self, key: str) -> bool:
        """Whether an assumption of this key is among them."""
        return any(each.key == key for each in self.assumptions)

    def to_dict(self) -> dict[str, Any]:
        """As JSON keeps it."""
        fields = asdict(self) | {"assumptions": [each.to_dict() for each in self.assumptions]}
        return {"version": VERSION, **{key: _as_json(value) for key, value in fields.items()}}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Facts:
        """The facts that `to_dict` wrote; `FileProblem` for anything else."""
        exactly(fields, WHAT, ("version", *_READ))
        if whole(fields["version"], WHAT) != VERSION:
            raise unreadable(WHAT, "of a version that this library does not know")
        with reading(WHAT):
            return cls(**{name: read(fields[name]) for name, read in _READ.items()})


WHAT = "a statement"


def _known(right: bool) -> None:
    if not right:
        raise InvalidParameter("facts that no plan implies", "those of a plan", "make the statement again")


def _as_json(value: Any) -> Any:
    """Lists where Python has tuples, as JSON gives them back."""
    if isinstance(value, dict):
        return {key: _as_json(each) for key, each in value.items()}
    return [_as_json(each) for each in value] if isinstance(value, (list, tuple)) else value


def _each(read: Callable[[Any], Read]) -> Callable[[Any], tuple[Read, ...]]:
    return lambda value: tuple(read(each) for each in listed(value, WHAT))


def _perhaps(read: Callable[[Any], Read]) -> Callable[[Any], Read | None]:
    return lambda value: None if value is None else read(value)


def _flat(kind: type[Read]) -> Callable[[Any], Read]:
    return lambda value: record(kind, value, WHAT)


_query = _flat(QueryFacts)


def _run(value: Any) -> RunFacts:
    fields = exactly(value, WHAT, ("rows", "queries"))
    return RunFacts(whole(fields["rows"], WHAT), _each(_query)(fields["queries"]))


def _search(value: Any) -> SearchFacts:
    fields = exactly(value, WHAT, ("candidates", "epsilon", "delta", "repetitions", "fits", "score"))
    return SearchFacts(
        whole(fields["candidates"], WHAT),
        real(fields["epsilon"], WHAT),
        real(fields["delta"], WHAT),
        record(Repetitions, fields["repetitions"], WHAT),
        _each(_run)(fields["fits"]),
        _run(fields["score"]),
    )


def _text(value: Any) -> str:
    return text(value, WHAT)


def _real(value: Any) -> float:
    return real(value, WHAT)


_READ: dict[str, Callable[[Any], Any]] = {
    "subject": _text,
    "epsilon": _real,
    "delta": _real,
    "relation": _text,
    "epsilon_achieved": _real,
    "accountant": _text,
    "proofs": lambda value: texts(value, WHAT),
    "unit": _flat(Protected),
    "solvers": lambda value: texts(value, WHAT),
    "seeded": lambda value: flag(value, WHAT),
    "plan_digest": _text,
    "library_version": _text,
    "arithmetic": _text,
    "queries": _each(_query),
    "assumptions": _each(Assumption.from_dict),
    "search": _perhaps(_search),
    "split": _each(_flat(Share)),
    "outlook": _perhaps(_flat(Outlook)),
}
