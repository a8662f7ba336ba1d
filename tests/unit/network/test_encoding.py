"""Encodings that no two values share, and that nothing else than `encode` writes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpadmm.errors import FileProblem
from dpadmm.network.encoding import decode, digest, encode

PLAIN = st.one_of(
    st.binary(max_size=20),
    st.text(max_size=20),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
)
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=12)


@given(st.lists(VALUES, max_size=5).map(tuple))
def test_what_was_encoded_is_read_back(values):
    assert repr(decode(encode(*values))) == repr(values)


@given(st.lists(VALUES, max_size=4).map(tuple), st.lists(VALUES, max_size=4).map(tuple))
def test_two_sequences_never_share_an_encoding(one, other):
    # repr tells 0.0 from −0.0 and 1 from 1.0, which == does not.
    assert (encode(*one) == encode(*other)) == (repr(one) == repr(other))


@given(st.binary(max_size=60))
def test_other_bytes_are_refused_or_are_an_encoding(content):
    try:
        found = decode(content)
    except FileProblem:
        return
    assert encode(*found) == content


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (0, 4)])
def test_arrays_keep_shape_and_every_bit(shape):
    array = np.random.default_rng(0).normal(size=shape)
    (found,) = decode(encode(np.asarray(array)))
    assert found.shape == shape
    assert found.tobytes() == np.asarray(array).tobytes()


def test_a_run_and_a_number_cannot_be_taken_for_another_run():
    """The first prototype wrote run/epoch/k as text: four runs had one charge and one pad."""
    labels = [("a/1", 2), ("a", 12), ("a/1/2", 0), ("a", 1, 2), ("a/", 12)]
    assert len({digest(*label) for label in labels}) == len(labels)


@pytest.mark.parametrize("deep", [20, 2000])
def test_depth_is_bounded(deep):
    content = b""
    for _ in range(deep):
        content = b"t" + len(content).to_bytes(8, "big") + content
    with pytest.raises(FileProblem):
        decode(content)


@pytest.mark.parametrize("value", [None, True, [1], {"a": 1}, 2**63, 1j, np.ones(2, dtype=np.float32)])
def test_what_has_no_encoding_is_not_sent(value):
    with pytest.raises((TypeError, Exception)):
        encode(value)


def test_a_length_beyond_the_message_is_refused_before_memory_is_taken():
    with pytest.raises(FileProblem):
        decode(b"b" + (2**63).to_bytes(8, "big"))
    with pytest.raises(FileProblem):
        decode(b"a" + (2).to_bytes(8, "big") + (2**31).to_bytes(8, "big") * 2)


def test_floats_keep_infinities_and_nan():
    assert math.isnan(decode(encode(math.nan))[0])
    assert decode(encode(math.inf, -math.inf)) == (math.inf, -math.inf)
