"""Every request to the disk fails in turn: nothing is lost, nothing is left half made, and the message is true."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpadmm import Ledger
from dpadmm.cli.app import run

from .campaign import Campaign
from .fault_tasks import FIT, PAID
from .faulty import (
    COUNT,
    FULL,
    ONCE,
    SAVED,
    SHORT,
    Ending,
    FaultyProcess,
    charges,
    each_case,
    faulty_process,
    leftovers,
    saved,
    trained,
)

SAVES = Campaign(
    "faults",
    "every write, flush, rename and close of `save` fails: the folder is new, or as it was",
    "a failed save over a model left it unreadable, a first one left half of a model; nothing was flushed to the disk",
    sample=30,
    full=400,
)
FITS = Campaign(
    "faults",
    "every write, flush, rename and close of `dpadmm fit` and of its ledger fails: the message on the budget is true",
    "after a charge the message blamed the output and did not say that the budget was spent; the model was lost",
    sample=8,
    full=900,
)
OUTPUTS = Campaign(
    "faults",
    "every write, flush, rename and close of predictions, templates, records and pictures fails: all or nothing",
    "a file was reported as written before it was on the disk",
    sample=8,
    full=700,
)
HOWS = ((ONCE, errno.EIO), (ONCE, errno.ENOSPC), (FULL, errno.ENOSPC), (SHORT, errno.ENOSPC))


@pytest.fixture(scope="module")
def faulty() -> Iterator[FaultyProcess]:
    with faulty_process() as process:
        yield process


def cases(
    faulty: FaultyProcess, tasks: list[str], hows: tuple[tuple[int, int], ...]
) -> list[tuple[str, int, int, int]]:
    """(task, number of the request, how it fails, error) of every request that each task makes."""
    counts = {task: faulty.carry_out(task, faulty.folder(), how=COUNT).count for task in tasks}
    return [(task, nth, *how) for task, count in counts.items() for nth in range(1, count + 1) for how in hows]


def test_failing_saves(faulty: FaultyProcess) -> None:
    with SAVES.begin() as tally:
        for task, nth, how, code in each_case(tally, cases(faulty, list(SAVED), HOWS)):
            folder = faulty.folder()
            end = faulty.carry_out(task, folder, nth=nth, how=how, code=code)
            name, before = SAVED[task]
            found, case = saved(folder / name), f"{task}, request {nth}, how {how}, errno {code}: {end.words[:200]}"
            if found != ("new" if end.succeeded else before):
                tally.defect(f"{case}: {found}")
            if left := leftovers(folder):
                tally.defect(f"{case}: left {left}")
            if task == "save" and not end.succeeded and (folder / "deep").exists():
                tally.defect(f"{case}: left a parent folder")
            if not end.succeeded and (end.error != "FileProblem" or "unchanged in memory" not in end.words):
                tally.defect(f"{case}: {end.error}")


def test_failing_fits(faulty: FaultyProcess) -> None:
    hows = (HOWS[0], HOWS[2])
    every = cases(faulty, ["fit"], hows) + cases(faulty, ["fit over a model"], (HOWS[3],))
    every += [case for case in cases(faulty, ["fit on disk"], (HOWS[3],)) if case[1] < 40]
    with FITS.begin() as tally:
        for task, nth, how, code in each_case(tally, every):
            folder = faulty.folder()
            end = faulty.carry_out(task, folder, nth=nth, how=how, code=code)
            for what in wrong_fit(end, folder, "trained" if "over" in task else "model", faulty.template / "trained"):
                tally.defect(f"{task}, request {nth}, how {how}, errno {code}: {what}: {end.words[:400]}")


def wrong_fit(end: Ending, folder: Path, name: str, before: Path) -> list[str]:
    """What is not as it must be after a fit under a fault."""
    wrong = []
    found = trained(folder / name, before if name == "trained" else None)
    if found != ("new" if end.succeeded else "old" if name == "trained" else "none"):
        wrong.append(f"the output is {found}")
    if left := leftovers(folder):
        wrong.append(f"left {left}")
    if "Traceback" in end.words or (not end.succeeded and end.code != 4):
        wrong.append(f"exit code {end.code}, {end.error}")
    charged, committed = charges(folder)
    said_spent, said_unused = "budget is spent" in end.words or "counts as spent" in end.words, "no budget" in end.words
    if not end.succeeded and said_spent == said_unused:
        wrong.append("the message does not say whether the budget was spent")
    unknown = "may have recorded the charge" in end.words
    if charged not in ((0, 1) if unknown else (1,) if end.succeeded or said_spent else (0,)):
        wrong.append(f"{charged} charges")
    if end.succeeded and not committed:
        wrong.append("a model whose fit was not committed")
    return wrong


FILES = {
    "predict": ("predictions.csv", None),
    "predict over a file": ("old.csv", b"old\n"),
    "schema": ("template.toml", None),
    "export": ("record.txt", None),
    "spending picture": ("spending.png", None),
}


def test_failing_outputs(faulty: FaultyProcess) -> None:
    whole = {}
    for task, (name, _) in FILES.items():
        folder = faulty.folder()
        assert faulty.carry_out(task, folder).succeeded
        whole[task] = (folder / name).stat().st_size
    with OUTPUTS.begin() as tally:
        for task, nth, how, code in each_case(tally, cases(faulty, list(FILES), (HOWS[0], HOWS[3]))):
            folder, (name, before) = faulty.folder(), FILES[task]
            end = faulty.carry_out(task, folder, nth=nth, how=how, code=code)
            path, case = folder / name, f"{task}, request {nth}, how {how}, errno {code}: {end.words[:300]}"
            content = path.read_bytes() if path.exists() else None
            complete = content is not None and len(content) == whole[task]
            # A replaced file stays replaced where only the flush of its folder fails: it is whole.
            if not complete and (end.succeeded or content != before):
                tally.defect(f"{case}: half an output")
            # The picture is written before the ledger is read again for the table on the screen.
            if complete and before is None and "the output" in end.words:
                tally.defect(f"{case}: an output that is said not to be there")
            if left := leftovers(folder):
                tally.defect(f"{case}: left {left}")
            if not end.succeeded and (end.code != 4 or "Traceback" in end.words):
                tally.defect(f"{case}: exit code {end.code}")


# -- real faults -----------------------------------------------------------------------------------------------------


@pytest.fixture
def place(faulty: FaultyProcess, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(faulty.folder())
    return Path.cwd()


@pytest.fixture
def small_disk(place: Path) -> Iterator[Path]:
    disk = place / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("a small file system can be mounted by root only")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def spent() -> float:
    return Ledger("ledger.db").spent("people")[0]


@pytest.mark.parametrize("out", ["disk/model", "disk"])
def test_a_disk_too_small_or_a_volume_is_refused_before_the_charge(
    small_disk: Path, out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fit", "table.csv", *FIT, *PAID, "--out", out]) == 4
    said = capsys.readouterr().err
    assert "no budget was used" in said
    assert ("No space left" in said) == (out == "disk/model")
    assert list(small_disk.iterdir()) == []
    assert spent() == 0.0


def test_a_folder_that_is_a_volume_can_be_saved_into(small_disk: Path) -> None:
    from .fault_tasks import NEW, OLD

    OLD.save(small_disk)
    assert saved(small_disk) == "old"
    NEW.save(small_disk, force=True)
    assert saved(small_disk) == "new"
    assert leftovers(small_disk) == []


def test_files_that_may_not_grow(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        code = run(["fit", "table.csv", *FIT, *PAID, "--out", "model"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    said = capsys.readouterr().err
    assert (code, "File too large" in said, "no budget was used" in said) == (4, True, True)
    assert not (place / "model").exists()
    assert leftovers(place) == []
    assert spent() == 0.0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a file that is always full is known to Linux")
def test_a_standard_output_that_is_full(place: Path) -> None:
    command = [sys.executable, "-m", "dpadmm", "fit", "table.csv", *FIT, *PAID, "--out", "model", "--json"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 4
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert "No space left" in done.stderr
    assert "The model is complete in model; its budget is spent" in done.stderr
    assert trained(place / "model") == "new"
    plan = [sys.executable, "-m", "dpadmm", "plan", "--rows", "99", "--features", "2", *FIT[2:]]
    with open("/dev/full", "w") as full:
        done = subprocess.run(plan, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, "cannot be written" in done.stderr) == (4, True)


def test_what_is_no_ordinary_file_is_not_replaced_by_one(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("pipe")
    assert run(["predict", "trained", "table.csv", "--out", "pipe", "--force"]) == 4
    assert "no ordinary file" in capsys.readouterr().err
    assert Path("pipe").is_fifo()
    long = "x" * 300
    assert run(["predict", "trained", "table.csv", "--out", long]) == 4
    assert run(["fit", "table.csv", *FIT, *PAID, "--out", long]) == 4
    assert "File name too long" in capsys.readouterr().err
    assert spent() == 0.0


def test_a_model_that_was_paid_for_and_cannot_be_written_is_kept(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dpadmm import load_model

    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("dpadmm.cli.fit_command.write_model_folder", full)
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert run(["fit", "table.csv", *FIT, *PAID, "--out", "model"]) == 4
    said = " ".join(capsys.readouterr().err.split())
    assert "its budget is spent and stays charged to people; nothing was written to model" in said
    assert load_model(said.split("is in ")[1].split(":")[0]).privacy_.epsilon == 1.0
    assert spent() > 0.0
