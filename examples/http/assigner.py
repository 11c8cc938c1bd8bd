"""A service that asks for an assignment: workers share shards, and sticky keeps what needs not move.

    python examples/http/assigner.py http://127.0.0.1:8000

Any program that divides things among processes can ask the same way; nothing here is Kafka's but the algorithm.
"""

from __future__ import annotations

import sys

from rebalance_lab.api.client import Answer, Client

SHARDS = 12


class Assigner:
    """Knows who is there and what they hold; asks whenever that changes."""

    def __init__(self, lab: Client) -> None:
        self.lab = lab
        self.held: dict[str, dict[str, list[int]]] = {}
        self.generation = 0

    def comes(self, worker: str) -> Answer:
        return self.divide({**self.held, worker: {}})

    def goes(self, worker: str) -> Answer:
        return self.divide({name: share for name, share in self.held.items() if name != worker})

    def divide(self, workers: dict[str, dict[str, list[int]]]) -> Answer:
        members = {
            name: {"topics": ["shards"], "owned": share, "generation": self.generation}
            for name, share in workers.items()
        }
        group = {"topics": {"shards": {"partitions": SHARDS}}, "members": members}
        answer = self.lab.assign(group, strategy="classic/sticky")
        self.held = answer.assignment
        self.generation += 1
        return answer


def show(what: str, answer: Answer) -> None:
    shares = "  ".join(
        f"{worker}: {' '.join(map(str, share['shards']))}" for worker, share in answer.assignment.items()
    )
    print(f"{what:16} {answer.quality['moved']} moved   {shares}")


def main(url: str) -> None:
    with Client(url) as lab:
        assigner = Assigner(lab)
        show("blue comes", assigner.comes("blue"))
        show("green comes", assigner.comes("green"))
        show("red comes", assigner.comes("red"))
        show("green goes", assigner.goes("green"))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000")
