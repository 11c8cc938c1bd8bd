"""Shorten a request or an answer to one line for the chart of `play`; --json has the rest.

Partitions are short: `orders 0-2 5`. A heartbeat of KIP-848 shows its epoch and only what it says is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

Body = Mapping[str, Any]
SPECIAL_EPOCHS = {0: "joins", -1: "leaves", -2: "steps out"}


def partitions_text(topics: Iterable[Body]) -> str:
    """Return `orders 0-2 5, payments 1`; or `nothing`."""
    listed = [f"{topic['topic_name']} {ranges(topic['partitions'])}" for topic in topics if topic["partitions"]]
    return ", ".join(listed) or "nothing"


def ranges(numbers: Iterable[int]) -> str:
    ordered = sorted(numbers)
    cuts = [0, *(i + 1 for i, (one, next_one) in enumerate(pairwise(ordered)) if next_one != one + 1), len(ordered)]
    runs = [ordered[start:end] for start, end in pairwise(cuts)]
    return " ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs if run)


# Requests


def request_text(body: Any) -> str:
    """Print what tells one request from the next; timeouts and bytes are left to --json."""
    if not isinstance(body, Mapping):
        return ""
    told = [str(body[key]) for key in ("group_id", "member_id", "group_instance_id", "instance_id") if body.get(key)]
    if "member_epoch" in body:
        return " ".join([*told, *heartbeat_parts(body)])
    generation = body.get("generation_id", body.get("generation_id_or_member_epoch"))
    if generation is not None:
        told.append(f"generation {generation}")
    for key in ("protocols", "topics"):
        names = [str(item.get("name", item.get("topic_name", ""))) for item in body.get(key) or ()]
        if names:
            told.append(f"[{', '.join(names)}]")
    for key in ("members", "assignments"):
        if body.get(key):
            told.append(f"{key} {', '.join(str(item.get('member_id')) for item in body[key])}")
    for key in ("groups", "groups_names", "group_ids"):
        told += [str(name if isinstance(name, str) else name.get("group_id")) for name in body.get(key) or ()]
    for resource in body.get("resources") or ():
        told.append(f"{resource.get('resource_name')} {settings_text(resource.get('configs') or ())}")
    return " ".join(told)


def heartbeat_parts(body: Body) -> list[str]:
    epoch = body["member_epoch"]
    told = [SPECIAL_EPOCHS.get(epoch, f"epoch {epoch}")]
    if body.get("subscribed_topic_names") is not None:
        told.append(f"[{', '.join(map(str, body['subscribed_topic_names']))}]")
    if body.get("subscribed_topic_regex") is not None:
        told.append(f"regex '{body['subscribed_topic_regex']}'")
    if body.get("server_assignor"):
        told.append(f"by {body['server_assignor']}")
    if body.get("topic_partitions") is not None and epoch != 0:
        told.append(f"owns {partitions_text(body['topic_partitions'])}")
    return told


def settings_text(configs: Iterable[Body]) -> str:
    return ", ".join(f"{one.get('name')}={one.get('value')}" for one in configs)


# Answers


def worst_error(body: Body) -> str:
    """Return the first error that stands anywhere in an answer, or NONE."""
    return next((error for error in errors_in(body) if error != "NONE"), "NONE")


def errors_in(value: Any) -> list[str]:
    if isinstance(value, list):
        return [error for item in value for error in errors_in(item)]
    if not isinstance(value, Mapping):
        return []
    own = [value["error_code"]] if "error_code" in value else []
    return own + [error for item in value.values() for error in errors_in(item)]


def answer_text(body: Body) -> str:
    told = [worst_error(body)]
    if body.get("generation_id", -1) >= 0:
        leads = body["leader"] == body["member_id"]
        listed = f" of {len(body['members'])}" if body["members"] else ""
        told.append(
            f"generation {body['generation_id']}, {body['protocol_name']}, {'leads' if leads else 'follows'}{listed}"
        )
        if body.get("skip_assignment"):
            told.append("skips the assignment")
    if body.get("member_id"):
        told.append(str(body["member_id"]))
    if told[0] == "NONE" and "member_epoch" in body:
        told.append(f"epoch {body['member_epoch']}")
    for key, describe in DETAILS.items():
        if body.get(key):
            told.append(describe(body[key]))
    return "  ".join(told)


def assignment_text(assignment: str | Body) -> str:
    """Print bytes in the classic protocol, partitions in KIP-848."""
    if isinstance(assignment, Mapping):
        return f"is given {partitions_text(assignment['topic_partitions'])}"
    return f"assignment {assignment if len(assignment) <= 24 else assignment[:21] + '...'}"


def described(groups: list[Body]) -> str:
    return "; ".join(map(described_group, groups))


def described_group(group: Body) -> str:
    if "topics" in group:
        found = [
            f"{topic.get('name', topic.get('topic_name'))}-{one['partition_index']} at {one['committed_offset']}"
            for topic in group["topics"]
            for one in topic["partitions"]
        ]
        return f"{group['group_id']} {', '.join(found) or 'no offsets'}"
    members = group.get("members", ())
    epochs = f" epoch {group['group_epoch']}/{group['assignment_epoch']}" if group.get("group_epoch") else ""
    head = f"{group['group_id']} {group.get('group_state', '')}{epochs} {len(members)} members"
    shares = [
        f"{one['member_id']} at {one['member_epoch']}: {partitions_text(one['assignment']['topic_partitions'])}"
        for one in members
        if "member_epoch" in one
    ]
    return " | ".join([head, *shares])


DETAILS: dict[str, Callable[[Any], str]] = {"assignment": assignment_text, "groups": described}
