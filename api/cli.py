"""The command `rebalance-lab`: its commands, its errors, its exit codes.

0 good, 1 the answer is no (a counterexample, a broken invariant), 2 bad input with one clear line on stderr.
Options are in api/options/, bodies in api/commands/; these are imported when called: starting `assign` must not cost
what `sweep` needs.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from typing import Annotated, TextIO, cast

import typer

from rebalance_lab.api.options.assignor_options import assign, check
from rebalance_lab.api.options.broker_options import broker_app
from rebalance_lab.api.options.group_options import group_app
from rebalance_lab.api.options.live_options import fidelity, live
from rebalance_lab.api.options.scenario_options import compare, recommend, simulate, size
from rebalance_lab.api.options.sequence_options import play, record
from rebalance_lab.api.options.serve_options import serve
from rebalance_lab.api.options.sweep_options import sweep_app
from rebalance_lab.api.terminal import BadInput, harmless, show_asides

UsageError = cast(type[typer.BadParameter], typer.BadParameter.__mro__[1])
"""Typer keeps click's class to itself; a wrong option should be one line like any other bad input."""

EXTRA_OF = {
    "confluent_kafka": "kafka",
    "kio": "kafka",
    "platformdirs": "kafka",
    "docker": "containers",
    "testcontainers": "containers",
    "pyspark": "spark",
    "pyarrow": "spark",
    "fastapi": "api",
    "uvicorn": "api",
    "httpx": "api",
    "prometheus_client": "api",
    "hypothesis": "testing",
    "pytest": "testing",
}
"""Which extra brings a module that the light base does not have."""

UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

app = typer.Typer(
    name="rebalance-lab",
    help="A wind tunnel for Kafka consumer groups: what an assignor, a protocol and a deploy cost, before production.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (assign, compare, simulate, recommend, play, record, check, size, live, fidelity, serve):
    app.command()(command)
for name, group in {"broker": broker_app, "group": group_app, "sweep": sweep_app}.items():
    app.add_typer(group, name=name)


@app.callback(invoke_without_command=True)
def version(
    ctx: typer.Context,
    show: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if show:
        from importlib.metadata import version as installed

        typer.echo(f"rebalance-lab {installed('rebalance-lab')}")
        raise typer.Exit


def main() -> None:
    """The console script. Whatever a user can cause ends as one line; only our own bugs end in a traceback."""
    from rebalance_lab.assignors.assignor_error import AssignorError
    from rebalance_lab.assignors.json_contract import ContractError

    open_closed_streams()
    # A terminal that does not have a letter shows another one: no answer ends in the middle for that.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    # A custom assignor lies where the user is. That folder comes last: no file in it hides a module of ours or of a
    # library.
    sys.path.append(os.getcwd())
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()  # what cannot be written is to be told here, and not by the interpreter on its way out
        sys.exit(code)
    except SystemExit as ended:
        if not isinstance(ended.__context__, BrokenPipeError):  # out of which typer makes a 1: the answer is no
            raise
        forget(sys.stdout)
    except typer.Abort:
        sys.exit(130)
    except UsageError as error:
        fail(error.format_message() or "name a command; --help lists them")
    except (BadInput, ContractError) as error:
        fail(str(error))
    except AssignorError as error:
        fail(f"{error.path}: {error}")
    except ModuleNotFoundError as error:
        extra = EXTRA_OF.get((error.name or "").split(".")[0])
        if extra is None:
            raise
        fail(f"{error.name} is not installed: pip install 'rebalance-lab[{extra}]'")
    except BrokenPipeError:  # `rebalance-lab ... | head`
        forget(sys.stdout)
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        forget(sys.stdout)
        fail(f"the answer cannot be written: {error.strerror}")
    finally:
        with suppress(OSError):
            show_asides()


def open_closed_streams() -> None:
    """Whoever closed one wants nothing from it. Python has None there, and the next file would get its number."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - as long as the process lives


def forget(stream: TextIO) -> None:
    """What is left of it, which the interpreter would try to write once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def fail(message: str) -> None:
    try:
        sys.stderr.write("rebalance-lab: " + harmless(" ".join(message.split())) + "\n")
        sys.stderr.flush()
    except OSError:  # nobody can be told, but for the exit code
        forget(sys.stderr)
    raise SystemExit(2)


if __name__ == "__main__":
    main()
