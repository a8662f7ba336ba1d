"""The only maker of random generators: cryptographic, keyed by the operating system, unless a test asks for a seed."""

from __future__ import annotations

import math
import os
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpadmm import kernels
from dpadmm.errors import InvalidParameter
from dpadmm.exact_samplers.binomial import binomial
from dpadmm.exact_samplers.trial_numbers import negative_binomial, poisson
from dpadmm.kernels import numpy_kernels

Drawn = TypeVar("Drawn")

NOISE_BLOCK = 1 << 13
ROWS_BLOCK = 1 << 13
SIZES_BLOCK = 1 << 8


_process = os.getpid()
"""Number of this process, asked for once a fork: to ask the system at each draw takes as long as to draw."""


def _look_at_process() -> None:
    global _process
    _process = os.getpid()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_look_at_process)


def _cryptographic_generator() -> np.random.Generator:
    from randomgen import AESCounter

    return np.random.Generator(AESCounter(key=secrets.randbits(128)))


class _Stream:
    """One generator that re-keys itself when it finds itself in a forked child.

    A fork behind the back of Python goes unnoticed here; in such a child no oracle asks, which looks for itself.
    """

    def __init__(self, make: Callable[[], np.random.Generator]) -> None:
        self._make = make
        self._rekey()

    def _rekey(self) -> None:
        self._lock = threading.Lock()
        self._generator = self._make()
        self._born_in = _process

    def _current(self) -> np.random.Generator:
        if self._born_in != _process:
            self._rekey()
        return self._generator

    def __reduce__(self) -> Any:
        raise TypeError("a random stream is never copied or stored: its state would reveal or repeat the noise")


class SamplingStream(_Stream):
    """Decides which rows enter a batch; its draws stay secret. Drawn in blocks: the bits cost less than the call."""

    def _rekey(self) -> None:
        self._waiting: dict[tuple[Any, ...], list[Any]] = {}
        super()._rekey()

    def binomial(self, trials: int, rate: float) -> int:
        return self._next(_sizes, trials, rate)

    def each(self, n_rows: int, rate: float) -> NDArray[np.intp]:
        """The rows, in their order, whose own independent coin of chance `rate` shows heads."""
        return self._next(_tossed, n_rows, rate)

    def distinct(self, n_rows: int, size: int) -> NDArray[np.intp]:
        """A uniformly random sequence of `size` different row numbers, so that its beginnings are uniform sets too."""
        if 0 < size * size <= n_rows:
            return self._next(_sequences, n_rows, size)
        generator = self._current()
        with self._lock:
            return generator.choice(n_rows, size=size, replace=False, shuffle=True).astype(np.intp, copy=False)

    def _next(self, draw: Callable[[np.random.Generator, int, Any], list[Drawn]], n_rows: int, share: float) -> Drawn:
        """The next of what `draw` draws, handed out once: no two threads ever pop the same."""
        generator, key = self._current(), (draw, n_rows, share)
        try:
            drawn: Drawn = self._waiting[key].pop()
        except (KeyError, IndexError):
            with self._lock:
                waiting = self._waiting[key] = draw(generator, n_rows, share)
                drawn = waiting.pop()
        return drawn


def _sizes(generator: np.random.Generator, trials: int, rate: float) -> list[int]:
    return binomial(trials, rate, SIZES_BLOCK, partial(_words, generator))


def _sequences(generator: np.random.Generator, n_rows: int, size: int) -> list[NDArray[np.intp]]:
    """Uniform sequences without repetition: independent uniform ones, less those that repeat a row.

    At least every second remains where size² ≤ n_rows.
    """
    narrow = np.int32 if n_rows <= np.iinfo(np.int32).max else np.int64
    kept: list[NDArray[np.intp]] = []
    while not kept:
        drawn = generator.integers(0, n_rows, size=(max(1, ROWS_BLOCK // size), size), dtype=narrow)
        ordered = np.sort(drawn, axis=1)
        kept = list(drawn[(ordered[:, 1:] != ordered[:, :-1]).all(axis=1)].astype(np.intp))
    return kept


def _tossed(generator: np.random.Generator, n_rows: int, rate: float) -> list[NDArray[np.intp]]:
    """Coins for several batches, tossed one after another: ⌊E/λ⌋ tails lie between two heads, λ = −log(1 − rate).

    E is a standard exponential, so that P[⌊E/λ⌋ ≥ k] = (1 − rate)ᵏ.
    """
    batches = max(1, int(ROWS_BLOCK / (n_rows * rate)))
    coins = batches * n_rows
    expected = coins * rate
    decay = -math.log1p(-rate) if rate < 1.0 else math.inf
    heads = np.full(1, -1, dtype=np.int64)
    while heads[-1] < coins:
        tails = generator.standard_exponential(int(expected + 6.0 * math.sqrt(expected)) + 8) / decay
        # More tails than coins are as good as any other number of them, and cannot overflow.
        steps = np.minimum(tails, coins).astype(np.int64) + 1
        heads = np.concatenate([heads, heads[-1] + np.cumsum(steps)])
    ends = np.searchsorted(heads, n_rows * np.arange(batches + 1)).tolist()
    rows = heads.astype(np.intp, copy=False)
    return [rows[start:end] - k * n_rows for k, (start, end) in enumerate(pairwise(ends))]


class NoiseStream(_Stream):
    """Standard normals, drawn in blocks: the bits cost less than the call; and discrete Gaussians, drawn exactly.

    Parameters
    ----------
    make : callable
        Makes the generator of the normals.
    secret : bool
        Whether exact noise takes its bits from the operating system, else from the generator.
    """

    def __init__(self, make: Callable[[], np.random.Generator], secret: bool) -> None:
        self._secret = secret
        super().__init__(make)

    def _rekey(self) -> None:
        self._waiting: dict[int, list[NDArray[np.float64]]] = {}
        super()._rekey()

    def standard_normal(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        generator = self._current()
        size = shape[0] if len(shape) == 1 else math.prod(shape)
        if self._secret:
            try:
                drawn = self._waiting[size].pop()
            except (KeyError, IndexError):
                drawn = self._drawn_ahead(generator, size)
        else:
            # Compiled normals differ in the last bits: what a seed repeats is the same with all kernels.
            with self._lock:
                drawn = numpy_kernels.normals(generator, size)
        return drawn if len(shape) == 1 else drawn.reshape(shape)

    def _drawn_ahead(self, generator: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Noise for this release, and for as many more of its size as a block holds.

        Each has memory of its own and is handed out once: no two threads ever pop the same, and who holds one cannot
        see those to come.
        """
        releases = max(1, NOISE_BLOCK // max(1, size))
        with self._lock:
            block: NDArray[np.float64] = kernels.active().normals(generator, releases * size)
        first, *rest = [noise.copy() for noise in block.reshape(releases, size)]
        self._waiting[size] = rest
        return first

    def key(self) -> NDArray[np.uint32]:
        """256 secret bits, for a generator that draws elsewhere."""
        return self._bits(4).view(np.uint32)

    def discrete_gaussian(self, sigma: NDArray[np.int64]) -> NDArray[np.int64]:
        """One exact sample of the discrete Gaussian for each standard deviation."""
        from dpadmm.exact_samplers.discrete_gaussian import discrete_gaussian

        return discrete_gaussian(sigma, self._bits)

    def _bits(self, count: int) -> NDArray[np.uint64]:
        if self._secret:
            return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
        generator = self._current()
        with self._lock:
            return _words(generator, count)


def _words(generator: np.random.Generator, count: int) -> NDArray[np.uint64]:
    return generator.integers(0, 1 << 64, size=count, dtype=np.uint64)


class SelectionStream(_Stream):
    """Decides how often a private search tries, what it tries, and which rows judge; the number of trials stays secret.

    Each value is drawn on demand: a search draws few.
    """

    def poisson(self, mean: float) -> int:
        return poisson(mean, partial(_words, self._current()))

    def negative_binomial(self, shape: float, stopping: float) -> int:
        """The number of failures before `shape` successes of chance `stopping`, given that it is not zero.

        A shape of 0 is its limit, the logarithmic law.
        """
        return negative_binomial(shape, stopping, partial(_words, self._current()))

    def below(self, bound: int) -> int:
        """A uniform number from 0 to bound − 1."""
        return int(self._current().integers(0, bound))

    def subset(self, n_rows: int, size: int) -> NDArray[np.bool_]:
        """A uniformly random set of exactly `size` rows, as a mask."""
        mask = np.zeros(n_rows, dtype=bool)
        mask[self._current().choice(n_rows, size=size, replace=False)] = True
        return mask

    def coins(self, n_rows: int, rate: float) -> NDArray[np.bool_]:
        """One independent coin a row."""
        return self._current().random(n_rows) < rate


@dataclass(frozen=True, eq=False)
class Streams:
    """The two secret streams of one fit. `secret` is False when a seed made them repeatable."""

    sampling: SamplingStream
    noise: NoiseStream
    secret: bool


def public_generator(seed: int) -> np.random.Generator:
    """A plain seeded generator for what is public and must be the same everywhere, such as simulated tables."""
    return np.random.default_rng(seed)


def make_selection_stream(random_state: int | None = None) -> SelectionStream:
    """The stream of one search; an int makes it repeatable, for tests."""
    if random_state is None:
        return SelectionStream(_cryptographic_generator)
    # The first two children belong to the streams of a fit with the same seed.
    own = np.random.SeedSequence(_seed(random_state)).spawn(3)[2]
    return SelectionStream(lambda: np.random.Generator(np.random.PCG64(own)))


def make_streams(random_state: int | None = None) -> Streams:
    """Streams for one fit.

    Parameters
    ----------
    random_state : int or None
        None keys AES in counter mode from the operating system. An int gives a repeatable fit for tests,
        which the privacy statement then calls NOT private.
    """
    if random_state is None:
        return Streams(SamplingStream(_cryptographic_generator), NoiseStream(_cryptographic_generator, True), True)
    sampling, noise = np.random.SeedSequence(_seed(random_state)).spawn(2)
    return Streams(
        SamplingStream(lambda: np.random.Generator(np.random.PCG64(sampling))),
        NoiseStream(lambda: np.random.Generator(np.random.PCG64(noise)), False),
        False,
    )


def _seed(random_state: object) -> int:
    if isinstance(random_state, bool) or not isinstance(random_state, (int, np.integer)) or random_state < 0:
        raise InvalidParameter(
            f"random_state of type {type(random_state).__name__}",
            "None or a non-negative int",
            "leave it out for private training, or pass an int in tests",
        )
    return int(random_state)
