"""`python -m` this module: answers for groups in a process of its own (elsewhere.py starts it).

Given      a target on the command line; one JSON line per question: {"group": {..}}, or {"seed": .., "numbers": [..]}
           for as many of the search's examples, in this order
Returns    one JSON line per question: {"digest": .., "answer": ..}, where there is none {"digest": null}; for numbers
           {"digests": [..], "assignor_s": ..}
Imports    little: starting up is most of what this process costs
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from assignors.model import Group
from assignors.testing.answers import Broken, NotApplicable, digest, plain
from assignors.testing.families import Draws
from assignors.testing.subject import Subject
from assignors.testing.targets import load_target


def answers(subject: Subject, question: Any) -> dict[str, Any]:
    if "numbers" not in question:
        from assignors.json_contract import group_from_json  # most checks end without this kind of question

        return answer(subject, group_from_json(question["group"], "group"))
    before_s, draws = subject.spent_s, Draws(question["seed"])
    groups = (draws.example(number)[0] for number in question["numbers"])
    digests = [answer(subject, group, shown=False)["digest"] for group in groups]
    return {"digests": digests, "assignor_s": subject.spent_s - before_s}


def answer(subject: Subject, group: Group, *, shown: bool = True) -> dict[str, Any]:
    try:
        placed = subject.ask(group)
    except (Broken, NotApplicable) as error:
        return {"digest": None, "answer": str(error)}
    return {"digest": digest(placed.owner), "answer": plain(placed.answer) if shown else None}


def main() -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the class prints must not mix with the answers
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a person stops the parent, which kills this process
    subject = load_target(sys.argv[1], sys.argv[2:]).subject()
    with subject.watched():
        for line in sys.stdin:
            out.write(json.dumps(answers(subject, json.loads(line))) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
