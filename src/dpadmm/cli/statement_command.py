"""`dpadmm statement`: the privacy statement of a saved model."""

from __future__ import annotations

from typing import Annotated

import typer

from dpadmm.cli.model_folder import read_model, stored_words
from dpadmm.cli.options import Json, ModelFolder
from dpadmm.cli.screen import print_json, print_line
from dpadmm.privacy.wording import rounded_up

HELP = """\
Print the privacy statement of a saved model, in words or as JSON.

\b
Examples
  dpadmm statement model
  dpadmm statement model --verify --json
"""

OTHER_WORDS = (
    "The files of this model state it in other words: another version of this library wrote them, or somebody edited "
    "them. The words above follow from facts that were compared with the plan."
)


def statement(
    model_dir: ModelFolder,
    verify: Annotated[
        bool, typer.Option("--verify", help="Run the accountant again, and print what it certifies.")
    ] = False,
    json: Json = False,
) -> None:
    from dpadmm.privacy.selection import verify_any_plan

    model = read_model(model_dir)
    # Asked or not: nothing is printed that the accountant does not certify.
    certified = verify_any_plan(model.plan_)
    content = model.privacy_.to_dict()
    if verify:
        content["epsilon_verified"] = certified
    if json:
        print_json(content)
        return
    print_line(model.privacy_.text)
    if stored_words(model_dir) not in (None, content["statement"]):
        print_line(OTHER_WORDS)
    if verify:
        found = rounded_up(content["epsilon_verified"])
        print_line(f"Verified: the accountant was run again and certifies epsilon = {found}.")
