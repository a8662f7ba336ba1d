"""Private rows of a PyTorch dataset, fetched by their numbers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import DpadmmError, InvalidData, InvalidParameter, PromiseBroken, UnsupportedProblem, shown

Tensor = Any

LOOKED_AT = 8
"""Rows that are read twice before training, to see whether a dataset gives the same row each time."""


class LabelledRows(NamedTuple):
    """Inputs and targets of some rows; the first axis counts rows."""

    inputs: Tensor
    targets: Tensor

    def equals(self, other: LabelledRows) -> bool:
        """The same numbers; a NaN equals itself."""
        return all(
            one.shape == two.shape and bool(((one == two) | ((one != one) & (two != two))).all())
            for one, two in zip(self, other, strict=True)
        )

    def placed(self, like: Tensor) -> LabelledRows:
        """On the device of a weight; numbers with a fraction in its precision."""
        return LabelledRows(*(part.to(like.device, like.dtype if part.is_floating_point() else None) for part in self))


class Examples(Protocol):
    """Holds private rows; only what sums their gradients may fetch any."""

    n_rows: int

    def fetch(self, rows: NDArray[np.intp]) -> LabelledRows: ...

    def require_unchanged(self) -> None:
        """Refuse a dataset that became another one since training began."""
        ...


class TensorExamples:
    """Rows of two tensors that are in memory already."""

    def __init__(self, inputs: Tensor, targets: Tensor) -> None:
        if not inputs.ndim or not targets.ndim or len(inputs) != len(targets):
            raise InvalidData(
                "inputs and targets that are not equally many",
                "one target for each input",
                "make the first axes of both agree",
            )
        self._pair, self.n_rows = LabelledRows(inputs, targets), len(inputs)
        self._versions = self._changes()

    def fetch(self, rows: NDArray[np.intp]) -> LabelledRows:
        import torch

        return LabelledRows(*(part[torch.from_numpy(rows).to(part.device)] for part in self._pair))

    def require_unchanged(self) -> None:
        if self._changes() != self._versions:
            raise _changed()

    def _changes(self) -> list[int]:
        """How often each tensor was written to, as PyTorch counts it."""
        return [part._version for part in self._pair]  # noqa: SLF001


class FetchedExamples:
    """Rows of a dataset that makes them when asked."""

    def __init__(self, dataset: Any) -> None:
        self._dataset, self.n_rows = dataset, _counted(dataset)
        self._shapes: list[Any] | None = None

    def fetch(self, rows: NDArray[np.intp]) -> LabelledRows:
        from torch.utils.data import default_collate

        numbers = rows.tolist()
        many = getattr(self._dataset, "__getitems__", None)
        drawn = many(numbers) if many else [self._dataset[number] for number in numbers]
        inputs, targets = default_collate(drawn)
        shapes = [getattr(part, "shape", ())[1:] for part in (inputs, targets)]
        self._shapes = shapes if self._shapes is None else self._shapes
        if shapes != self._shapes:
            raise ValueError("rows of another shape than the first ones")  # `unquoted` makes it a refusal
        return LabelledRows(inputs, targets)

    def require_unchanged(self) -> None:
        if _counted(self._dataset) != self.n_rows:
            raise _changed()


def examples_of(given: Any) -> Examples:
    """The rows of a dataset, or of a pair of tensors or arrays; what draws batches of its own is refused."""
    import torch
    from torch.utils.data import DataLoader, IterableDataset, TensorDataset

    if isinstance(given, (DataLoader, IterableDataset)):
        raise InvalidParameter(
            f"examples of type {type(given).__name__}, which chooses by itself who is in a batch",
            "a dataset: the certificate holds for the batches that are drawn here, and for no shuffled ones",
            "pass the dataset itself, such as loader.dataset",
        )
    if type(given) is TensorDataset and len(given.tensors) == 2:
        return TensorExamples(*given.tensors)
    if isinstance(given, (tuple, list)) and len(given) == 2 and all(map(_is_array, given)):
        # PyTorch counts what is written to a tensor, not to an array whose memory it shares.
        return TensorExamples(
            *(torch.tensor(part) if isinstance(part, np.ndarray) else torch.as_tensor(part) for part in given)
        )
    if not (hasattr(given, "__getitem__") and hasattr(given, "__len__")) or isinstance(given, (str, bytes, dict)):
        raise InvalidParameter(
            f"examples={shown(given)}",
            "a PyTorch dataset with a length, or a pair of arrays",
            "pass TensorDataset(inputs, targets), or (inputs, targets)",
        )
    return FetchedExamples(given)


def made_up_like(examples: Examples, like: Tensor, rows: int) -> LabelledRows:
    """Rows without any content: random numbers, and zeros where numbers are whole, in the shapes of the dataset.

    Some rows are read for their shapes, and read again, each by itself: a dataset that then gives others is refused.
    """
    import torch

    numbers = np.arange(min(LOOKED_AT, examples.n_rows))
    with unquoted("that cannot be put together to a batch"):
        first = examples.fetch(numbers)
        usable = all(isinstance(part, torch.Tensor) and len(part) == len(numbers) for part in first)
        same = usable and first.equals(_one_by_one(examples, numbers))
    if not usable:
        raise InvalidData("items that are no pairs of an input and a target", "two tensors an item", _MEND)
    if not same:
        raise InvalidParameter(
            "a dataset that gives other numbers when a row is read again, by itself",
            "the same row each time, whatever rows are read with it",
            "take random transforms out of the dataset, and pass them as view=",
        )
    generator = torch.Generator().manual_seed(0)
    inputs, targets = first.placed(like)
    return LabelledRows(
        _made_up(inputs, rows, lambda shape: torch.randn(shape, generator=generator)),
        _made_up(targets, rows, lambda shape: torch.rand(shape, generator=generator)),
    )


@contextmanager
def unquoted(why: str) -> Iterator[None]:
    """Replace whatever private rows make a dataset, a network or a loss say by a message that quotes nothing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except DpadmmError:
        raise
    except Exception as problem:
        if out_of_memory(problem):
            raise UnsupportedProblem(
                "a batch that does not fit in memory",
                "fewer rows at once",
                "pass a smaller at_once; the promise and the law of the result stay the same",
            ) from None
        raise InvalidData(
            f"rows {why}; what went wrong is not shown, because it may quote a row",
            "rows that all have the shape of the first ones, and targets that the loss knows",
            _MEND,
        ) from None


def out_of_memory(problem: Exception) -> bool:
    """Whether PyTorch, or the system, had no memory left."""
    import torch

    named = isinstance(problem, (MemoryError, getattr(torch, "OutOfMemoryError", MemoryError)))
    return named or (isinstance(problem, RuntimeError) and "DefaultCPUAllocator" in str(problem))


_MEND = "run the dataset, the model and the loss on rows that are public, and correct what fails"


def _one_by_one(examples: Examples, numbers: NDArray[np.intp]) -> LabelledRows:
    """The same rows, the last one first, put together."""
    import torch

    alone = [examples.fetch(numbers[number : number + 1]) for number in reversed(range(len(numbers)))]
    return LabelledRows(*(torch.cat(parts[::-1]) for parts in zip(*alone, strict=True)))


def told_apart(made_up: LabelledRows) -> LabelledRows:
    """The same rows with whole numbers 0 in the first, 1 in the second, and both in the others."""
    import torch

    generator = torch.Generator().manual_seed(1)

    def bits(part: Tensor) -> Tensor:
        if part.is_floating_point():
            return part
        drawn = torch.randint(2, part.shape, generator=generator)
        drawn[0], drawn[1] = 0, 1
        return drawn.to(part.device, part.dtype)

    return LabelledRows(*map(bits, made_up))


def _made_up(part: Tensor, rows: int, draw: Any) -> Tensor:
    import torch

    shape = (rows, *part.shape[1:])
    if not part.is_floating_point():
        return torch.zeros(shape, dtype=part.dtype, device=part.device)
    return draw(shape).to(part.device, part.dtype)


def _is_array(given: Any) -> bool:
    import torch

    return isinstance(given, (torch.Tensor, np.ndarray))


def _counted(dataset: Any) -> int:
    with unquoted("of a dataset that does not tell its length"):
        return len(dataset)


def _changed() -> PromiseBroken:
    return PromiseBroken(
        "Got a dataset that changed while it was trained on. Expected the same rows throughout. Train again on a "
        "dataset that nothing writes to."
    )
