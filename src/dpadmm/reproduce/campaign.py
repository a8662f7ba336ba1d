"""A run over exhibits: what is missing is measured and kept, and each exhibit is written when it is complete."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpadmm.datasets.loader import is_here
from dpadmm.errors import FileProblem
from dpadmm.files import replacing, why
from dpadmm.reproduce.bookshelf import find_exhibit
from dpadmm.reproduce.exhibit import Cell, Exhibit, PlottedExhibit
from dpadmm.reproduce.exhibit_pages import write_pages
from dpadmm.reproduce.line_plots import line_plot
from dpadmm.reproduce.measurement_store import MeasurementStore, measurement_key
from dpadmm.reproduce.numbers_file import ExhibitNumbers, cell_entry, machine
from dpadmm.reproduce.verdicts import Measurements
from dpadmm.reproduce.workers import Order, measure_all

Watcher = Callable[[int, int, str], None]
"""Called with (measurements done, measurements in all, the exhibit of the last one)."""


@dataclass(frozen=True)
class Campaign:
    """What is asked of the engine.

    Parameters
    ----------
    exhibits : sequence of str
        Names, or paths of files.
    folder : Path
        Where numbers, pictures and pages go; made if it is not there.
    quick : bool
        Fewer rows, seeds and values of x.
    resume : bool
        Use what an earlier run measured with the same settings and the same code.
    jobs : int
        Processes at a time.
    seeds : int or None
        Another number of seeds than each exhibit has.
    """

    exhibits: Sequence[str]
    folder: Path
    quick: bool = False
    resume: bool = False
    jobs: int = 1
    seeds: int | None = None

    def carry_out(self, store: MeasurementStore, watch: Watcher = lambda done, total, name: None) -> list[Path]:
        """Measure, and write each exhibit as soon as its last measurement is there. Gives the pages written."""
        require_tables([find_exhibit(name) for name in self.exhibits])
        require_folder(self.folder)
        sheets = [Sheet.of(name, self.quick, self.seeds) for name in self.exhibits]
        orders = [order for sheet in sheets for order in sheet.orders]
        wanted = {order.key: order for order in reversed(orders) if not (self.resume and order.key in store)}
        missing = [order for order in orders if wanted.pop(order.key, None) is not None]
        open_keys = {order.key for order in missing}
        sheets = self._write_complete(sheets, open_keys, store)
        for done, (order, values) in enumerate(measure_all(missing, self.jobs), start=1):
            store.keep(order.key, values)
            open_keys.discard(order.key)
            watch(done, len(missing), order.exhibit)
            sheets = self._write_complete(sheets, open_keys, store)
        return write_pages(self.folder, map(find_exhibit, self.exhibits))

    def _write_complete(self, sheets: list[Sheet], open_keys: set[str], store: MeasurementStore) -> list[Sheet]:
        """Write the sheets that wait for nothing; gives those that do."""
        waiting = [sheet for sheet in sheets if sheet.waits_for(open_keys)]
        for sheet in sheets:
            if sheet not in waiting:
                sheet.write(store, self.folder)
        return waiting

    def draw(self, store: MeasurementStore) -> list[Path]:
        """Measure nothing: write what is there, be it complete or not."""
        require_folder(self.folder)
        for name in self.exhibits:
            sheet = Sheet.of(name, self.quick, self.seeds)
            kept = sheet.numbers(store)
            written = ExhibitNumbers.read(self.folder, sheet.exhibit.name)
            best = kept if written is None or len(kept.cells) > len(written.cells) else written
            if shows_anything(sheet.exhibit, best):
                write_exhibit(sheet.exhibit, best, self.folder)
        return write_pages(self.folder, map(find_exhibit, self.exhibits))


@dataclass(frozen=True)
class Sheet:
    """The measurements of one exhibit in one run."""

    exhibit: Exhibit
    orders: tuple[Order, ...]

    @classmethod
    def of(cls, name: str, quick: bool, seeds: int | None) -> Sheet:
        exhibit = find_exhibit(name)
        return cls(exhibit, tuple(_orders(name, exhibit, quick, seeds)))

    def waits_for(self, open_keys: set[str]) -> bool:
        return any(order.key in open_keys for order in self.orders)

    def numbers(self, store: MeasurementStore) -> ExhibitNumbers:
        """What the store has of it."""
        there = [order for order in self.orders if order.key in store]
        cells = [cell_entry(self.exhibit, order.cell, store[order.key]) for order in there]
        quick = any(order.quick for order in self.orders)
        return ExhibitNumbers(self.exhibit.name, quick, len(there) == len(self.orders), machine(), cells)

    def write(self, store: MeasurementStore, folder: Path) -> None:
        write_exhibit(self.exhibit, self.numbers(store), folder)


def shows_anything(exhibit: Exhibit, numbers: ExhibitNumbers) -> bool:
    """Whether there is a row of a table, or a point of a curve that is not flat."""
    if not isinstance(exhibit, PlottedExhibit):
        return bool(numbers.cells)
    found = Measurements(exhibit, numbers.cells)
    return any(found.xs(panel.title) for panel in exhibit.panels)


def write_exhibit(exhibit: Exhibit, numbers: ExhibitNumbers, folder: Path) -> None:
    """Numbers and, of a figure, pictures."""
    numbers.write(folder)
    if isinstance(exhibit, PlottedExhibit):
        for kind in ("svg", "png"):
            with replacing(folder / f"{exhibit.name}.{kind}") as stream:
                stream.write(line_plot(Measurements(exhibit, numbers.cells), kind))


def require_tables(exhibits: Sequence[Exhibit]) -> None:
    """Refuse before anything is computed if a data set is not on this machine; nothing is fetched."""
    missing = sorted({name for exhibit in exhibits for name in exhibit.tables if not is_here(name)})
    if missing:
        raise FileProblem(
            f"no data sets {', '.join(missing)} on this machine",
            f"{', '.join(f'{name}.npz' for name in missing)} in the folder named by DPADMM_DATA or in the cache",
            'fetch each with `python -c "from dpadmm.datasets import load; load(NAME)"`, whose message says what to do '
            "where that is not allowed; nothing is fetched here",
        )


def require_folder(folder: Path) -> None:
    """Make the folder of the outputs, and refuse if that is not possible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileProblem(f"{why(error)} at {folder}", "a folder that can be written", "choose another --out") from None


def _orders(name: str, exhibit: Exhibit, quick: bool, seeds: int | None) -> Iterator[Order]:
    """Seed by seed, so that a run that is ended early has as many as possible of each point."""
    for cell in sorted(exhibit.cells(quick, seeds), key=_seed):
        algorithm, case = exhibit.case(cell, quick)
        yield Order(name, cell, quick, measurement_key(algorithm, case))


def _seed(cell: Cell) -> int:
    return cell.seed
