"""Run the command line: `python -m rebalance_lab` is `rebalance-lab`."""

from rebalance_lab.api.cli import main

if __name__ == "__main__":
    main()
