"""Read a topic's form into a TopicSpec: curves become steps, skews become weights, and racks are dealt out."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

from rebalance_lab.assignors.json_contract import ContractError, at
from rebalance_lab.harness.scenario.forms.topic_form import BurstForm, DailyForm, RateForm, StepForm, TopicForm
from rebalance_lab.harness.scenario.model import Rate, TopicSpec

DAY_MS = 86_400_000
STEPS_OF_A_CURVE = 48
SHORTEST_STEP_MS, LONGEST_STEP_MS = 60_000, 900_000
REPLICAS = 3
TOO_LATE = "comes after the scenario's duration"

Steps = list[tuple[int, float]]


def read_topic(name: str, form: TopicForm, path: str, duration_ms: int) -> TopicSpec:
    return TopicSpec(
        name=name,
        partitions=form.partitions,
        rate=Rate() if form.rate is None else read_rate(form.rate, at(path, "rate"), duration_ms),
        weights=None if form.skew is None else read_skew(form.skew, form.partitions, at(path, "skew")),
        racks=read_racks(form, path),
    )


def read_rate(form: RateForm, path: str, duration_ms: int) -> Rate:
    given = [key for key in ("base", "daily", "steps") if getattr(form, key)] or ["base"]
    if len(given) > 1:
        raise ContractError(at(path, given[1]), f"a rate has {given[0]} or {given[1]}, not both")
    if form.steps:
        if form.bursts:
            raise ContractError(at(path, "bursts"), "steps say everything: bursts go with base or daily")
        return Rate(tuple(read_steps(form.steps, at(path, "steps"), duration_ms)))
    if form.daily is None and form.base is None:
        raise ContractError(path, "says no rate: give base, daily or steps")
    if form.daily is not None:
        steps = daily_steps(form.daily, at(path, "daily"), duration_ms)
    else:
        steps = [(0, form.base or 0.0)]
    if not form.bursts and form.daily is None and not form.base:
        raise ContractError(at(path, "base"), "must be above 0, unless there are bursts")
    for i, burst in enumerate(form.bursts):
        check_burst(form.bursts, i, at(path, "bursts"), duration_ms)
        steps = with_burst(steps, burst)
    # The end of a burst may lie further away than any duration that can be written.
    return Rate(tuple(step for step in steps if step[0] <= duration_ms))


def read_steps(forms: Sequence[StepForm], path: str, duration_ms: int) -> Steps:
    if forms[0].at != 0:
        raise ContractError(at(at(path, 0), "at"), "the first step begins at 0")
    for i in range(1, len(forms)):
        if forms[i].at <= forms[i - 1].at:
            raise ContractError(at(at(path, i), "at"), "steps go by time, each later than the one before")
        if forms[i].at > duration_ms:
            raise ContractError(at(at(path, i), "at"), TOO_LATE)
    return [(step.at, step.rate) for step in forms]


def daily_steps(form: DailyForm, path: str, duration_ms: int) -> Steps:
    """Cut a cosine over the day into steps that are short beside the scenario and the day."""
    if form.high <= form.low:
        raise ContractError(at(path, "high"), f"must be above low ({form.low:g}/s)")
    for key in ("peak", "start"):
        if getattr(form, key) > DAY_MS:
            raise ContractError(at(path, key), "is a time of day, at most 24h")
    length = min(max(duration_ms // STEPS_OF_A_CURVE, SHORTEST_STEP_MS), LONGEST_STEP_MS)
    middle, swing = (form.high + form.low) / 2, (form.high - form.low) / 2

    def rate_at(ms: float) -> float:
        # Ten digits: what the last bits of a cosine are differs between machines, and a run must not.
        return float(f"{middle + swing * math.cos(2 * math.pi * (form.start + ms - form.peak) / DAY_MS):.10g}")

    return [(begin, rate_at(begin + length / 2)) for begin in range(0, duration_ms, length)]


def check_burst(bursts: Sequence[BurstForm], i: int, path: str, duration_ms: int) -> None:
    if i and bursts[i].at < bursts[i - 1].at + bursts[i - 1].lasts:
        raise ContractError(at(at(path, i), "at"), "begins before the burst before it has ended")
    if bursts[i].at > duration_ms:
        raise ContractError(at(at(path, i), "at"), TOO_LATE)


def with_burst(steps: Steps, burst: BurstForm) -> Steps:
    """Apply a burst: its rate while it lasts, then what the rate would have been."""
    begin, end = burst.at, burst.at + burst.lasts
    after = steps[bisect_right([at_ms for at_ms, _ in steps], end) - 1][1]
    kept = [step for step in steps if step[0] < begin or step[0] > end]
    return sorted([*kept, (begin, burst.rate), (end, after)])


def read_skew(skew: str | list[float], partitions: int, path: str) -> tuple[float, ...]:
    if isinstance(skew, str):
        exponent = float(skew.split()[1])
        raw = [float(f"{(i + 1) ** -exponent:.12g}") for i in range(partitions)]
    else:
        raw = [float(weight) for weight in skew]
        if len(raw) != partitions:
            raise ContractError(path, f"has {len(raw)} weights for {partitions} partitions; it needs one each")
    total = math.fsum(raw)
    # What adds up to 1 stays as it is to the last digit: a scenario written and read again is the same.
    return tuple(raw) if abs(total - 1) < 1e-9 else tuple(weight / total for weight in raw)


def read_racks(form: TopicForm, path: str) -> tuple[tuple[str, ...], ...] | None:
    racks = form.racks
    if racks is None or isinstance(racks[0], list):
        if form.replicas is not None:
            raise ContractError(at(path, "replicas"), "goes with a plain list of racks")
        if racks is not None and len(racks) != form.partitions:
            message = f"has {len(racks)} entries for {form.partitions} partitions; it needs one each"
            raise ContractError(at(path, "racks"), message)
        return None if racks is None else tuple(tuple(replicas) for replicas in racks)
    replicas = range(form.replicas or REPLICAS)
    return tuple(
        tuple(dict.fromkeys(racks[(partition + i) % len(racks)] for i in replicas))
        for partition in range(form.partitions)
    )
