"""`dpadmm version`."""

from __future__ import annotations

from dpadmm._version import __version__
from dpadmm.cli.options import Json
from dpadmm.cli.screen import print_json, print_text


def version(json: Json = False) -> None:
    """Print the version."""
    if json:
        print_json({"version": __version__})
    else:
        print_text(f"dpadmm {__version__}")
