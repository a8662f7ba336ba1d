"""Who takes part in a query: samplers, their secret draws, and the public numbers their accounting needs."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import InvalidParameter, SchemeMismatch
from dpadmm.randomness import SamplingStream
from dpadmm.registry import Registry
from dpadmm.stored_json import reading, record

SAMPLERS: Registry[type[Sampler]] = Registry("sampler")


class Batch(NamedTuple):
    """Row numbers with a 0/1 weight each; `None` stands for every row. An empty batch is legal."""

    rows: NDArray[np.intp] | None
    weights: NDArray[np.float64] | None = None


class Sampler(Protocol):
    """Fields are public; what `draw` returns is secret."""

    name: ClassVar[str]

    def draw(self, n_rows: int, stream: SamplingStream) -> Batch: ...

    def denominator(self, n_rows: int) -> float:
        """The public constant a sum over one batch is divided by. Never the realised batch size."""
        ...


@SAMPLERS.register("full")
@dataclass(frozen=True)
class Everything:
    """Every row, every time. Nothing about the batch is secret."""

    name: ClassVar[str] = "full"

    def draw(self, n_rows: int, stream: SamplingStream) -> Batch:
        return Batch(None)

    def denominator(self, n_rows: int) -> float:
        return float(n_rows)


@SAMPLERS.register("poisson")
@dataclass(frozen=True)
class Poisson:
    """Each row independently with probability `rate`. Time and memory follow the realised size."""

    rate: float
    name: ClassVar[str] = "poisson"

    def __post_init__(self) -> None:
        _require_rate(self.rate)

    def draw(self, n_rows: int, stream: SamplingStream) -> Batch:
        return Batch(stream.each(n_rows, self.rate))

    def denominator(self, n_rows: int) -> float:
        return self.rate * n_rows


@SAMPLERS.register("truncated-poisson")
@dataclass(frozen=True)
class TruncatedPoisson:
    """Poisson sampling, cut to a uniformly random subset of `cap` rows when more than `cap` were drawn.

    The batch is padded to `cap` entries of weight zero, so that shapes do not depend on the secret size.
    """

    rate: float
    cap: int
    n_rows: int
    name: ClassVar[str] = "truncated-poisson"

    def __post_init__(self) -> None:
        _require_rate(self.rate)
        if not 1 <= self.cap <= self.n_rows:
            raise InvalidParameter(f"a cap of {self.cap}", "1 <= cap <= n_rows", "choose a smaller batch size")

    def draw(self, n_rows: int, stream: SamplingStream) -> Batch:
        _require_same_rows(self.n_rows, n_rows)
        size = min(stream.binomial(n_rows, self.rate), self.cap)
        # `distinct` gives a uniform sequence, so that its first `size` rows are a uniform set.
        rows, weights = stream.distinct(n_rows, self.cap), np.zeros(self.cap)
        weights[:size] = 1.0
        return Batch(rows, weights)

    def denominator(self, n_rows: int) -> float:
        return self.rate * n_rows


@SAMPLERS.register("fixed")
@dataclass(frozen=True)
class WithoutReplacement:
    """A uniformly random set of exactly `batch_size` of the `n_rows` rows, fresh at every query."""

    batch_size: int
    n_rows: int
    name: ClassVar[str] = "fixed"

    def __post_init__(self) -> None:
        if not 1 <= self.batch_size <= self.n_rows:
            raise InvalidParameter(
                f"batch_size={self.batch_size} for {self.n_rows} rows",
                "1 <= batch_size <= number of rows",
                "choose a smaller batch, or sampler='full'",
            )

    @property
    def rate(self) -> float:
        return self.batch_size / self.n_rows

    def draw(self, n_rows: int, stream: SamplingStream) -> Batch:
        _require_same_rows(self.n_rows, n_rows)
        return Batch(stream.distinct(n_rows, self.batch_size))

    def denominator(self, n_rows: int) -> float:
        return float(self.batch_size)


@dataclass(frozen=True)
class Permutation:
    """Every row once, one after another, in a uniformly random secret order. For hidden passes only, so not by name."""

    n_rows: int
    name: ClassVar[str] = "permutation"

    def draw(self, n_rows: int, stream: SamplingStream) -> Batch:
        _require_same_rows(self.n_rows, n_rows)
        return Batch(stream.distinct(n_rows, n_rows))

    def denominator(self, n_rows: int) -> float:
        """Of one iteration, which reads one row."""
        return 1.0


REFUSED = {
    "permutation": "a secret order is certified only for solver='noisy-admm', which hides every state but the last",
    "shuffle": "no accountant here certifies shuffled epochs: the Poisson figure can be far too small",
    "shuffled": "no accountant here certifies shuffled epochs: the Poisson figure can be far too small",
    "epochs": "no accountant here certifies shuffled epochs: the Poisson figure can be far too small",
    "with-replacement": "a row may be drawn several times, and no accountant here certifies that",
    "stratified": "stratified draws need public strata and their largest rate, which this version does not take",
}


def make_sampler(name: str, n_rows: int, batch_size: int) -> Sampler:
    """The sampler called `name` with an expected batch of `batch_size` rows out of `n_rows` (both public)."""
    if name in REFUSED:
        raise SchemeMismatch(f"Got sampler {name!r}: {REFUSED[name]}. Use one of {', '.join(SAMPLERS)}.")
    kind: Any = SAMPLERS[name]
    if kind is Everything:
        return Everything()
    if not 1 <= batch_size <= n_rows:
        raise InvalidParameter(
            f"batch_size={batch_size} for {n_rows} rows",
            "1 <= batch_size <= number of rows",
            "choose a smaller batch, or sampler='full'",
        )
    if batch_size == n_rows:
        # Every scheme then takes every row, and full data has an exact accountant.
        return Everything()
    rate = batch_size / n_rows
    if kind is TruncatedPoisson:
        return TruncatedPoisson(rate, default_cap(n_rows, rate), n_rows)
    return Poisson(rate) if kind is Poisson else WithoutReplacement(batch_size, n_rows)


def sampler_to_dict(sampler: Sampler) -> dict[str, Any]:
    return {"name": sampler.name, **asdict(sampler)}  # type: ignore[call-overload]


def sampler_from_dict(fields: dict[str, Any]) -> Sampler:
    with reading("a sampler"):
        kind: Any = Permutation if fields["name"] == Permutation.name else SAMPLERS[fields["name"]]
        made: Sampler = record(kind, fields, "a sampler")
        return made


def default_cap(n_rows: int, rate: float) -> int:
    """Six standard deviations above the mean batch: truncation is then rarer than one in 10⁸."""
    mean = n_rows * rate
    return min(n_rows, math.ceil(mean + 6 * math.sqrt(mean * (1 - rate)) + 6))


def _require_rate(rate: float) -> None:
    if not 0 < rate <= 1:
        raise InvalidParameter(f"a sampling rate of {rate}", "0 < rate <= 1", "choose 1 <= batch_size <= rows")


def _require_same_rows(planned: int, actual: int) -> None:
    if planned != actual:
        raise SchemeMismatch(
            "The table does not have the number of rows that the plan was certified for. Make a new plan."
        )
