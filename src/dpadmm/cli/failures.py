"""From an exception to one readable message and an exit code, never quoting data."""

from __future__ import annotations

import difflib
import json
import signal
from contextlib import suppress
from typing import Any

from dpadmm.cli.early_end import Outcome, Stopped
from dpadmm.errors import Diverged, DownloadFailed, DpadmmError, FileProblem, InputError, PrivacyError, Unreachable

UNEXPECTED, BAD_INPUT, PRIVACY_REFUSAL, FILE_PROBLEM, INTERRUPTED, TERMINATED = 1, 2, 3, 4, 130, 143

EXIT_CODES = (
    "0 done · 1 unexpected problem · 2 bad usage or input · 3 refused for privacy · 4 file, download or network "
    "problem · 130 interrupted · 143 terminated. Outputs are written whole or not at all"
)


def exit_code(error: BaseException) -> int:
    """The exit code that stands for an error.

    Examples
    --------
    >>> exit_code(FileProblem("a", "b", "c")), exit_code(PrivacyError("no")), exit_code(ZeroDivisionError())
    (4, 3, 1)
    """
    if isinstance(error, (FileProblem, DownloadFailed, Unreachable)):
        return FILE_PROBLEM
    if isinstance(error, PrivacyError):
        return PRIVACY_REFUSAL
    if isinstance(error, (InputError, Diverged)):
        return BAD_INPUT
    return UNEXPECTED


def describe(error: BaseException) -> dict[str, Any]:
    """An error as a dictionary, with what became of budget and output if it was noted."""
    return _with_outcome(_described(error), Outcome.of(error))


def _described(error: BaseException) -> dict[str, Any]:
    """The text of an exception that is not ours is withheld."""
    if not isinstance(error, DpadmmError):
        return _entry(
            "UnexpectedProblem",
            f"The program has a problem ({type(error).__name__}). Its text is not shown, because it may quote data. "
            "Where data may be seen, run `dpadmm --debug …`, and report what it shows.",
            UNEXPECTED,
        )
    entry = _entry(type(error).__name__, str(error), exit_code(error))
    if isinstance(error, InputError):
        entry |= {"given": error.given, "expected": error.expected, "do": error.do}
    return entry


def usage_message(error: Any) -> str:
    """What is wrong with a command line; for a misspelt option, with the nearest one."""
    name, known = getattr(error, "option_name", None), getattr(error, "possibilities", None) or ()
    if name is None or not known:
        return str(error.format_message())
    longer = [option for option in known if option.startswith(name)]
    near = longer or difflib.get_close_matches(name, known, n=1) or list(known)
    return f"No such option {name}. Did you mean {near[0]}?"


def describe_usage(message: str, command: str) -> dict[str, Any]:
    """A command line that does not parse."""
    end = "" if message.endswith((".", "?")) else "."
    shown = "commands" if message.startswith("No such command") else "options"
    return _entry("UsageError", f"{message}{end} `{command} --help` lists the {shown}.", BAD_INPUT)


def describe_stop(stopped: Stopped) -> dict[str, Any]:
    """Ctrl-C or termination, with what became of budget and output."""
    terminated, outcome = stopped.number == signal.SIGTERM, Outcome.of(stopped)
    kind, code = ("Terminated", TERMINATED) if terminated else ("Interrupted", INTERRUPTED)
    otherwise = "" if outcome else ": no output was left half written; if training had begun, count its budget as spent"
    return _with_outcome(_entry(kind, kind.lower() + otherwise, code), outcome)


def show(entry: dict[str, Any], as_json: bool) -> int:
    """Print an error, on standard error if standard output takes nothing, and return its exit code."""
    # Where not even that can be written, the exit code still tells.
    with suppress(OSError):
        if not (as_json and _printed_json(entry)):
            from rich.console import Console

            console = Console(stderr=True, soft_wrap=True, highlight=False)
            console.print("[bold red]error:[/bold red] ", end="")
            console.print(entry["message"], markup=False)
    return int(entry["exit_code"])


def _printed_json(entry: dict[str, Any]) -> bool:
    try:
        print(json.dumps({"error": entry}, indent=2), flush=True)
    except OSError:
        return False
    return True


def _with_outcome(entry: dict[str, Any], outcome: Outcome | None) -> dict[str, Any]:
    if outcome is None:
        return entry
    return {**entry, "message": f"{entry['message'].rstrip('.')}. {outcome}", "budget_spent": outcome.spent}


def _entry(kind: str, message: str, code: int) -> dict[str, Any]:
    return {"type": kind, "message": message, "exit_code": code}
