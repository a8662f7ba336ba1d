"""The program `dpadmm`: its commands, and the one place where an error becomes a message and an exit code."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from dpadmm._version import __version__
from dpadmm.cli import (
    audit_command,
    check_command,
    demo_command,
    evaluate_command,
    failures,
    fit_command,
    ledger_command,
    network_command,
    plan_command,
    predict_command,
    reproduce_command,
    schema_command,
    silo_command,
    statement_command,
    tune_command,
    version_command,
)
from dpadmm.cli.early_end import Stopped, stopping
from dpadmm.cli.remarks_on_screen import remarks_told
from dpadmm.cli.screen import close_output, log_on_screen, print_text

CODES = f"Exit codes: {failures.EXIT_CODES}."

app = typer.Typer(
    name="dpadmm",
    help="Sparse and structured linear models under differential privacy, with a true privacy statement.",
    epilog=CODES,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    # Typer's own tracebacks print local variables, which hold rows.
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo", help=demo_command.HELP, epilog=CODES)(demo_command.demo)
app.command("plan", help=plan_command.HELP, epilog=CODES)(plan_command.plan)
app.command("schema", help=schema_command.HELP, epilog=CODES)(schema_command.schema)
app.command("check", help=check_command.HELP, epilog=CODES)(check_command.check)
app.command("fit", help=fit_command.HELP, epilog=CODES)(fit_command.fit)
app.command("tune", help=tune_command.HELP, epilog=CODES)(tune_command.tune)
app.command("predict", help=predict_command.HELP, epilog=CODES)(predict_command.predict)
app.command("evaluate", help=evaluate_command.HELP, epilog=CODES)(evaluate_command.evaluate)
app.command("statement", help=statement_command.HELP, epilog=CODES)(statement_command.statement)
app.command("reproduce", help=reproduce_command.HELP, epilog=CODES)(reproduce_command.reproduce)
app.command("audit", help=audit_command.HELP, epilog=CODES)(audit_command.audit)
app.add_typer(ledger_command.app, name="ledger")
app.add_typer(network_command.app, name="network")
app.add_typer(silo_command.app, name="silo")
app.command("version", epilog=CODES)(version_command.version)


def _print_version(asked: bool) -> None:
    if asked:
        print_text(f"dpadmm {__version__}")
        raise typer.Exit()


@app.callback()
def common(
    shown: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the full traceback of an error. It may quote data.")
    ] = False,
) -> None:
    """Options before the command."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code.

    Examples
    --------
    >>> run(["--version"])  # doctest: +ELLIPSIS
    dpadmm ...
    0
    """
    debug, as_json = "--debug" in arguments, "--json" in arguments
    quiet = not {"--quiet", "-q", "--json"}.isdisjoint(arguments)
    try:
        with log_on_screen(visible=not quiet), remarks_told():
            code = app(args=list(arguments), prog_name="dpadmm", standalone_mode=False)
    except Stopped as stopped:
        return failures.show(failures.describe_stop(stopped), as_json)
    except (KeyboardInterrupt, typer.Abort):
        code = failures.INTERRUPTED
    except Exception as error:
        if hasattr(error, "format_message"):
            said = failures.usage_message(error)
            if not said:
                # A group of commands without one has shown its help.
                return failures.BAD_INPUT
            known = {each.name for each in app.registered_commands} | {each.name for each in app.registered_groups}
            command = " ".join(["dpadmm", *(name for name in arguments[:1] if name in known)])
            return failures.show(failures.describe_usage(said, command), as_json)
        if debug:
            raise
        return failures.show(failures.describe(error), as_json)
    if code == failures.INTERRUPTED:
        return failures.show(failures.describe_stop(Stopped(signal.SIGINT)), as_json)
    return code if isinstance(code, int) else 0


def main() -> None:
    """Entry point of the program."""
    with stopping():
        code = run(sys.argv[1:])
        close_output()
    sys.exit(code)
