"""Normals made of words by the compiled ziggurat: NumPy's numbers, their law, and seeds that do not notice."""

from types import SimpleNamespace

import numpy as np
import pytest
from randomgen import AESCounter
from scipy import stats

from dpadmm import kernels
from dpadmm.kernels import compiled, numpy_kernels
from dpadmm.kernels.compiled import ziggurat
from dpadmm.randomness import make_streams

GENERATORS = {"AES": lambda: AESCounter(key=11), "PCG64": lambda: np.random.PCG64(11)}


def in_pieces(words, length):
    """Normals of words that come a few at a time."""
    made, waiting, out = [], words[:0], np.empty(words.size)
    for start in range(0, words.size, length):
        waiting = np.concatenate([waiting, words[start : start + length]])
        used, count = ziggurat._fill(waiting, out, 0, ziggurat.STEPS, ziggurat.SURE, ziggurat.HEIGHTS)
        made.append(out[:count].copy())
        waiting = waiting[used:]
    return np.concatenate(made)


@pytest.mark.parametrize("bits", GENERATORS)
@pytest.mark.parametrize("count", [0, 1, 2, 300, 400_000])
def test_the_same_words_give_the_normals_of_numpy(bits, count):
    """Of 400,000 some 100 lie in the tail and thousands are decided by the curve."""
    found = ziggurat.normals(np.random.Generator(GENERATORS[bits]()), count)
    expected = numpy_kernels.normals(np.random.Generator(GENERATORS[bits]()), count)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("length", [1, 2, 3, 1000])
def test_words_that_run_out_change_nothing(length):
    """A number that was begun waits for its words: to begin another would prefer those that take one word."""
    words = np.random.PCG64(3).random_raw(20_000)
    whole, pieces = in_pieces(words, words.size), in_pieces(words, length)
    np.testing.assert_array_equal(pieces, whole)
    assert 0.95 * words.size < whole.size < words.size


def test_words_are_asked_for_again_where_too_few_came():
    bits = np.random.PCG64(5)
    stingy = SimpleNamespace(bit_generator=SimpleNamespace(random_raw=lambda count: bits.random_raw(count // 3 + 1)))
    found = ziggurat.normals(stingy, 5_000)
    np.testing.assert_allclose(found, np.random.Generator(np.random.PCG64(5)).standard_normal(5_000), rtol=1e-13)


def test_layers_have_equal_areas_and_end_at_the_top():
    """Widths times heights: all rectangles have one area, and the highest touches the top of the curve."""
    edges, heights = ziggurat.STEPS[1:] * ziggurat.CELLS, ziggurat.HEIGHTS
    areas = edges * -np.diff(heights)
    lowest = ziggurat.STEPS[0] * ziggurat.CELLS * heights[-1]
    np.testing.assert_allclose(areas, lowest, rtol=1e-12)
    np.testing.assert_allclose(heights[1:], np.exp(-(edges**2) / 2), rtol=1e-14)
    tail = np.sqrt(np.pi / 2) * 2 * stats.norm.sf(ziggurat.TAIL)
    np.testing.assert_allclose(lowest, ziggurat.TAIL * heights[-1] + tail, rtol=1e-12)


@pytest.mark.statistical
def test_the_law():
    drawn = ziggurat.normals(np.random.Generator(AESCounter(key=2)), 4_000_000)
    assert stats.kstest(drawn, "norm").pvalue > 1e-4
    beyond = [(np.abs(drawn) > t).mean() / (2 * stats.norm.sf(t)) for t in (1.0, 2.0, 3.0, ziggurat.TAIL, 4.0)]
    assert (np.abs(np.subtract(beyond, 1.0)) < [0.005, 0.01, 0.05, 0.13, 0.3]).all()
    assert abs(np.sign(drawn[np.abs(drawn) > ziggurat.TAIL]).mean()) < 0.15


def test_what_a_seed_repeats_is_the_same_with_all_kernels():
    drawn = []
    for name in ("numpy", "compiled"):
        with kernels.use(name):
            drawn.append(make_streams(7).noise.standard_normal((20_000,)))
    np.testing.assert_array_equal(*drawn)


def test_secret_noise_is_made_by_the_kernels_in_use(monkeypatch):
    asked = []
    monkeypatch.setattr(compiled, "normals", lambda generator, count: asked.append(count) or np.zeros(count))
    with kernels.use("compiled"):
        assert not make_streams().noise.standard_normal((3,)).any()
        assert make_streams(1).noise.standard_normal((3,)).any()
    assert len(asked) == 1
