"""Private training of networks: its plan, its result, and what it refuses."""

from __future__ import annotations

import copy
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("opacus", reason="Opacus is not installed")

from dpadmm import Ledger  # noqa: E402
from dpadmm.errors import (  # noqa: E402
    BudgetExceeded,
    FileProblem,
    InvalidData,
    InvalidParameter,
    PromiseBroken,
    UnsupportedProblem,
)
from dpadmm.nn import Grid, Ring, load_network, network_copies, training_plan  # noqa: E402
from dpadmm.privacy.budget import Budget  # noqa: E402
from dpadmm.privacy.calibration import verify_plan  # noqa: E402
from dpadmm.privacy.sampling import Everything, Poisson, TruncatedPoisson  # noqa: E402
from tests.unit.nn import networks  # noqa: E402
from tests.unit.nn.networks import trained  # noqa: E402

OPTIMIZERS = {
    "sgd": partial(torch.optim.SGD, lr=0.5, momentum=0.9),
    "adam": partial(torch.optim.Adam, lr=0.05),
    "adamw": partial(torch.optim.AdamW, lr=0.05),
}


def weights(found: Any) -> list[Any]:
    return list(found.model.state_dict().values())


def same(one: Any, other: Any) -> bool:
    return all(torch.equal(a, b) for a, b in zip(weights(one), weights(other), strict=True))


# -- the plan -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relation", "rate", "kind"),
    [("replace-one", 0.2, TruncatedPoisson), ("add-remove", 0.2, Poisson), ("replace-one", 1.0, Everything)],
)
def test_what_is_asked_is_what_was_planned(relation: str, rate: float, kind: Any) -> None:
    found = trained(relation=relation, rate=rate)
    query = found.plan.query("gradient")
    assert isinstance(query.sampler, kind)
    assert (query.count, query.clip_norm, query.denominator) == (5, 1.0, 200 * rate)
    assert found.plan == training_plan(200, epsilon=2.0, delta=1e-3, rate=rate, steps=5, relation=relation)
    assert found.privacy.plan_digest == found.plan.digest
    assert found.privacy.epsilon == 2.0
    assert 0.99 * 2.0 <= verify_plan(found.plan) <= 2.0


def test_twice_the_noise_is_needed_under_replace_one() -> None:
    settings: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "rate": 1.0, "steps": 10}
    one, other = (training_plan(5000, relation=relation, **settings) for relation in ("replace-one", "add-remove"))
    assert one.queries[0].noise_multiplier == pytest.approx(2 * other.queries[0].noise_multiplier, rel=0.01)


def test_the_number_of_rows_is_a_public_one_under_add_remove() -> None:
    by_number = [
        trained(examples=networks.rows(n), n_rows=250, relation="add-remove", random_state=0).plan for n in (200, 249)
    ]
    assert by_number[0] == by_number[1]
    assert by_number[0].query("gradient").denominator == 50


# -- the result ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_strength_zero_changes_no_bit(kind: str) -> None:
    plain = trained(optimizer=OPTIMIZERS[kind], random_state=3)
    for smoothing in (Ring(0.0), Ring(lambda step: 0.0)):
        assert same(plain, trained(optimizer=OPTIMIZERS[kind], random_state=3, smoothing=smoothing))
    assert not same(plain, trained(optimizer=OPTIMIZERS[kind], random_state=3, smoothing=Ring(1.0)))


@pytest.mark.parametrize(
    ("kind", "smoothing", "name"),
    [
        ("sgd", None, "dp-sgd"),
        ("sgd", Ring(1.0), "dp-lssgd"),
        ("adam", None, "dp-adam"),
        ("adam", Ring(1), "dp-lsadam"),
    ],
)
def test_the_statement_says_which_solver(kind: str, smoothing: Any, name: str) -> None:
    assert (
        f"The solver {name} touched the data only through"
        in trained(optimizer=OPTIMIZERS[kind], smoothing=smoothing).privacy.text
    )


def test_the_strength_changes_neither_noise_nor_batches() -> None:
    """The first noisy gradient is asked at the same weights, and is the same to the bit."""
    norms = {trained(smoothing=smoothing, random_state=1).history[0].gradient_norm for smoothing in (None, Ring(9.0))}
    assert len(norms) == 1


def test_the_model_that_was_passed_stays_as_it_is() -> None:
    model = networks.linear()
    before = copy.deepcopy(model.state_dict())
    found = trained(model=model)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not same(found, type("Given", (), {"model": model}))
    for weight in (*model.parameters(), *found.model.parameters()):
        assert weight.grad is None
        assert not hasattr(weight, "grad_sample")
    assert not hasattr(found.model, "autograd_grad_sample_hooks")


def test_what_a_network_keeps_of_a_batch_is_not_released() -> None:
    class Remembering(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(6, 3)
            self.last: Any = None

        def forward(self, x: Any) -> Any:
            self.last = x
            return self.layer(x)

    assert trained(model=Remembering()).model.last is None


def test_the_history_has_no_losses() -> None:
    found = trained(schedule=partial(torch.optim.lr_scheduler.StepLR, step_size=1, gamma=0.5))
    assert [each.step for each in found.history] == [1, 2, 3, 4, 5]
    assert [each.learning_rate for each in found.history] == [0.5 / 2**step for step in range(5)]
    assert found.history[0]._fields == ("step", "learning_rate", "gradient_norm")


def test_an_average_is_released_unless_the_last_weights_are_asked_for() -> None:
    averaged, last = trained(random_state=0), trained(random_state=0, average=None)
    assert not same(averaged, last)
    assert averaged.history == last.history


def test_signal_is_learned() -> None:
    inputs, targets = networks.rows(4000)
    found = trained(examples=(inputs, targets), steps=40, delta=1e-4)
    assert float((found.model(inputs).argmax(dim=1) == targets).double().mean()) > 0.9


def test_convolutional_networks_are_trained_with_kernels_smoothed() -> None:
    found = trained(model=networks.convolutional(), examples=networks.images(200), smoothing=Grid(1.0))
    assert "dp-lssgd" in found.privacy.text


@pytest.mark.parametrize("kind", ["pair", "arrays", "tensors", "subset", "items"])
def test_rows_may_come_in_several_ways(kind: str) -> None:
    inputs, targets = networks.rows()
    table = torch.utils.data.TensorDataset(inputs, targets)
    ways = {
        "pair": (inputs, targets),
        "arrays": (inputs.double().numpy(), targets.numpy()),
        "tensors": table,
        "subset": torch.utils.data.Subset(table, range(200)),
        "items": [(inputs[row].numpy(), int(targets[row])) for row in range(200)],
    }
    assert same(trained(random_state=0), trained(random_state=0, examples=ways[kind]))


# -- saving -------------------------------------------------------------------------------------------------------


def test_a_saved_network_is_read_again(tmp_path: Path) -> None:
    found = trained()
    found.save(tmp_path / "network")
    read = load_network(tmp_path / "network", networks.linear())
    assert same(found, read)
    assert (read.plan, read.privacy, read.history) == (found.plan, found.privacy, found.history)
    with pytest.raises(FileProblem, match="not empty"):
        found.save(tmp_path / "network")
    found.save(tmp_path / "network", force=True)


def test_saved_networks_that_were_changed_or_fit_nothing_are_refused(tmp_path: Path) -> None:
    trained().save(tmp_path / "network")
    with pytest.raises(FileProblem, match="another network"):
        load_network(tmp_path / "network", networks.linear(classes=4))
    with pytest.raises(FileProblem, match="holds no network"):
        load_network(tmp_path, networks.linear())
    words = tmp_path / "network" / "network.json"
    said = json.loads(words.read_text())
    said["privacy"]["epsilon"] = 0.1
    words.write_text(json.dumps(said))
    with pytest.raises(FileProblem, match="changed after it was written"):
        load_network(tmp_path / "network", networks.linear())
    trained().save(tmp_path / "other")
    (tmp_path / "other" / "weights.npz").write_bytes(b"no numbers")
    with pytest.raises(FileProblem, match="do not belong together"):
        load_network(tmp_path / "other", networks.linear())


# -- refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"optimizer": torch.optim.SGD(networks.linear().parameters(), lr=1.0)}, "a copy of the model is trained"),
        ({"optimizer": lambda weights: torch.optim.SGD(networks.linear().parameters(), lr=1.0)}, "other weights"),
        ({"optimizer": lambda weights: None}, "plain optimiser"),
        ({"average": "tail"}, "average"),
        ({"rate": 0.0}, "rate"),
        ({"rate": 1.5}, "rate"),
        ({"steps": 0}, "steps"),
        ({"clip": -1.0}, "clip"),
        ({"at_once": 0}, "at_once"),
        ({"augment": 3}, "augment=3 without a view"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"delta": 0.1}, "delta"),
        ({"n_rows": 300}, "replace-one"),
        ({"random_state": "seed"}, "random_state"),
        ({"smoothing": 1.0}, "smoothing"),
        ({"dataset": "census"}, "ledger"),
    ],
)
def test_parameters_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        trained(**changes)


def test_a_negative_strength_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="strength"):
        trained(smoothing=Ring(-1.0))


@pytest.mark.parametrize("kind", [torch.optim.LBFGS, partial(torch.optim.SparseAdam, lr=1.0)])
def test_optimisers_that_need_more_than_a_gradient_are_refused(kind: Any) -> None:
    with pytest.raises((UnsupportedProblem, RuntimeError)):
        trained(optimizer=kind)


def test_a_scheduler_that_looks_at_losses_is_refused() -> None:
    with pytest.raises(UnsupportedProblem, match="metrics"):
        trained(schedule=torch.optim.lr_scheduler.ReduceLROnPlateau)


def test_loaders_and_streams_are_refused() -> None:
    class Stream(torch.utils.data.IterableDataset):  # type: ignore[misc]
        def __iter__(self) -> Any:
            return iter([])

    table = torch.utils.data.TensorDataset(*networks.rows())
    for given in (torch.utils.data.DataLoader(table, batch_size=20, shuffle=True), Stream()):
        with pytest.raises(InvalidParameter, match="who is in a batch"):
            trained(examples=given)
    for given in (None, "rows", 5, {"a": 1}):
        with pytest.raises(InvalidParameter, match="examples"):
            trained(examples=given)


def test_rows_that_do_not_fit_together_are_refused() -> None:
    inputs, targets = networks.rows()
    for nothing in ([], (inputs[:0], targets[:0])):
        with pytest.raises(InvalidData, match="without rows"):
            trained(examples=nothing)
    with pytest.raises(InvalidData, match="equally many"):
        trained(examples=(inputs, targets[:-1]))
    with pytest.raises(InvalidData, match="cannot be put together"):
        trained(examples=[(inputs[row, : 3 + row % 2], 0) for row in range(200)])
    with pytest.raises(InvalidData, match="no pairs"):
        trained(examples=[({"a": 1.0}, 0) for _ in range(200)])


def test_a_dataset_with_random_rows_is_refused() -> None:
    class Random(torch.utils.data.Dataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return 200

        def __getitem__(self, row: int) -> Any:
            return torch.randn(6), 0

    with pytest.raises(InvalidParameter, match="other numbers when a row is read again"):
        trained(examples=Random())


def test_a_dataset_whose_rows_depend_on_their_batch_is_refused() -> None:
    inputs, targets = networks.rows()

    class Centring(torch.utils.data.Dataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return 200

        def __getitems__(self, numbers: list[int]) -> Any:
            rows = inputs[numbers] - inputs[numbers].mean(dim=0)
            return list(zip(rows, targets[numbers], strict=True))

        def __getitem__(self, number: int) -> Any:
            raise AssertionError

    with pytest.raises(InvalidParameter, match="whatever rows are read with it"):
        trained(examples=Centring())


def test_a_dataset_that_pads_to_the_longest_row_of_a_batch_is_refused() -> None:
    inputs, targets = networks.rows()

    class Padding(torch.utils.data.Dataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return 200

        def __getitems__(self, numbers: list[int]) -> Any:
            longer = torch.cat([inputs, inputs], dim=1) if 100 in numbers else inputs
            return [(longer[number], targets[number]) for number in numbers]

        def __getitem__(self, number: int) -> Any:
            raise AssertionError

    model = torch.nn.Sequential(torch.nn.AdaptiveAvgPool1d(6), torch.nn.Linear(6, 3))
    with pytest.raises(InvalidData):
        trained(model=model, examples=Padding(), rate=1.0)


def test_a_table_that_is_written_to_or_grows_is_refused() -> None:
    inputs, targets = networks.rows()
    kept: list[Any] = [(inputs[row], int(targets[row])) for row in range(200)]

    def writing(outputs: Any, classes: Any) -> Any:
        if len(outputs) > 4:
            inputs[0] += 1.0
        return networks.CROSS_ENTROPY(outputs, classes)

    def growing(outputs: Any, classes: Any) -> Any:
        if len(outputs) > 4:
            kept.append(kept[0])
        return networks.CROSS_ENTROPY(outputs, classes)

    for loss, given in ((writing, (inputs, targets)), (growing, kept)):
        with pytest.raises(PromiseBroken, match="changed while"):
            trained(examples=given, loss=loss)


def test_far_more_rows_than_declared_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="far more rows"):
        trained(n_rows=40, relation="add-remove")


def test_without_opacus_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_copies, "find_spec", lambda name: None if name == "opacus" else sys)
    with pytest.raises(UnsupportedProblem, match=r"pip install 'dpadmm\[nn\]'"):
        trained()


# -- the ledger ---------------------------------------------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger.create(tmp_path / "ledger.db")
    made.set_limit("census", Budget(2.5, 1e-3), owner="Ada")
    return made


def test_a_training_is_charged_and_committed(ledger: Ledger) -> None:
    found = trained(ledger=ledger, dataset="census")
    (kept,) = ledger.account("census").fits
    assert kept.plan.digest == found.plan.digest
    assert kept.committed is not None
    with pytest.raises(BudgetExceeded):
        trained(ledger=ledger, dataset="census")


def test_what_cannot_work_costs_nothing(ledger: Ledger) -> None:
    with pytest.raises(UnsupportedProblem):
        trained(ledger=ledger, dataset="census", loss=torch.nn.CrossEntropyLoss())
    assert ledger.spent("census") == (0.0, 0.0)


def too_much_for_a_device() -> None:
    raise torch.OutOfMemoryError("CUDA out of memory: row 7")


def too_much_for_python() -> None:
    raise MemoryError("row 7")


@pytest.mark.parametrize("ask", [too_much_for_a_device, too_much_for_python, lambda: torch.empty(2**60)])
def test_without_memory_the_message_says_so_and_the_charge_stays(ask: Any, ledger: Ledger) -> None:
    def hungry(outputs: Any, targets: Any) -> Any:
        if len(outputs) > 4:
            ask()
        return networks.CROSS_ENTROPY(outputs, targets)

    with pytest.raises(UnsupportedProblem, match="smaller at_once") as found:
        trained(ledger=ledger, dataset="census", loss=hungry)
    assert "row 7" not in str(found.value)
    assert "the reserved budget counts as spent" in " ".join(found.value.__notes__)
    assert ledger.spent("census")[0] > 1.5


def test_nothing_of_the_rows_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    trained(verbose=False)
    assert capfd.readouterr().out == ""
    with np.errstate(all="raise"):
        trained()
