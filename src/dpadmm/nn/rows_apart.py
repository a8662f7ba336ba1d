"""Whether a network computes each row by itself: tried on made-up rows, before anything is charged."""

from __future__ import annotations

import copy
from typing import Any

from dpadmm.errors import UnsupportedProblem
from dpadmm.nn.augmented_views import Views
from dpadmm.nn.examples import LabelledRows
from dpadmm.nn.row_gradients import Loss, RowGradients, quiet_hooks

Tensor = Any

MADE_UP_ROWS = 4
CLOSE = 1e-3
"""Relative; products of a batch and of a row alone are rounded differently."""


def require_layers(model: Any) -> None:
    """Refuse layers for which Opacus has no gradients of single rows, by the names of their types."""
    from opacus import GradSampleModule
    from opacus.validators import ModuleValidator

    model.train()
    refused = [type(layer).__name__ for layer in model.modules() if _refused(layer, ModuleValidator.VALIDATORS)]
    if refused:
        raise UnsupportedProblem(
            f"a model with {', '.join(dict.fromkeys(refused))}",
            "layers that compute each row by itself",
            "use GroupNorm or LayerNorm in place of batch norm, and the layers of opacus.layers for recurrent ones "
            "and attention",
        )
    if GradSampleModule.validate(model, strict=False):
        raise UnsupportedProblem(
            "a model with a layer that keeps buffers beside its weights",
            "layers whose only state are weights: buffers could keep what rows left in them",
            "put the buffer into a layer without weights, or compute it anew",
        )


def require_rows_apart(model: Any, loss: Loss, views: Views, made_up: LabelledRows) -> None:
    """Refuse a model, a loss or a view that mixes rows, draws random numbers, or has gradients of its own.

    What fails here fails on made-up rows, so it may be shown as it is.
    """
    import torch

    pristine = copy.deepcopy((model, loss))
    state = {name: value.clone() for name, value in model.state_dict().items()}
    with torch.random.fork_rng():
        gradients = RowGradients(model, loss, Views(), MADE_UP_ROWS)
        _require_views(views, made_up)
        with torch.no_grad():
            _require_outputs(gradients, made_up)
            _require_losses(gradients, made_up)
        _require_gradients(gradients, made_up)
        _require_gradients_alone(gradients.of(made_up), pristine, made_up)
    if not all(torch.equal(value, state[name]) for name, value in model.state_dict().items()):
        raise UnsupportedProblem(
            "a model that changes its own state when it is called",
            "one whose only state are weights",
            "remove layers that count or average over batches",
        )


def _refused(layer: Any, validators: Any) -> bool:
    return type(layer) in validators and bool(validators[type(layer)](layer))


def _require_views(views: Views, made_up: LabelledRows) -> None:
    together = views.of(made_up, 0).inputs
    if len(together) != views.count * MADE_UP_ROWS:
        raise UnsupportedProblem(
            "a view with another number of rows than the batch", "as many", "let view= return one input for each input"
        )
    alone = [views.of(_row(made_up, row), 0).inputs for row in range(MADE_UP_ROWS)]
    for row, found in enumerate(alone):
        if not _close(found, together[row::MADE_UP_ROWS]):
            raise UnsupportedProblem(
                "a view that depends on the other rows of the batch, or draws random numbers for each row",
                "a function of the row and of numbers that are the same for all rows",
                "draw from the generator that view= is given, in an amount that does not depend on the batch",
            )


def _require_outputs(gradients: RowGradients, made_up: LabelledRows) -> None:
    import torch

    together = gradients.outputs(made_up.inputs)
    if not isinstance(together, torch.Tensor) or len(together) != MADE_UP_ROWS:
        raise UnsupportedProblem(
            "a model whose output is no tensor with one entry for each row", "such a tensor", "return it from forward"
        )
    if not _close(gradients.outputs(made_up.inputs), together):
        raise UnsupportedProblem(
            "a model that gives another output when it is called again",
            "the same output for the same row",
            "remove dropout and other random layers: the noise of training takes their place",
        )
    alone = [gradients.outputs(_row(made_up, row).inputs) for row in range(MADE_UP_ROWS)]
    if not all(_close(found[0], together[row]) for row, found in enumerate(alone)):
        raise UnsupportedProblem(
            "a model whose output for a row depends on the other rows of the batch",
            "a model that computes each row by itself",
            "remove what averages or compares over the batch",
        )


def _require_losses(gradients: RowGradients, made_up: LabelledRows) -> None:
    import torch

    together = gradients.losses(made_up)
    if not isinstance(together, torch.Tensor) or together.shape != (MADE_UP_ROWS,):
        raise UnsupportedProblem(
            "a loss that is not one number for each row",
            f"a tensor of shape (rows,), here ({MADE_UP_ROWS},)",
            "use reduction='none', as in torch.nn.CrossEntropyLoss(reduction='none')",
        )
    alone = [gradients.losses(_row(made_up, row)) for row in range(MADE_UP_ROWS)]
    if not all(_close(found[0], together[row]) for row, found in enumerate(alone)):
        raise UnsupportedProblem(
            "a loss of a row that depends on the other rows of the batch",
            "a loss of each row by itself",
            "compare a row with its own target only",
        )


def _require_gradients(gradients: RowGradients, made_up: LabelledRows) -> None:
    """The gradients of single rows must add up to the gradient of the whole loss."""
    import torch

    with quiet_hooks():
        whole = torch.autograd.grad(gradients.losses(made_up).sum(), gradients.weights, allow_unused=True)
    for weight in gradients.weights:
        weight.grad_sample = None
    for found, expected in zip(gradients.of(made_up), whole, strict=True):
        if not _close(found.sum(dim=0), torch.zeros_like(found[0]) if expected is None else expected.flatten()):
            raise UnsupportedProblem(
                "a loss with terms beside those of the rows, or weights that are used outside their layers",
                "a loss of outputs and targets alone: whatever else is in it would be added without clip and noise",
                "give penalties to the optimiser, as weight_decay",
            )


def _require_gradients_alone(together: list[Tensor], pristine: tuple[Any, Loss], made_up: LabelledRows) -> None:
    """A row by itself, in a network and a loss that met no other, has the gradient that it has among the others."""
    for row in range(MADE_UP_ROWS):
        alone = RowGradients(*copy.deepcopy(pristine), Views(), MADE_UP_ROWS).of(_row(made_up, row))
        if not all(_close(one[0], each[row]) for one, each in zip(alone, together, strict=True)):
            raise UnsupportedProblem(
                "a model or a loss in which the gradient of a row depends on the other rows, or on rows before it",
                "gradients of each row by itself",
                "remove hooks and gradients of your own that look at the batch, numbers that a layer or loss keeps "
                "between calls, and layers whose first axis is not the rows",
            )


def _row(pair: LabelledRows, row: int) -> LabelledRows:
    return LabelledRows(*(part[row : row + 1] for part in pair))


def _close(found: Tensor, expected: Tensor) -> bool:
    import torch

    if found.shape != expected.shape:
        return False
    size = max(float(expected.detach().abs().max()), 1e-3) if expected.numel() else 1.0
    return bool(torch.allclose(found, expected, rtol=CLOSE, atol=CLOSE * size, equal_nan=True))
