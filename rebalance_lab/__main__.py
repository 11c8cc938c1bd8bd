"""Run the command line: `rebalance-lab`, and `python -m rebalance_lab`."""

import gc
import sys


def main() -> None:
    # Imports make no garbage. Looking for cycles among what they make would be a part of every start.
    gc.disable()
    from rebalance_lab.api.cli import main as run_command_line

    gc.freeze()
    gc.enable()
    run_command_line()


if __name__ == "__main__":
    # `python -m` searches the current folder first. The command searches it last: no file in it hides a library.
    sys.path.append(sys.path.pop(0))
    main()
