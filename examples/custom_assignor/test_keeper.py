"""`pytest examples/custom_assignor`: the contract, and a churn, for the assignor that is fixed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from keeper_fixed import Keeper

from rebalance_lab.assignors.testing import AssignorContract, churn_machine


class TestKeeper(AssignorContract):
    assignor = Keeper
    examples = 500


TestKeeperChurn = churn_machine(Keeper).TestCase
