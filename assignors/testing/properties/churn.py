"""Hold an assignor to a whole history of rebalances: in rounds, and through the real protocol.

The form is that of validity.py.
"""

from __future__ import annotations

import time

from rebalance_lab.assignors.model import Group
from rebalance_lab.assignors.testing.properties.moves import check_handover
from rebalance_lab.assignors.testing.properties.trial import Trial
from rebalance_lab.assignors.testing.subject.answers import Broken, NotApplicable, Placed, View
from rebalance_lab.assignors.testing.subject.rounds import Ask, ChurnDriver
from rebalance_lab.assignors.testing.subject.subject import Subject


def handing_over(subject: Subject, first: Placed | None = None) -> Ask:
    """Its answers, each held to a safe hand-over where that is promised. `first` is what it answered to the group that
    all begins with: it is asked again, and what is the same again need not be checked again."""
    promised = "cooperative" in subject.promises

    def ask(group: Group, view: View | None = None) -> Placed:
        if first is not None and group is first.view.group:
            placed = subject.ask(group, first.view, first)
        else:
            placed = subject.ask(group, view)
        if promised:
            check_handover(placed)
        return placed

    return ask


def churn(trial: Trial) -> None:
    """Members come, go, crash and come back, topics grow and vanish: every rebalance in between is valid and ends.

    One rebalance that goes wrong is enough, and what goes wrong is rarely the first one.
    """
    if not trial.case.events:
        raise NotApplicable
    run(trial.churns.rounds(handing_over(trial.subject, trial.first), trial.group), trial)


def survives_churn(trial: Trial) -> None:
    """The same through real consumers and a real coordinator: each time the group comes to rest, with one reader each.

    In production an assignor lives inside a consumer: one instance for the life of a process, asked only when that
    consumer leads, about claims that went through the wire. An eager consumer claims nothing when it rejoins, one that
    was cut off comes back without its generation, a cooperative one may hold a claim that nobody else knows of. What
    an instance remembers, it remembers through all of that. A group that never comes to rest reads nothing.
    """
    if not trial.case.events or trial.churns.machines is None:
        raise NotApplicable
    subject = trial.subject
    started = time.perf_counter() - subject.spent_s
    try:
        run(trial.churns.machines(subject, trial.group), trial)
    except Broken as broken:
        if broken.blames == "bounded-time":
            raise
        # Whatever rule was broken: it is the history that breaks it, and that shows it again.
        raise Broken(broken.message, broken.group, broken.answer, badness=broken.badness) from broken
    finally:
        subject.machine_s += time.perf_counter() - subject.spent_s - started


def run(driver: ChurnDriver, trial: Trial) -> None:
    driver.settle()
    for event in trial.case.events:
        driver.apply(event)
        driver.settle()
