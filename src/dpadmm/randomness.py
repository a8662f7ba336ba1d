"""The only maker of random generators: cryptographic, keyed by the operating system, unless a test asks for a seed."""

from __future__ import annotations

import math
import os
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.discrete_gaussian import discrete_gaussian
from dpadmm.errors import InvalidParameter

NOISE_BLOCK = 1 << 15
ROWS_BLOCK = 1 << 12
SIZES_BLOCK = 1 << 8
SPARSE_BATCH = 16
"""Batches of at most one row in this many are drawn one row after another, skipping repeated ones."""


def _cryptographic_generator() -> np.random.Generator:
    from randomgen import AESCounter

    return np.random.Generator(AESCounter(key=secrets.randbits(128)))


class _Stream:
    """One generator that re-keys itself when it finds itself in a forked child."""

    def __init__(self, make: Callable[[], np.random.Generator]) -> None:
        self._make = make
        self._rekey()

    def _rekey(self) -> None:
        self._lock = threading.Lock()
        self._generator = self._make()
        self._pid = os.getpid()

    def _current(self) -> np.random.Generator:
        if os.getpid() != self._pid:
            self._rekey()
        return self._generator

    def __reduce__(self) -> Any:
        raise TypeError("a random stream is never copied or stored: its state would reveal or repeat the noise")


class SamplingStream(_Stream):
    """Decides which rows enter a batch; its draws stay secret. Drawn in blocks: the bits cost less than the call."""

    def _rekey(self) -> None:
        self._waiting: dict[tuple[Any, ...], NDArray[np.intp]] = {}
        super()._rekey()

    def binomial(self, trials: int, rate: float) -> int:
        def sizes(generator: np.random.Generator, count: int) -> NDArray[Any]:
            return generator.binomial(trials, rate, size=SIZES_BLOCK)

        return int(self._next(("size", trials, rate), 1, sizes)[0])

    def distinct(self, n_rows: int, size: int) -> NDArray[np.intp]:
        """A uniformly random sequence of `size` different row numbers, so that its beginnings are uniform sets too."""
        if size * SPARSE_BATCH > n_rows:
            chosen = self._current().choice(n_rows, size=size, replace=False, shuffle=True)
            return chosen.astype(np.intp, copy=False)

        def rows(generator: np.random.Generator, count: int) -> NDArray[Any]:
            return generator.integers(0, n_rows, size=max(ROWS_BLOCK, count))

        # The first different values of an independent uniform sequence are a uniform sequence without repetition.
        taken = self._next(("row", n_rows), size, rows)
        if len(set(taken.tolist())) == size:
            return taken
        seen = dict.fromkeys(taken.tolist())
        while len(seen) < size:
            seen |= dict.fromkeys(self._next(("row", n_rows), 1, rows).tolist())
        return np.fromiter(seen, dtype=np.intp, count=size)

    def _next(
        self, kind: tuple[Any, ...], count: int, draw: Callable[[np.random.Generator, int], NDArray[Any]]
    ) -> NDArray[np.intp]:
        """The next `count` values of one kind, each handed out once."""
        generator = self._current()
        with self._lock:
            waiting = self._waiting.get(kind)
            if waiting is None or len(waiting) < count:
                fresh = draw(generator, count).astype(np.intp, copy=False)
                waiting = fresh if waiting is None else np.concatenate([waiting, fresh])
            self._waiting[kind] = waiting[count:]
        return waiting[:count].copy()


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
        self._block = np.empty(0)
        super()._rekey()

    def standard_normal(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        generator = self._current()
        size = math.prod(shape)
        with self._lock:
            if size > self._block.size:
                fresh = generator.standard_normal(max(size, NOISE_BLOCK))
                self._block = np.concatenate([self._block, fresh])
            taken, self._block = self._block[:size].copy(), self._block[size:]
        return taken if len(shape) == 1 else taken.reshape(shape)

    def discrete_gaussian(self, sigma: NDArray[np.int64]) -> NDArray[np.int64]:
        """One exact sample of the discrete Gaussian for each standard deviation."""
        return discrete_gaussian(sigma, self._bits)

    def _bits(self, count: int) -> NDArray[np.uint64]:
        if self._secret:
            return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
        generator = self._current()
        with self._lock:
            return generator.integers(0, 1 << 64, size=count, dtype=np.uint64)


class SelectionStream(_Stream):
    """Decides how often a private search tries, what it tries, and which rows judge; the number of trials stays secret.

    Each value is drawn on demand: a search draws few.
    """

    def poisson(self, mean: float) -> int:
        return int(self._current().poisson(mean))

    def logarithmic(self, ratio: float) -> int:
        """P[k] ∝ ratioᵏ/k, k ≥ 1."""
        return int(self._current().logseries(ratio))

    def negative_binomial(self, shape: float, stopping: float) -> int:
        """The number of failures before `shape` successes of chance `stopping`, given that it is not zero."""
        if shape == 1.0:
            return int(self._current().geometric(stopping))
        while not (count := int(self._current().negative_binomial(shape, stopping))):
            pass
        return count

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
