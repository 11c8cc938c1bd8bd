"""One group, every strategy: three pods share twelve partitions and a fourth joins. Who gets what, and what moves?"""

from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from rebalance_lab.api.terminal import share_text
from rebalance_lab.assignors.json_contract import decode, group_from_json
from rebalance_lab.assignors.quality import quality
from rebalance_lab.assignors.strategies import BUILT_IN, load_assignor, parse_strategy

group = group_from_json(decode((Path(__file__).parent / "orders.json").read_bytes()))

shares = Table(title="Who gets what when pod-d joins", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
costs = Table(title="What that costs", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
for column in ("strategy", *group.members):
    shares.add_column(column)
for column in ("strategy", "a member has", "kept", "moved", "needlessly", "given up first"):
    costs.add_column(column, justify="left" if column == "strategy" else "right")

for name in BUILT_IN:
    assignment = load_assignor(parse_strategy(name)).assign(group)
    row = quality(group, assignment)
    shares.add_row(name, *(share_text(assignment.get(member, {})).replace(", ", "\n") for member in group.members))
    span = f"{row.min} to {row.max}"
    costs.add_row(name, span, *map(str, (row.kept, row.moved, row.needlessly_moved, row.revoked)))

console = Console(width=110, highlight=False)
console.print(shares)
console.print(costs)
console.print("given up first: cooperative strategies hand a partition on only after its owner has let go of it.")
