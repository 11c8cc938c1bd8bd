"""Options that several commands have, each said once."""

from __future__ import annotations

from typing import Annotated, Any

import typer

InputFile = Annotated[str, typer.Argument(metavar="[FILE|-]", help="A JSON file, or - for standard input.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
Html = Annotated[
    str | None,
    typer.Option("--html", metavar="FILE", help="Write the report as one web page that needs nothing else."),
]
Provider = Annotated[
    str, typer.Option("--provider", metavar="NAME", help="auto, testcontainers, jvm, external or mock.")
]


def strategies_option(usual: str, what_for: str) -> Any:
    """Typer's own way to tell a default would cut off, at a terminal's width, a list that has no spaces."""
    told = f"{what_for} {usual.replace(',', ', ')} without it."
    return typer.Option("--strategies", metavar="A,B,C", help=told, show_default=False)


REAL_PROVIDERS = "auto, testcontainers, jvm or external"
"""Providers of a cluster on which real consumers can run."""
