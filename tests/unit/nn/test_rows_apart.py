"""Networks, losses and views that mix rows are refused before anything is charged."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("opacus", reason="Opacus is not installed")

from dpadmm.errors import InvalidParameter, UnsupportedProblem  # noqa: E402
from tests.unit.nn import networks  # noqa: E402

nn = torch.nn


class Centred(nn.Module):
    """Subtracts the mean of the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, x: Any) -> Any:
        return self.layer(x - x.mean(dim=0))


class Loose(nn.Module):
    """Uses a weight outside its layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, x: Any) -> Any:
        return x @ self.layer.weight.T


class Counting(nn.Module):
    """Keeps a number of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.counter = nn.Linear(6, 3), Counter()

    def forward(self, x: Any) -> Any:
        return self.counter(self.layer(x))


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        self.seen += len(x)
        return x


class Halved(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, x: Any) -> Any:
        return self.layer(x)[::2]


def with_layer(layer: Any) -> Any:
    return nn.Sequential(nn.Linear(6, 4), layer, nn.Linear(4, 3))


MODELS = {
    "BatchNorm1d": lambda: with_layer(nn.BatchNorm1d(4)),
    "other rows": lambda: Centred(),
    "called again": lambda: with_layer(nn.Dropout(0.5)),
    "its own state": lambda: Counting(),
    "outside their layers": lambda: Loose(),
    "one entry for each row": lambda: Halved(),
    "float16": lambda: networks.linear().half(),
    "without weights to train": lambda: nn.Tanh(),
    "batch": lambda: with_layer(nn.BatchNorm1d(4, affine=False)),
}


@pytest.mark.parametrize("said", MODELS)
def test_models_are_refused(said: str) -> None:
    with pytest.raises(UnsupportedProblem, match=said):
        networks.trained(model=MODELS[said]())


@pytest.mark.parametrize("layer", [nn.LSTM(4, 4), nn.MultiheadAttention(4, 1)])
def test_layers_that_opacus_refuses_are_named(layer: Any) -> None:
    class Around(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = layer

    with pytest.raises(UnsupportedProblem, match=type(layer).__name__):
        networks.trained(model=Around())


def test_a_wrapped_model_and_no_model_are_refused() -> None:
    from opacus import GradSampleModule

    for model in (GradSampleModule(networks.linear()), lambda x: x, None):
        with pytest.raises(InvalidParameter, match="wrapped by Opacus"):
            networks.trained(model=model)


LOSSES = {
    "one number for each row": nn.CrossEntropyLoss(),
    "other rows": lambda outputs, targets: networks.CROSS_ENTROPY(outputs, targets) * outputs.detach().abs().mean(),
    r"shape \(rows,\)": lambda outputs, targets: networks.CROSS_ENTROPY(outputs, targets)[:, None],
}


@pytest.mark.parametrize("said", LOSSES)
def test_losses_are_refused(said: str) -> None:
    with pytest.raises(UnsupportedProblem, match=said):
        networks.trained(loss=LOSSES[said])


def test_a_loss_with_terms_of_the_weights_is_refused() -> None:
    """The weights of the copy are reached by a hook that runs whenever the model is called."""
    model, seen = networks.linear(), []
    model.register_forward_hook(lambda module, inputs, outputs: seen.append(module))

    def loss(outputs: Any, targets: Any) -> Any:
        return networks.CROSS_ENTROPY(outputs, targets) + (seen[-1].weight ** 2).sum()

    with pytest.raises(UnsupportedProblem, match="terms beside those of the rows"):
        networks.trained(model=model, loss=loss)


VIEWS = {
    "depends on the other rows": lambda inputs, generator: inputs - inputs.mean(dim=0),
    "for each row": lambda inputs, generator: inputs + torch.randn(inputs.shape, generator=generator),
    "another number of rows": lambda inputs, generator: inputs[:-1],
}


@pytest.mark.parametrize("said", VIEWS)
def test_views_are_refused(said: str) -> None:
    with pytest.raises(UnsupportedProblem, match=said):
        networks.trained(augment=2, view=VIEWS[said])


def test_a_view_that_all_rows_share_is_taken() -> None:
    def shifted(inputs: Any, generator: Any) -> Any:
        return inputs.roll(int(torch.randint(-1, 2, (), generator=generator)), dims=-1)

    assert len(networks.trained(augment=3, view=shifted).history) == 5


def test_an_error_on_made_up_rows_is_shown_as_it_is() -> None:
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        networks.trained(model=networks.linear(features=5))


class Hooked(nn.Module):
    """Divides the gradient of each row by the length of those of all rows."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 4), nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        hidden = self.first(x)
        if hidden.requires_grad:
            hidden.register_hook(lambda gradient: gradient / gradient.norm())
        return self.second(hidden)


class Remembering(nn.Module):
    """Keeps the largest entry that it ever saw in an attribute of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.largest = nn.Linear(6, 3), 0.0

    def forward(self, x: Any) -> Any:
        self.largest = max(self.largest, float(x.detach().abs().max()))
        return self.layer(x / self.largest)


class RememberingLoss(nn.Module):
    """Keeps the largest loss that it ever saw."""

    def __init__(self) -> None:
        super().__init__()
        self.largest = 0.0

    def forward(self, outputs: Any, targets: Any) -> Any:
        each = networks.CROSS_ENTROPY(outputs, targets)
        self.largest = max(self.largest, float(each.detach().max()))
        return each / self.largest


def weighted_by_classes(outputs: Any, targets: Any) -> Any:
    """Rows of classes that are frequent in the batch count less."""
    counts = torch.bincount(targets, minlength=3).clamp(min=1)
    return networks.CROSS_ENTROPY(outputs, targets) / counts[targets] * len(targets)


class TokensLessTheLargest(nn.Module):
    """Tokens are looked up relative to the largest of the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.layer = nn.Embedding(4, 5), nn.Linear(5, 3)

    def forward(self, tokens: Any) -> Any:
        return self.layer(self.table(tokens.max() - tokens).mean(dim=1))


@pytest.mark.parametrize("model", [Hooked, Remembering])
def test_gradients_that_depend_on_other_rows_are_refused(model: Any) -> None:
    with pytest.raises(UnsupportedProblem, match=r"depends? on the other rows|its own state"):
        networks.trained(model=model())


@pytest.mark.parametrize("loss", [RememberingLoss(), weighted_by_classes])
def test_losses_that_remember_or_weigh_by_the_batch_are_refused(loss: Any) -> None:
    with pytest.raises(UnsupportedProblem, match="other rows"):
        networks.trained(loss=loss)


def test_tokens_are_tried_with_different_numbers() -> None:
    tokens = torch.randint(2, (200, 7), generator=torch.Generator().manual_seed(1))
    with pytest.raises(UnsupportedProblem, match="other rows"):
        networks.trained(model=TokensLessTheLargest(), examples=(tokens, tokens[:, 0]))
