"""Messages are taken from those who signed them, and from nobody else."""

from __future__ import annotations

import copy
import pickle

import pytest

from dpadmm.network.encoding import decode, encode
from dpadmm.network.signing import NotAuthentic, Signer, opened


@pytest.fixture
def north():
    return Signer.generate()


def test_any_changed_bit_is_noticed(north):
    raw = north.seal("north", ("hello", 7, b"x"))
    for place in range(len(raw)):
        changed = bytearray(raw)
        changed[place] ^= 1
        with pytest.raises(NotAuthentic):
            opened(bytes(changed), {"north": north.public})


def test_another_name_or_another_key_is_refused(north):
    south = Signer.generate()
    keys = {"north": north.public, "south": south.public}
    with pytest.raises(NotAuthentic):
        opened(north.seal("south", ("hello",)), keys)
    _, body, signature = decode(north.seal("north", ("hello",)))
    with pytest.raises(NotAuthentic):
        opened(encode("south", body, signature), keys)
    with pytest.raises(NotAuthentic):
        opened(north.seal("north", ("hello",)), {"south": south.public})


def test_signatures_are_repeatable(north):
    """So that the same answer, sent again, is the same bytes."""
    assert north.seal("north", ("a", 1)) == north.seal("north", ("a", 1))


def test_a_key_is_never_copied_or_shown(north):
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="never copied"):
            copied(north)
    assert north.secret.hex() not in repr(north)
