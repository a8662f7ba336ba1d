"""T17 and T10: nobody can repeat, copy, store or guess the noise, and smoothing does not change a bit of it."""

from __future__ import annotations

import copy
import ctypes
import json
import multiprocessing
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import numpy as np
import pytest
from joblib import Parallel, delayed

from dpadmm import DPLogisticRegression, randomness
from dpadmm.errors import InvalidParameter, QueryRefused
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import GRADIENT, ClippedGradient
from dpadmm.privacy.sampling import make_sampler
from dpadmm.problem import Logistic
from dpadmm.randomness import NOISE_BLOCK, NoiseStream, SamplingStream, Streams, make_streams
from dpadmm.rows.local import LocalRows

N, D = 60, 4
ROWS = np.random.default_rng(0)
X, Y = ROWS.uniform(-1, 1, (N, D)), (ROWS.uniform(size=N) < 0.5).astype(int)


def fit(random_state=None, **more):
    options = {"classes": [0, 1], "delta": 1e-3, "steps": 6, "batch_size": 10, "random_state": random_state} | more
    return DPLogisticRegression(**options).fit(X, Y)


def draw(streams, size=6):
    return streams.noise.standard_normal((size,)).tolist(), streams.sampling.distinct(10**9, size).tolist()


def in_forked_child(action):
    """What `action()` returns in a child made by fork, sent back through a pipe."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, json.dumps(action()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return json.loads(text)


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
ignore_fork_warning = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


class TestFork:
    @needs_fork
    @ignore_fork_warning
    @pytest.mark.parametrize("warm", [False, True])
    def test_child_parent_and_siblings_draw_different_noise_and_batches(self, warm):
        """Also when a block of noise was waiting in memory at the moment of the fork."""
        streams = make_streams(None)
        if warm:
            draw(streams)
        drawn = [in_forked_child(lambda: draw(streams)) for _ in range(3)] + [list(draw(streams))]
        noise = np.concatenate([one for one, _ in drawn])
        rows = np.concatenate([other for _, other in drawn])
        assert len(np.unique(noise)) == noise.size
        assert len(np.unique(rows)) == rows.size

    @needs_fork
    @ignore_fork_warning
    def test_a_grandchild_draws_its_own(self):
        streams = make_streams(None)

        def child():
            own = draw(streams)[0]
            return own + in_forked_child(lambda: draw(streams)[0])

        noise = in_forked_child(child) + draw(streams)[0]
        assert len(set(noise)) == len(noise)

    @needs_fork
    @ignore_fork_warning
    def test_what_waits_is_dropped_in_a_child(self):
        streams = make_streams(None)
        draw(streams)
        inherited = [noise.tolist() for noise in streams.noise._waiting[6]]

        def child():
            drawn = [streams.noise.standard_normal((6,)).tolist() for _ in range(3)]
            return drawn + [noise.tolist() for noise in streams.noise._waiting[6]]

        own = in_forked_child(child)
        assert len(own) == NOISE_BLOCK // 6
        assert not {tuple(noise) for noise in own} & {tuple(noise) for noise in inherited}

    @needs_fork
    @ignore_fork_warning
    def test_an_oracle_notices_even_a_fork_behind_the_back_of_python(self):
        """Streams rely on being told of forks; an oracle asks the system, and then asks no stream."""
        plan = calibrate(
            Budget(1.0, 1e-6), [Request("gradient", 2, ClippedGradient(1.0))], make_sampler("fixed", N, 10), N
        )
        oracle = PrivateOracle(LocalRows(X, 2.0 * Y - 1.0, Logistic()), Gate(plan), make_streams(None))
        oracle.ask(GRADIENT, np.zeros(D))

        def refused():
            try:
                oracle.ask(GRADIENT, np.zeros(D))
            except QueryRefused:
                return True
            return False

        with mock.patch.object(os, "fork", ctypes.CDLL(None).fork):
            assert in_forked_child(lambda: [refused(), randomness._process == os.getpid()]) == [True, False]

    @needs_fork
    @ignore_fork_warning
    def test_the_parent_is_not_disturbed(self):
        streams, twin = make_streams(5), make_streams(5)
        draw(streams), draw(twin)
        in_forked_child(lambda: draw(streams))
        assert draw(streams) == draw(twin)

    @needs_fork
    @ignore_fork_warning
    def test_multiprocessing_fits_differ(self):
        with multiprocessing.get_context("fork").Pool(2) as pool:
            weights = pool.map(_fit_coefficients, range(3))
        assert len({tuple(w) for w in weights}) == 3

    @needs_fork
    @ignore_fork_warning
    def test_mutant_without_the_check_repeats_the_noise(self):
        """What the check of the process number is for: the same generator in two processes."""
        streams = make_streams(None)
        draw(streams)
        with mock.patch.object(NoiseStream, "_current", lambda stream: stream._generator):
            child = in_forked_child(lambda: streams.noise.standard_normal((4,)).tolist())
            assert child == streams.noise.standard_normal((4,)).tolist()


def _fit_coefficients(_):
    return fit().coef_.ravel().tolist()


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_joblib_fits_differ(backend):
    weights = Parallel(n_jobs=2, backend=backend)(delayed(_fit_coefficients)(i) for i in range(3))
    assert len({tuple(w) for w in weights}) == 3


DRAWS, WORKERS = 1_000_000, 4


def _draw_many(streams=None):
    """This worker's share of the draws: normals, and exact noise with as many bits."""
    streams = make_streams(None) if streams is None else streams
    share = DRAWS // WORKERS
    exact = streams.noise.discrete_gaussian(np.full(share // 100, 1 << 50))
    return streams.noise.standard_normal((share,)), exact


def _forked(send):
    send.send(_draw_many(SHARED))
    send.close()


SHARED = make_streams(None)
"""Inherited by forked workers, with a block of noise waiting; made anew where the module is imported again."""


def _by_fork():
    SHARED.noise.standard_normal((5,))
    context, pipes = multiprocessing.get_context("fork"), []
    for _ in range(WORKERS - 1):
        receive, send = context.Pipe(duplex=False)
        worker = context.Process(target=_forked, args=(send,))
        worker.start()
        pipes.append((worker, receive))
    drawn = [_draw_many(SHARED)]
    for worker, receive in pipes:
        drawn.append(receive.recv())
        worker.join()
    return drawn


def _by_spawn():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        return pool.map(_draw_many, [None] * WORKERS, chunksize=1)


def _by_threads():
    """All of them on one stream."""
    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(lambda _: _draw_many(SHARED), range(WORKERS)))


def _by_joblib():
    return Parallel(n_jobs=2, backend="loky")(delayed(_draw_many)() for _ in range(WORKERS))


def shared_values(drawn):
    """How many pairs of neighbouring values appear twice: single doubles of a million agree by chance once in 10⁴."""
    normals = np.concatenate([values for values, _ in drawn])
    pairs = np.stack([normals[:-1], normals[1:]], axis=1).copy().view(np.complex128).ravel()
    exact = np.concatenate([values for _, values in drawn])
    return (len(pairs) - len(np.unique(pairs))) + (len(exact) - len(np.unique(exact)))


class TestAMillionDraws:
    @needs_fork
    @ignore_fork_warning
    @pytest.mark.parametrize(
        "way", [_by_fork, pytest.param(_by_spawn, marks=pytest.mark.slow), _by_threads, _by_joblib]
    )
    def test_no_worker_repeats_the_noise_of_another(self, way):
        drawn = way()
        assert sum(len(values) for values, _ in drawn) == DRAWS
        assert shared_values(drawn) == 0

    @needs_fork
    @ignore_fork_warning
    def test_mutant_without_the_check_of_the_process(self):
        with mock.patch.object(NoiseStream, "_current", lambda stream: stream._generator):
            assert shared_values(_by_fork()) > 0.5 * DRAWS

    def test_mutant_streams_that_start_alike(self):
        assert shared_values([_draw_many(make_streams(0)) for _ in range(WORKERS)]) > 0.5 * DRAWS


class TestStreamsAreNeverCopied:
    @pytest.mark.parametrize("seed", [None, 3])
    @pytest.mark.parametrize("leave", [pickle.dumps, copy.copy, copy.deepcopy, lambda s: pickle.dumps(s, 0)])
    def test_neither_stream(self, seed, leave):
        streams = make_streams(seed)
        for stream in (streams.noise, streams.sampling):
            with pytest.raises(TypeError, match="never copied"):
                leave(stream)

    @pytest.mark.parametrize("leave", [pickle.dumps, copy.deepcopy])
    def test_both_together(self, leave):
        with pytest.raises(TypeError, match="never copied"):
            leave(make_streams(None))

    def test_representation_shows_no_state(self):
        text = repr(make_streams(123456789))
        assert "123456789" not in text
        assert "state" not in text


class TestNoiseIsNeverReused:
    def test_across_blocks_and_shapes(self):
        stream = make_streams(None).noise
        sizes = [1, 7, NOISE_BLOCK - 9, 3, NOISE_BLOCK + 5, (2, 3), NOISE_BLOCK, 1]
        drawn = [stream.standard_normal(size if isinstance(size, tuple) else (size,)) for size in sizes]
        values = np.concatenate([piece.ravel() for piece in drawn])
        # Of 10⁵ doubles two agree by chance less than once in 10⁵ runs of this test.
        assert len(np.unique(values)) == values.size
        assert [piece.shape for piece in drawn] == [s if isinstance(s, tuple) else (s,) for s in sizes]

    def test_handed_out_noise_is_not_kept(self):
        """Neither does the stream hold a handed-out value, nor can a caller write into values to come."""
        stream = make_streams(None).noise
        first = stream.standard_normal((5,))
        waiting = stream._waiting[5]
        assert len(waiting) == NOISE_BLOCK // 5 - 1
        assert not np.isin(first, waiting).any()
        assert first.base is None
        assert not any(each is not other and np.shares_memory(each, other) for each in waiting[:3] for other in waiting)
        values = np.copy(waiting)
        first[:] = 0
        np.testing.assert_array_equal(waiting, values)
        second = stream.standard_normal((5,))
        np.testing.assert_array_equal(second, values[-1])
        assert not np.isin(second, waiting).any()

    @pytest.mark.parametrize("sizes", [[5] * 3000, [5, 3, 5, 700, 1, 9000, 5]])
    def test_a_seed_gives_the_normals_of_its_generator_one_after_another(self, sizes):
        stream = make_streams(5).noise
        drawn = np.concatenate([stream.standard_normal((size,)) for size in sizes])
        own = np.random.Generator(np.random.PCG64(np.random.SeedSequence(5).spawn(2)[1]))
        np.testing.assert_array_equal(drawn, own.standard_normal(sum(sizes)))

    def test_two_fits_of_one_process(self):
        assert not np.array_equal(fit().coef_, fit().coef_)

    def test_two_streams_of_one_process(self):
        one, two = draw(make_streams(None)), draw(make_streams(None))
        assert not set(one[0]) & set(two[0])
        assert not set(one[1]) & set(two[1])

    def test_unseeded_noise_does_not_follow_the_global_seed(self):
        drawn = []
        for _ in range(2):
            np.random.seed(0)
            drawn.append(draw(make_streams(None)))
        assert drawn[0] != drawn[1]

    def test_the_default_is_the_operating_systems_cryptographic_generator(self):
        streams = make_streams(None)
        assert streams.secret
        assert isinstance(streams, Streams)
        for stream in (streams.noise, streams.sampling):
            assert type(stream._generator.bit_generator).__name__ == "AESCounter"
        keys = [str(s._generator.bit_generator.state) for s in (streams.noise, streams.sampling)]
        assert keys[0] != keys[1]


class TestSeeds:
    def test_a_seed_repeats_and_says_so(self):
        one, two = fit(random_state=7), fit(random_state=7)
        np.testing.assert_array_equal(one.coef_, two.coef_)
        assert one.privacy_.seeded
        assert "NOT private" in one.privacy_.text
        assert not fit().privacy_.seeded

    def test_seeds_are_stored_nowhere(self, tmp_path):
        seed = 918273645
        model = fit(random_state=seed)
        model.save(tmp_path)
        for path in tmp_path.iterdir():
            content = path.read_bytes()
            assert str(seed).encode() not in content
            assert seed.to_bytes(8, "little") not in content
        assert str(seed) not in model.privacy_.to_json() + json.dumps(model.plan_.to_dict())
        fitted = {name: value for name, value in vars(model).items() if name.endswith("_")}
        assert str(seed) not in repr(fitted)
        assert not any(isinstance(value, (NoiseStream, SamplingStream, Streams)) for value in vars(model).values())

    @pytest.mark.parametrize("bad", [-1, 1.0, "0", True, np.random.default_rng(0), np.random.RandomState(0)])
    def test_what_is_no_seed_is_refused(self, bad):
        with pytest.raises(InvalidParameter):
            make_streams(bad)

    def test_sampling_and_noise_streams_do_not_share_draws(self):
        """However many batches are drawn, the noise stays the same, and the other way round."""
        one, two = make_streams(1), make_streams(1)
        for _ in range(50):
            one.sampling.distinct(100, 10)
        np.testing.assert_array_equal(one.noise.standard_normal((9,)), two.noise.standard_normal((9,)))
        two.noise.standard_normal((10 * NOISE_BLOCK,))
        fresh = make_streams(1)
        for _ in range(50):
            fresh.sampling.distinct(100, 10)
        assert fresh.sampling.distinct(10**6, 9).tolist() == one.sampling.distinct(10**6, 9).tolist()
        assert two.sampling.distinct(10**6, 9).tolist() == make_streams(1).sampling.distinct(10**6, 9).tolist()


class TestSmoothingIsFree:
    """T10: what the oracle draws is bitwise the same, with the same plan, for every smoother."""

    @pytest.mark.parametrize("solver", ["dp-sadmm", "dp-vradmm", "full-admm", "ssadmm", "mpadmm", "dp-sgd"])
    def test_noise_and_plan(self, solver):
        drawn, plans, weights = [], [], []
        honest = NoiseStream.standard_normal
        for smoothing in (None, 0.0, 3.0):
            seen = []

            def watched(stream, shape, seen=seen):
                noise = honest(stream, shape)
                seen.append(noise.tobytes())
                return noise

            # With one inner step every difference of DP-VRADMM has clip 0 and draws nothing.
            options = {"epochs": 2, "inner_steps": 3} if solver == "dp-vradmm" else None
            with mock.patch.object(NoiseStream, "standard_normal", watched):
                model = fit(random_state=0, solver=solver, smoothing=smoothing, solver_options=options)
            drawn.append(seen)
            plans.append(model.plan_)
            weights.append(model.weights_)
        assert drawn[0] == drawn[1] == drawn[2]
        assert len(drawn[0]) >= 3
        assert plans[0] == plans[1] == plans[2]
        np.testing.assert_allclose(weights[0], weights[1], atol=1e-12)
        assert not np.allclose(weights[0], weights[2])
