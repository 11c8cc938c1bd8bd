"""Options that several commands have, each said once."""

from __future__ import annotations

from typing import Annotated

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
