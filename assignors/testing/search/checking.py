"""Make an assignor's report card: search, find where state and hash order hide, shrink, confirm.

Given      a Target, how many examples, a seed; a progress callback, and what churns run through if the caller has more
Returns    a Report
Confirmed  a counterexample is shown only after a new process, asked about nothing else before, has failed on it too.
           What fails only after other groups were asked about is a finding about `deterministic`
Start at   check, replay
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rebalance_lab.assignors.json_contract import group_to_json
from rebalance_lab.assignors.model import Group, Member, Topic
from rebalance_lab.assignors.testing.properties.contract import BY_NAME, EVERYBODY, PROPERTIES, Property
from rebalance_lab.assignors.testing.properties.trial import Trial
from rebalance_lab.assignors.testing.sampling.cases import Case, case_from_json, draw_case, small_cases
from rebalance_lab.assignors.testing.search.hidden_state import (
    after_another,
    compare_elsewhere,
    differs_after,
    differs_by_itself,
    groups_before,
    shown_elsewhere,
)
from rebalance_lab.assignors.testing.search.report_card import BROKEN, HOLDS, MEASURED, NOT_RUN, Finding, Report, Row
from rebalance_lab.assignors.testing.search.sandbox import Beat, Ended, Send, in_child
from rebalance_lab.assignors.testing.search.search import Course, Tally, look_at, search
from rebalance_lab.assignors.testing.search.shrink import shrink
from rebalance_lab.assignors.testing.subject.answers import Broken, NotApplicable, plain
from rebalance_lab.assignors.testing.subject.rounds import IN_ROUNDS, Churns, DriverFactory, MachineFactory, Rounds
from rebalance_lab.assignors.testing.subject.subject import Subject
from rebalance_lab.assignors.testing.subject.targets import Target
from rebalance_lab.assignors.user_code import observed

EXAMPLES = 2000
GRACE_S = 2.0
"""How much longer than a call's limit a child may be silent: the limit is kept by a signal, the grace by SIGKILL."""
SHRINK_S = 12.0
LOOK_S = 4.0
"""For a smaller case than the one that came out of shrinking."""
HANG_SHRINK_S = 15.0
SHRINK_LIMIT_S = 2.0
"""Of one call, while something else than a hang is being shrunk."""
HANG_LIMIT_S = 0.5
"""While a hang is being shrunk: the group it was found on has already been given its full limit, twice."""

SMALL = Group({"topic": Topic(1)}, {"consumer-1": Member(("topic",)), "consumer-2": Member(("topic",))})
"""The smallest in which a member has to be chosen. A name of one letter would be one object, wherever it is made."""
SMALL_ENOUGH = 7
"""Members and partitions together: three and four."""


def check(
    target: Target,
    examples: int = EXAMPLES,
    seed: int = 0,
    *,
    driver: DriverFactory = Rounds,
    machines: MachineFactory | None = None,
    progress: Callable[[int], None] | None = None,
) -> Report:
    """Search a broken property in so many examples and report; without `machines`, leave `survives-churn` out.

    `machines` is ProtocolChurn of rebalance_lab.harness.conversation.protocol_churn, or None.
    """
    started, cpu = time.perf_counter(), cpu_s()
    bench = Bench(target, Churns(driver, machines))
    tally = bench.search(examples, seed, progress)
    findings: dict[str, Finding] = {}
    notes: list[str] = []
    for each in PROPERTIES:
        count = tally.counts[each.name]
        if count.found is None or (each.last and findings):
            continue
        finding = bench.pin_down(each, case_from_json(count.found), count.worst, seed, count.number)
        finding = bench.smallest(finding)
        findings.setdefault(finding.property, finding)
    if "deterministic" not in findings and "bounded-time" not in findings:
        hidden = compare_elsewhere(target, seed, tally, notes)
        if hidden is not None:
            findings["deterministic"] = bench.smallest(hidden)
    spent = time.perf_counter() - started, cpu_s() - cpu
    return make_report(target, tally, findings, examples, seed, spent, notes)


def cpu_s() -> float:
    """Measure this process and its children that have ended; os.times() has it in hundredths of a second only."""
    try:
        from resource import RUSAGE_CHILDREN, getrusage
    except ImportError:
        return sum(os.times()[:4])
    children = getrusage(RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def replay(target: Target, name: str, case: Case, machines: MachineFactory | None = None) -> Finding | None:
    """Run one case again, in a new process."""
    return Bench(target, Churns(machines=machines)).confirm(BY_NAME[name], case)


class Bench:
    """Run experiments on one target, each in a child process of its own."""

    def __init__(self, target: Target, churns: Churns = IN_ROUNDS) -> None:
        self.target = target
        self.churns = churns

    def child(self, work: Callable[[Send], Any], *, quiet_s: float | None = None, hear: Any = None) -> Any:
        quiet_s = quiet_s or self.target.call_limit_s + GRACE_S
        return in_child(work, quiet_s=quiet_s, hear=hear, limit_memory=self.target.limit_memory)

    def search(self, examples: int, seed: int, progress: Callable[[int], None] | None) -> Tally:
        def work(send: Send) -> Tally:
            subject, beat = self.target.subject(), Beat(send)
            subject.on_tick = beat  # an example may take many calls, and each of them its time

            def step(number: int) -> None:
                beat.number = number
                beat()

            return search(subject, examples, seed, churns=self.churns, progress=step)

        ended = self.child(work, hear=progress, quiet_s=self.quiet_at_first())
        if isinstance(ended, Ended):
            return self.search_up_to_the_end(ended, examples, seed)
        tally = ended.value
        assert isinstance(tally, Tally)
        return tally

    def quiet_at_first(self) -> float:
        """Return how long the child may be silent at first, because starting a JVM or a command takes its time."""
        return self.target.call_limit_s + (GRACE_S if self.target.limit_memory else 20.0)

    def search_up_to_the_end(self, ended: Ended, examples: int, seed: int) -> Tally:
        """Search on after the child hung or died. From its last reported example on, each group is announced before it
        is asked.
        """
        start = int(ended.said or 0)

        def work(send: Send) -> None:
            subject = self.target.subject()
            subject.on_call = lambda group: send(group_to_json(group))
            tally, course = Tally(), Course(subject)
            with subject.watched():
                for number in range(start, examples):
                    look_at(subject, draw_case(seed, number), course, tally, number, self.churns, seed)

        again = self.child(work, quiet_s=self.quiet_at_first())
        tally = Tally(examples=start)
        for count in tally.counts.values():
            count.examples = 0
        how, said = (again.how, again.said) if isinstance(again, Ended) else (ended.how, None)
        count = tally.counts["bounded-time" if how == "hung" else "valid"]
        count.examples, count.broken, count.badness = start + 1, 1, self.target.call_limit_s
        count.worst = f"no answer within {self.target.call_limit_s:g} s" if how == "hung" else how
        group = said if isinstance(said, dict) else Case(draw_case(seed, start).group).to_json()["group"]
        count.found, count.number = {"group": group}, start
        return tally

    def confirm(self, each: Property, case: Case, limit_s: float | None = None) -> Finding | None:
        """Return what the property says about this case in a new process, if it says anything."""
        if case.before is not None:
            return differs_after(self.target, case)
        ended = self.child(
            lambda send: judged(self.target.subject(limit_s), each, case, self.churns, send),
            quiet_s=None if limit_s is None else limit_s + 0.5 + (0.0 if self.target.limit_memory else 20.0),
        )
        if isinstance(ended, Ended):
            said = ended.said if isinstance(ended.said, dict) else case.to_json()["group"]
            if ended.how == "hung":
                text = f"no answer within {limit_s or self.target.call_limit_s:g} s"
                return Finding("bounded-time", text, Case(case_from_json(said).group), said)
            return Finding("valid", ended.how, Case(case_from_json(said).group), said)
        if ended.value is None:
            if each.name == "deterministic":
                elsewhere = shown_elsewhere(self.target, case) if self.target.loads_elsewhere else None
                return elsewhere or differs_by_itself(self.target, case)
            return None
        name, message, group, answer, notes = ended.value
        about = case if name == each.name else Case(case_from_json(group).group)
        return Finding(name, message, about, group, answer, notes)

    def pin_down(self, each: Property, case: Case, message: str, seed: int, number: int) -> Finding:
        """Return the smallest form of a counterexample, confirmed, or say that it could not be seen again."""
        original = self.confirm(each, case)
        if original is None:
            hidden = after_another(self.target, case.group, groups_before(seed, number))
            if hidden is not None:
                return hidden
            told = f"{message} (seen once; not again when asked about this group alone)"
            return Finding(each.name, told, case, group_to_json(case.group))
        if original.property != each.name:
            each, case = BY_NAME[original.property], original.case
        if each.name == "bounded-time":
            return self.shrink_hang(each, original)
        for smaller in self.shrink_in_one_child(each, case, original.message):
            finding = self.confirm(each, smaller)
            if finding is not None and finding.property == each.name:
                return finding
        smaller = shrink(case, lambda c: self.still(each, c, original.message), budget_s=SHRINK_S, most=400)
        return self.confirm(each, smaller) or original

    def smallest(self, finding: Finding) -> Finding:
        """Shrink a finding. Where chance, the clock or addresses decide, the way down is a matter of luck, but then
        nearly every group shows the finding.
        """
        if finding.property != "deterministic" or sum(finding.size()) <= SMALL_ENOUGH:
            return finding
        return self.confirm(BY_NAME["deterministic"], Case(SMALL)) or finding

    def shrink_in_one_child(self, each: Property, case: Case, message: str) -> list[Case]:
        """Shrink fast: thousands of candidates in one process. A new process confirms the results, smallest first."""

        def work(send: Send) -> Any:
            beat = Beat(send)

            def fails(candidate: Case) -> bool:
                beat()
                word = judged(self.target.subject(SHRINK_LIMIT_S), each, candidate, self.churns)
                return word is not None and word[0] == each.name and alike(word[1], message)

            smaller = shrink(case, fails, budget_s=SHRINK_S)
            other = None if each.name == "deterministic" else smaller_one(smaller, fails)
            return [one.to_json() for one in (other, smaller) if one is not None]

        ended = self.child(work, quiet_s=max(self.quiet_at_first(), SHRINK_S))
        return [] if isinstance(ended, Ended) else [case_from_json(one) for one in ended.value]

    def still(self, each: Property, case: Case, message: str) -> bool:
        finding = self.confirm(each, case)
        return finding is not None and finding.property == each.name and alike(finding.message, message)

    def shrink_hang(self, each: Property, original: Finding) -> Finding:
        """Start one new process per candidate: the limit is short, and a process that hangs is killed."""

        def hangs(candidate: Case) -> bool:
            finding = self.confirm(each, candidate, HANG_LIMIT_S)
            return finding is not None and finding.property == "bounded-time"

        smaller = shrink(original.case, hangs, budget_s=HANG_SHRINK_S, most=400)
        finding = self.confirm(each, smaller, HANG_LIMIT_S)
        if finding is None or finding.property != "bounded-time" or smaller is original.case:
            return original
        full = f"; on the group it was found with, none within {self.target.call_limit_s:g} s"
        return replace(
            finding, message=finding.message + full, case=Case(smaller.group), group=group_to_json(smaller.group)
        )


def smaller_one(case: Case, fails: Callable[[Case], bool]) -> Case | None:
    """Find another small case that fails, where nothing more can be taken away from this one."""
    if sum(case.size()) <= SMALL_ENOUGH:
        return None
    deadline = time.monotonic() + LOOK_S
    for candidate in small_cases():
        if time.monotonic() > deadline:
            return None
        if fails(candidate):
            other = shrink(candidate, fails, budget_s=LOOK_S)
            return other if sum(other.size()) < sum(case.size()) else None
    return None


Judgement = tuple[str, str, dict[str, Any], Any, str]


def alike(message: str, other: str) -> bool:
    """Tell whether two findings are alike: a wrong answer should not shrink into an exception, which is another
    finding.
    """
    return message.startswith("raised") == other.startswith("raised")


def judged(subject: Subject, each: Property, case: Case, churns: Churns, send: Send | None = None) -> Judgement | None:
    """Return the property's word on one case: the class to blame, why, the group, the answer and notes."""
    with observed() as notes:
        word = judgement(subject, each, case, churns, send)
    return None if word is None else (*word, notes.text() if notes.tracebacks else "")


def judgement(
    subject: Subject, each: Property, case: Case, churns: Churns, send: Send | None
) -> tuple[str, str, dict[str, Any], Any] | None:
    if send is not None:
        send(case.to_json()["group"])
        subject.on_call = lambda group: send(group_to_json(group))
    try:
        with subject.watched():
            # read anew: a class that changes its input must not change the case that is being shrunk
            trial = Trial(subject, case_from_json(case.to_json()), thorough=True, churns=churns)
            if trial.waived or any(waiver.covers(trial.shapes) for waiver in each.waivers_of(subject)):
                return None
            each.check(trial)
    except NotApplicable:
        return None
    except Broken as broken:
        name = broken.blames or each.name
        if not BY_NAME[name].held_by(subject):
            return None
        return name, broken.message, group_to_json(broken.group or case.group), plain(broken.answer)
    return None


def make_report(
    target: Target,
    tally: Tally,
    findings: dict[str, Finding],
    examples: int,
    seed: int,
    spent: tuple[float, float],
    notes: Sequence[str],
) -> Report:
    subject = target.subject()
    ordered = tuple(findings[each.name] for each in PROPERTIES if each.name in findings)
    return Report(
        target=target.text,
        name=target.name,
        promises=target.promises,
        added=target.added,
        waived={str(waiver): waiver.why for waiver in target.waivers},
        seed=seed,
        examples=examples,
        groups=tally.examples,
        rows=tuple(row_of(each, tally, findings, promised=each.held_by(subject)) for each in PROPERTIES),
        findings=ordered,
        calls=tally.calls,
        seconds=spent[0],
        cpu_seconds=spent[1],
        assignor_seconds=tally.assignor_s,
        machine_seconds=tally.machine_s,
        busy=tally.busy,
        slowest=tally.slowest,
        notes=tuple(notes),
    )


def row_of(each: Property, tally: Tally, findings: Mapping[str, Finding], *, promised: bool) -> Row:
    count, finding = tally.counts[each.name], findings.get(each.name)
    worst = count.worst if count.broken else ""
    if each.name == "bounded-time" and not worst:
        worst = tally.slowest
    if finding is not None:
        verdict, worst = BROKEN, finding.message
    elif not count.examples or (each.last and findings):
        verdict = NOT_RUN
    else:
        verdict = HOLDS if promised else MEASURED
    title = EVERYBODY if each.promise == EVERYBODY else each.promise
    return Row(each.name, each.title, title, promised, verdict, count.examples, count.broken, worst)
