"""A training that is killed goes on: nothing is asked twice, no noise is drawn twice, and the law is the same."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("opacus", reason="Opacus is not installed")

from dpadmm import Ledger  # noqa: E402
from dpadmm.errors import FileProblem, PromiseBroken  # noqa: E402
from dpadmm.nn.network_rows import NetworkRows  # noqa: E402
from dpadmm.privacy.budget import Budget  # noqa: E402
from dpadmm.randomness import NoiseStream  # noqa: E402
from tests.unit.nn import networks  # noqa: E402
from tests.unit.nn.networks import trained  # noqa: E402

STEPS = 6


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The points at which gradients were asked for."""
    points: list[Any] = []
    ask = NetworkRows.ask

    def listening(self: NetworkRows, question: Any, at: Any, batch: Any) -> Any:
        points.append(at[0].copy())
        return ask(self, question, at, batch)

    monkeypatch.setattr(NetworkRows, "ask", listening)
    return points


def stopping(after: int, asked: list[Any]) -> Any:
    """A loss that fails in the question after so many."""

    def loss(outputs: Any, targets: Any) -> Any:
        if len(asked) > after:
            raise KeyboardInterrupt
        return networks.CROSS_ENTROPY(outputs, targets)

    return loss


def interrupted(place: Path, asked: list[Any], after: int, **changes: Any) -> None:
    before = len(asked)
    with pytest.raises(KeyboardInterrupt) as found:
        trained(resume=place, steps=STEPS, loss=stopping(before + after, asked), **changes)
    assert "goes on after the last step" in " ".join(found.value.__notes__)


def weights(found: Any) -> Any:
    return torch.cat([value.flatten() for value in found.model.state_dict().values()])


@pytest.fixture
def noise_by_number(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Noise that depends on how often noise was drawn, over all processes."""
    drawn: list[int] = []

    def normals(self: NoiseStream, shape: tuple[int, ...]) -> Any:
        drawn.append(len(drawn))
        return np.random.default_rng(len(drawn)).standard_normal(shape)

    monkeypatch.setattr(NoiseStream, "standard_normal", normals)
    return drawn


@pytest.mark.parametrize("after", range(STEPS))
@pytest.mark.parametrize("optimizer", [networks.SGD, torch.optim.Adam])
def test_with_equal_noise_and_batches_a_resumed_training_ends_at_the_same_bits(
    after: int, optimizer: Any, tmp_path: Path, asked: list[Any], noise_by_number: list[int]
) -> None:
    settings: dict[str, Any] = {"rate": 1.0, "optimizer": optimizer}
    whole = trained(steps=STEPS, **settings)
    noise_by_number.clear()
    interrupted(tmp_path / "record", asked, after, **settings)
    resumed = trained(resume=tmp_path / "record", steps=STEPS, **settings)
    assert torch.equal(weights(whole), weights(resumed))
    assert whole.history == resumed.history
    assert len(noise_by_number) == STEPS


def test_views_go_on_with_those_of_the_next_step(tmp_path: Path, asked: list[Any], noise_by_number: list[int]) -> None:
    def shifted(inputs: Any, generator: Any) -> Any:
        return inputs.roll(int(torch.randint(6, (), generator=generator)), dims=-1)

    settings: dict[str, Any] = {"rate": 1.0, "augment": 2, "view": shifted}
    whole = trained(steps=STEPS, **settings)
    noise_by_number.clear()
    interrupted(tmp_path / "record", asked, 3, **settings)
    resumed = trained(resume=tmp_path / "record", steps=STEPS, **settings)
    assert torch.equal(weights(whole), weights(resumed))
    noise_by_number.clear()
    assert not torch.equal(weights(whole), weights(trained(steps=STEPS, **{**settings, "augment": 1})))


def test_nothing_is_asked_twice_over_many_interruptions(tmp_path: Path, asked: list[Any]) -> None:
    for _ in range(STEPS - 1):
        interrupted(tmp_path / "record", asked, 1)
    found = trained(resume=tmp_path / "record", steps=STEPS)
    # Each interruption falls into a question that is then asked anew, at the same weights and of another batch.
    answered = {point.tobytes() for point in asked}
    assert len(answered) == STEPS
    assert len(found.history) == STEPS
    assert found.plan.steps == STEPS


@pytest.mark.parametrize("seed", [None, 7])
def test_noise_after_an_interruption_is_fresh(seed: int | None, tmp_path: Path, asked: list[Any]) -> None:
    """Two copies of one record go on differently, and otherwise than the training did from its beginning."""
    interrupted(tmp_path / "record", asked, 3, random_state=seed)
    shutil.copy(tmp_path / "record", tmp_path / "copy")
    first = trained(resume=tmp_path / "record", steps=STEPS, random_state=seed)
    second = trained(resume=tmp_path / "copy", steps=STEPS, random_state=seed)
    whole = trained(steps=STEPS, random_state=seed)
    assert first.history[:3] == second.history[:3]
    assert (first.history[3:] == second.history[3:]) is (seed is not None)
    assert first.history[3].gradient_norm != whole.history[3].gradient_norm
    assert first.history[3].gradient_norm != first.history[0].gradient_norm


def test_the_weights_it_began_with_are_kept(tmp_path: Path, asked: list[Any]) -> None:
    """A network that is built anew after a crash may begin with other random weights."""
    interrupted(tmp_path / "record", asked, 2)
    start = asked[0]
    other = networks.linear()
    torch.nn.init.zeros_(other.weight)
    trained(resume=tmp_path / "record", steps=STEPS, model=other)
    assert not np.array_equal(start, asked[-1])
    assert all(np.linalg.norm(point[:18]) > 0.5 for point in asked)


def test_a_record_of_another_plan_is_refused(tmp_path: Path, asked: list[Any]) -> None:
    interrupted(tmp_path / "record", asked, 2)
    for changes in ({"epsilon": 1.0}, {"rate": 0.1}, {"clip": 2.0}, {"examples": networks.rows(199)}):
        with pytest.raises(PromiseBroken, match="another plan"):
            trained(resume=tmp_path / "record", **{"steps": STEPS, **changes})
    with pytest.raises(PromiseBroken, match="another plan"):
        trained(resume=tmp_path / "record", steps=STEPS + 1)


def test_a_training_that_ended_is_not_continued(tmp_path: Path) -> None:
    trained(resume=tmp_path / "record")
    with pytest.raises(PromiseBroken, match="has ended"):
        trained(resume=tmp_path / "record")


def test_another_network_is_refused(tmp_path: Path, asked: list[Any]) -> None:
    interrupted(tmp_path / "record", asked, 2)
    with pytest.raises(FileProblem, match="another network"):
        trained(resume=tmp_path / "record", steps=STEPS, model=networks.linear(classes=4))


@pytest.mark.parametrize("content", [b"no database", b""])
def test_other_files_are_refused_and_empty_ones_filled(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "record").write_bytes(content)
    if content:
        with pytest.raises(FileProblem, match="no record of a training"):
            trained(resume=tmp_path / "record")
    else:
        trained(resume=tmp_path / "record")
    with pytest.raises(FileProblem, match="does not exist"):
        trained(resume=tmp_path / "nowhere" / "record")


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM answers WHERE step = 0",
        "DELETE FROM facts WHERE name = 'gate'",
        "UPDATE facts SET value = '{}' WHERE name = 'gate'",
        "UPDATE facts SET value = 9 WHERE name = 'version'",
        "UPDATE facts SET value = 'none' WHERE name = 'weights'",
        "DELETE FROM answers",
    ],
)
def test_damaged_records_are_refused(damage: str, tmp_path: Path, asked: list[Any]) -> None:
    interrupted(tmp_path / "record", asked, 2)
    connection = sqlite3.connect(tmp_path / "record")
    with connection:
        connection.execute(damage)
    connection.close()
    with pytest.raises((FileProblem, PromiseBroken)):
        trained(resume=tmp_path / "record", steps=STEPS)


def test_two_processes_do_not_train_with_one_record(tmp_path: Path) -> None:
    def loss(outputs: Any, targets: Any) -> Any:
        if len(outputs) > 4:
            with pytest.raises(FileProblem, match="another process"):
                trained(resume=tmp_path / "record", steps=STEPS)
        return networks.CROSS_ENTROPY(outputs, targets)

    trained(resume=tmp_path / "record", steps=STEPS, loss=loss)


def test_a_ledger_is_charged_once(tmp_path: Path, asked: list[Any]) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.set_limit("census", Budget(2.5, 1e-3), owner="Ada")
    paid: dict[str, Any] = {"ledger": ledger, "dataset": "census"}
    interrupted(tmp_path / "record", asked, 2, **paid)
    charged = ledger.spent("census")
    with pytest.raises(PromiseBroken, match="without this ledger"):
        trained(resume=tmp_path / "record", steps=STEPS)
    shutil.copy(tmp_path / "record", tmp_path / "copy")
    trained(resume=tmp_path / "record", steps=STEPS, **paid)
    assert ledger.spent("census") == charged
    assert ledger.account("census").fits[0].committed is not None
    with pytest.raises(PromiseBroken, match="committed before"):
        trained(resume=tmp_path / "copy", steps=STEPS, **paid)


KILLED = """
import os, signal, sys
import torch
from tests.unit.nn import networks

class Rows(torch.utils.data.Dataset):
    table, fetched = networks.rows(), 0

    def __len__(self):
        return 200

    def __getitems__(self, numbers):
        Rows.fetched += 1
        if Rows.fetched == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return [(self.table[0][number], self.table[1][number]) for number in numbers]

    def __getitem__(self, number):
        raise AssertionError

found = networks.trained(examples=Rows(), resume=sys.argv[1], steps=6)
print(len(found.history))
"""


@pytest.mark.slow
def test_a_killed_process_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path / "record")]
    # Nine looks at the first rows, and then one fetch a step.
    killed = subprocess.run([*command, "13"], capture_output=True, text=True)
    assert killed.returncode == -9
    connection = sqlite3.connect(tmp_path / "record")
    assert connection.execute("SELECT count(*) FROM answers").fetchone() == (3,)
    connection.close()
    done = subprocess.run([*command, "0"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "6"


def test_a_seeded_training_does_not_go_on_as_a_private_one(tmp_path: Path, asked: list[Any]) -> None:
    """Noise that anybody who knows the seed can repeat hides nothing, whatever is drawn after it."""
    interrupted(tmp_path / "record", asked, 3, random_state=7)
    with pytest.raises(PromiseBroken, match="begun with a seed"):
        trained(resume=tmp_path / "record", steps=STEPS)
    assert trained(resume=tmp_path / "record", steps=STEPS, random_state=7).privacy.seeded
