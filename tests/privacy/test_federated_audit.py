"""Audits of federated sums from the views of the theorem: honest code keeps its claim, broken code does not.

Each entry of one long vector is an experiment of its own: the record of the honest silo h is replaced, which moves its
count by twice the clip. The claim is μ = 2/z towards the coordinator with c silos, and μ√((S − c)/(S − j)) with j > c.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from dpadmm.audit.lower_bound import gaussian_lower_bound
from dpadmm.network.noise_shares import share_deviations, share_of_noise
from dpadmm.network.pads import Label, masked, pair_secret, public_half, unmasked

PAIRS = 30_000
UNIT = 2.0**-30
CLIP = 1.0
MULTIPLIER = 2.0
CLAIM = 2.0 / MULTIPLIER
CONFIDENCE = 1 - 1e-9


@dataclass(frozen=True)
class Federated:
    """A federation of which each silo follows the code of the library, but for what a mutant changes."""

    silos: int = 4
    colluding: int = 1
    share_of: int | None = None
    keys: str = "fresh"
    bound: tuple[str, ...] = ("session", "question", "units")

    @property
    def names(self):
        return [f"silo-{k}" for k in range(self.silos)]

    def label(self, question=b"q", session=b"session", unit=UNIT):
        units = np.full(PAIRS, unit)
        honest = self.silos - self.colluding if self.share_of is None else self.share_of
        deviations = share_deviations(MULTIPLIER * CLIP, honest, units)
        said = Label(
            session if "session" in self.bound else b"s",
            1,
            question if "question" in self.bound else b"q",
            units if "units" in self.bound else np.full(PAIRS, UNIT),
            deviations if "units" in self.bound else np.full(PAIRS, 1000),
        )
        return said.encoded, deviations

    def vector(self, name, counts, noise_key, pairs_of=b"session", **asked):
        """What a silo sends, and its share of the noise."""
        label, deviations = self.label(**asked)
        noise = share_of_noise(noise_key + name.encode(), label, deviations)
        session = pairs_of if "session" in self.bound else b"s"
        return masked(counts + noise, name, self.pairs(name, session, noise_key[:8]), label), noise

    def pairs(self, name, session, run):
        """Ephemeral keys are fresh in each run: `run` stands for the randomness of the operating system."""
        if self.colluding == self.silos - 1:
            return {}
        private = {each: (run + each.encode()).ljust(32, b".") for each in self.names}
        if self.keys == "constant":
            return {peer: b"0" * 32 for peer in self.names if peer != name}
        return {
            peer: pair_secret(private[name], public_half(private[peer]), session, (name, peer))
            for peer in self.names
            if peer != name
        }

    def total(self, moved, key, subtract=1, **asked):
        """The sum of all answers less the noise of the last `subtract` silos: the view of coordinator and colluders."""
        shift = np.full(PAIRS, moved, dtype=np.int64)
        sent = [self.vector(name, shift * (name == "silo-0"), key, **asked) for name in self.names]
        view = unmasked([vector for vector, _ in sent])
        for _, noise in sent[self.silos - subtract :] if subtract else ():
            view = view - noise
        return view.astype(float)


MOVE = round(2 * CLIP / UNIT)


def audited(score) -> float:
    """A lower bound on μ; `score(moved, key)` is what an attacker makes of its view."""
    return gaussian_lower_bound(score(0, b"a" * 16), score(MOVE, b"b" * 16), 1e-5, CONFIDENCE).mu


@pytest.mark.parametrize(("silos", "colluding"), [(2, 1), (4, 1), (4, 3), (5, 2)])
def test_coordinator_and_colluding_silos_see_what_is_claimed(silos, colluding):
    code = Federated(silos, colluding)
    found = audited(lambda moved, key: code.total(moved, key, colluding))
    assert 0.88 * CLAIM < found <= CLAIM


@pytest.mark.parametrize(("silos", "colluding", "others"), [(4, 1, 3), (5, 2, 4), (5, 2, 3)])
def test_more_colluding_silos_than_counted_on_see_what_is_stated_of_them(silos, colluding, others):
    code = Federated(silos, colluding)
    claim = CLAIM * np.sqrt((silos - colluding) / (silos - others))
    found = audited(lambda moved, key: code.total(moved, key, others))
    assert 0.88 * claim < found <= claim
    assert found > CLAIM


def test_one_vector_alone_tells_nothing():
    code = Federated()

    def view(moved, key):
        vector, _ = code.vector("silo-0", np.full(PAIRS, moved), key)
        return vector.view(np.int64).astype(float)

    assert audited(view) < 0.05


def test_a_strict_subset_tells_nothing():
    code = Federated()

    def view(moved, key):
        shift = np.full(PAIRS, moved)
        sent = [code.vector(name, shift * (name == "silo-0"), key) for name in code.names[:-1]]
        return unmasked([vector for vector, _ in sent]).astype(float)

    assert audited(view) < 0.05


# -- mutants ----------------------------------------------------------------------------------------------------------


def test_shares_as_if_nobody_colluded_are_caught():
    code = Federated(2, 1, share_of=2)
    assert audited(lambda moved, key: code.total(moved, key)) > 1.2 * CLAIM


def test_shares_for_a_larger_roster_are_caught():
    code = Federated(4, 1, share_of=6)
    assert audited(lambda moved, key: code.total(moved, key)) > 1.2 * CLAIM


def test_an_answer_that_is_noised_again_is_caught():
    """Also the mutant that counts by epoch: two epochs answer one question, and one is charged."""
    code = Federated()
    found = audited(lambda moved, key: code.total(moved, key) + code.total(moved, key + b"c", question=b"q"))
    assert found > 1.2 * CLAIM


def test_masks_of_a_key_that_all_know_are_caught():
    code = Federated(keys="constant")

    def view(moved, key):
        vector, _ = code.vector("silo-0", np.full(PAIRS, moved), key)
        label, _ = code.label()
        others = code.pairs("silo-0", b"session", key[:8])
        pads = masked(np.zeros(PAIRS, dtype=np.int64), "silo-0", others, label)
        return (vector - pads).view(np.int64).astype(float)

    assert audited(view) > 1.4 * CLAIM


def two_questions(code, moved, key):
    """A silo that was set back answers another question under the same number: the difference of its two answers."""
    one, _ = code.vector("silo-0", np.zeros(PAIRS, dtype=np.int64), key, question=b"q")
    two, _ = code.vector("silo-0", np.full(PAIRS, moved), key, question=b"r")
    return (two - one).view(np.int64).astype(float)


def test_a_label_without_the_question_is_caught():
    honest, broken = Federated(), Federated(bound=("session", "units"))
    assert audited(lambda moved, key: two_questions(honest, moved, key)) < 0.05
    assert audited(lambda moved, key: two_questions(broken, moved, key)) > 3 * CLAIM


def two_sessions(code, moved, key):
    """The pads of one epoch in another: the difference of the answers of one silo."""
    one, _ = code.vector("silo-0", np.zeros(PAIRS, dtype=np.int64), key, b"one", session=b"one")
    two, _ = code.vector("silo-0", np.full(PAIRS, moved), key + b"d", b"two", session=b"two")
    return (two - one).view(np.int64).astype(float)


def test_a_label_without_the_session_is_caught():
    honest, broken = Federated(), Federated(bound=("question", "units"))
    assert audited(lambda moved, key: two_sessions(honest, moved, key)) < 0.05
    assert audited(lambda moved, key: two_sessions(broken, moved, key)) > 1.1 * CLAIM


def two_units(code, moved, key):
    """The other silos are asked in larger units: their noise is a hundred times smaller, in counts."""
    shift = np.full(PAIRS, moved, dtype=np.int64)
    sent = [code.vector("silo-0", shift, key)[0]]
    sent += [code.vector(name, 0 * shift, key, unit=128 * UNIT)[0] for name in code.names[1:]]
    return unmasked(sent).astype(float)


def test_a_label_without_units_is_caught():
    honest, broken = Federated(), Federated(bound=("session", "question"))
    assert audited(lambda moved, key: two_units(honest, moved, key)) < 0.05
    assert audited(lambda moved, key: two_units(broken, moved, key)) > 1.4 * CLAIM


def test_noise_read_from_the_question_has_no_place_to_come_from():
    """A question says kind, places and coordinates; nothing in it speaks of noise, units or shares."""
    from dataclasses import fields

    from dpadmm.network.messages import Ask

    assert [field.name for field in fields(Ask)] == ["session", "number", "kind", "at", "coordinates"]
    assert replace(Federated(), silos=3).silos == 3
