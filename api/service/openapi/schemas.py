"""Write the JSON contract, scenarios, answers and problems as JSON Schema 2020-12. Start at components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from rebalance_lab.api.service.connection.problems import TITLES
from rebalance_lab.assignors.json_contract import INT32_MAX, MAX_PARTITIONS
from rebalance_lab.assignors.quality import Quality
from rebalance_lab.assignors.strategies import BUILT_IN, SHORT
from rebalance_lab.harness.scenario.forms.json_schema import scenario_schema

Schema = dict[str, Any]
STRATEGY_NAMES = [f"{name}{static}" for name in (*BUILT_IN, *SHORT) for static in ("", "+static")]
ASSIGNORS = "range|roundrobin|sticky|cooperative-sticky|load-aware|uniform"
OFFERED = rf"(classic/)?({ASSIGNORS})(,({ASSIGNORS}))*(\+static)?|consumer/(range|uniform)(\+static)?"
PARTITION = {"type": "integer", "minimum": 0, "maximum": INT32_MAX}
SHARE = {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer", "minimum": 0}}}
NAMES_KEY = {"minLength": 1}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def record(properties: Mapping[str, Any], required: Sequence[str] = (), description: str = "", **more: Any) -> Schema:
    made = {"type": "object", "properties": dict(properties), "additionalProperties": False, **more}
    return (
        made
        | ({"required": list(required)} if required else {})
        | ({"description": description} if description else {})
    )


def or_null(schema: Mapping[str, Any]) -> Schema:
    return {"anyOf": [dict(schema), {"type": "null"}]}


def listed(schema: Mapping[str, Any], **more: Any) -> Schema:
    return {"type": "array", "items": dict(schema), **more}


STRING = {"type": "string"}
NAME = {"type": "string", "minLength": 1}
NUMBER = {"type": "number"}
COUNT = {"type": "integer", "minimum": 0}
ANY_OBJECT: Schema = {"type": "object"}

TOPIC = record(
    {
        "partitions": {"type": "integer", "minimum": 0, "maximum": MAX_PARTITIONS},
        "racks": or_null(listed(listed(NAME))) | {"description": "Of each partition, the racks of its replicas."},
        "load": or_null(listed({"type": "number", "minimum": 0})) | {"description": "Of each partition."},
        "id": or_null({"type": "string", "pattern": "^[A-Za-z0-9_-]{21}[AQgw]$"})
        | {"description": "Kafka's base64 topic id: consumer/uniform's answer depends on it."},
    },
    ["partitions"],
)
MEMBER = record(
    {
        "topics": listed(NAME) | {"description": "What it subscribes to."},
        "owned": or_null(
            {
                "type": "object",
                "propertyNames": NAMES_KEY,
                "additionalProperties": listed(PARTITION, uniqueItems=True),
            }
        ),
        "generation": or_null({"type": "integer", "minimum": -1, "maximum": INT32_MAX}),
        "instance_id": or_null(STRING),
        "rack": or_null(STRING),
        "capacity": or_null({"type": "number", "exclusiveMinimum": 0}),
    },
    ["topics"],
)
GROUP = record(
    {
        "topics": {"type": "object", "propertyNames": NAMES_KEY, "additionalProperties": ref("Topic")},
        "members": {"type": "object", "propertyNames": NAMES_KEY, "additionalProperties": ref("Member")},
    },
    ["topics", "members"],
    "What an assignor sees: topics, and members in their order of arrival.",
)
FAULT = record({"path": STRING, "message": STRING}, ["path", "message"])
QUALITY = record(
    {one.name: {"type": ["number", "null"]} for one in fields(Quality)},
    [one.name for one in fields(Quality)],
    "Balance, moves, racks and load as one flat row; null where it does not apply.",
)
ASSIGNMENT = {
    "type": "object",
    "description": "Member to topic to partitions, ascending.",
    "additionalProperties": SHARE,
}
ANSWER = record(
    {
        "strategy": STRING,
        "assignment": ASSIGNMENT,
        "quality": ref("Quality"),
        "explanation": listed(ANY_OBJECT),
    },
    ["strategy", "assignment", "quality"],
)
FAULTY = record({"strategy": STRING, "error": FAULT}, ["error"])
INTERVAL = or_null(ANY_OBJECT)
PLAN = record(
    {
        "demand": NUMBER,
        "with_headroom": NUMBER,
        "partitions": COUNT,
        "consumers": or_null(COUNT),
        "most_partitions_a_consumer": or_null(COUNT),
        "utilisation": or_null(NUMBER),
        "catch_up_s": or_null(NUMBER),
    },
    ["demand", "with_headroom", "partitions", "consumers"],
)
RATE = r"^[0-9]+(\.[0-9]+)?\s*([kKMG]?|B|kB|KB|MB|GB|KiB|MiB|GiB)\s*/\s*(s|m|h|d)$"


def text(pattern: str, *examples: str) -> Schema:
    return {"type": "string", "pattern": pattern, "examples": list(examples)}


STRATEGY = rf"({'|'.join(BUILT_IN)})(\+static)?"
PERCENTAGE = {"anyOf": [{"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?\s*%$"}, {"const": 0}]}
ONE_TO_MANY = {"type": "integer", "minimum": 1, "maximum": 10_000_000}
SIZE = record(
    {
        "target": text(RATE, "5k/s", "50MB/s") | {"description": "What comes in at the busiest time."},
        "per_consumer": text(RATE, "600/s") | {"description": "What one consumer does."},
        "per_partition": text(RATE, "10MB/s") | {"description": "What producers can write to one partition."},
        "record_size": text(r"^[0-9]+(\.[0-9]+)?\s*(B|kB|KB|MB|GB|KiB|MiB|GiB)$", "1kB"),
        "growth": PERCENTAGE | {"description": "More each year; needs a horizon.", "examples": ["30%"]},
        "horizon": text(r"^[0-9]{1,2}(\.[0-9]{1,3})?\s*(y|mo|d)$", "2y"),
        "headroom": PERCENTAGE | {"description": "On top of the demand.", "examples": ["20%"]},
        "outage": text(r"^[0-9]{1,6}(ms|s|m|h)$", "30m") | {"description": "To catch up after."},
        "partitions": ONE_TO_MANY | {"description": "Those there are."},
        "consumers": ONE_TO_MANY | {"description": "Those there are."},
        "brokers": ONE_TO_MANY | {"description": "Those there are."},
        "replication": ONE_TO_MANY,
        "broker_limit": ONE_TO_MANY | {"description": "Replicas on one broker."},
        "strategies": text(f"^({STRATEGY})(,({STRATEGY}))*$", "classic/range,consumer/uniform")
        | {"description": "What a deploy is simulated with; the first one's standstill counts."},
        "deploys": {"type": "integer", "minimum": 0, "maximum": 1_000}
        | {"description": "Each day, 1 without it; 0 leaves their cost out."},
        "downtime": text(r"^[0-9]{1,3}(ms|s)$", "10s") | {"description": "Of a consumer in a deploy."},
    },
    ["target", "per_consumer"],
)
DEPLOY_COST = record(
    {
        "strategy": STRING,
        "unowned_s": NUMBER | {"description": "Partition-seconds without an owner."},
        "unowned_longest_s": NUMBER | {"description": "The longest that one partition stands still in one piece."},
        "rebalances": COUNT,
        "moved": COUNT,
        "read_twice": NUMBER,
        "waiting": NUMBER | {"description": "What waits at the worst moment, in the unit of the answer."},
        "catch_up_s": or_null(NUMBER) | {"description": "Until that is done; null: never, for want of room to spare."},
        "estimated": {"type": "boolean", "description": "From a smaller group."},
    },
    ["strategy", "unowned_s", "unowned_longest_s", "waiting", "catch_up_s", "estimated"],
)
SIZING = {
    "type": "object",
    "required": ["unit", "partitions", "limited_by", "now", "horizon", "replicas", "brokers_needed", "notes"],
    "properties": {
        "unit": {"enum": ["records", "bytes"]},
        "partitions": COUNT,
        "limited_by": {"enum": ["consumer", "partition"]},
        "now": ref("Plan"),
        "horizon": ref("Plan"),
        "replicas": COUNT,
        "brokers_needed": COUNT,
        "standstill": or_null(NUMBER)
        | {"description": "The part of its time for which a partition has no owner because of deploys."},
        "notes": listed(STRING),
        "deploy": or_null(
            record(
                {
                    "consumers": COUNT,
                    "a_day": COUNT,
                    "takes_s": NUMBER,
                    "assumed": STRING,
                    "costs": listed(DEPLOY_COST),
                },
                ["consumers", "a_day", "takes_s", "assumed", "costs"],
                "What a rolling deploy of the group costs, as simulated.",
            )
        ),
    },
}
ADVICE = {
    "type": "object",
    "required": [
        "strategy", "now", "verdict", "summary", "sureness", "reasons", "equals", "warnings", "properties",
        "migration", "notes", "comparison",
    ],
    "properties": {
        "strategy": STRING,
        "now": or_null(STRING),
        "verdict": {
            "enum": ["clear", "a small difference", "too close to call", "too few seeds", "nothing to compare with"]
        },
        "summary": STRING,
        "sureness": STRING,
        "reasons": listed(STRING),
        "wins": NUMBER,
        "compared_with": or_null(STRING),
        "difference": INTERVAL,
        "equals": listed(STRING),
        "warnings": listed(STRING),
        "properties": record(
            {
                name: or_null({"type": "object", "additionalProperties": STRING})
                for name in ("java", "librdkafka", "broker")
            }
            | {"notes": listed(STRING)},
            description="What to paste, for each kind of client.",
        ),
        "migration": listed(ANY_OBJECT) | {"description": "Steps from what runs now."},
        "notes": listed(STRING),
        "evidence": or_null(ANY_OBJECT)
        | {"description": "What the published decision table says of scenarios like this one: the nearest cells."},
        "comparison": {
            "type": "object",
            "description": "The evidence: every run, and the ranking by the weights. Can be sent back in to be ranked "
            "by other weights.",
            "required": ["scenario", "seeds", "weights", "ranking", "runs"],
            "properties": {"ranking": listed(ANY_OBJECT), "runs": listed(ANY_OBJECT), "seeds": listed(COUNT)},
        },
    },
}  # fmt: skip
JOB = record(
    {
        "id": STRING,
        "state": {"enum": ["queued", "running", "done", "failed", "cancelled"]},
        "progress": {
            "type": "object",
            "required": ["done"],
            "properties": {
                "done": {"type": "number", "minimum": 0, "maximum": 1},
                "at_ms": COUNT | {"description": "Virtual time."},
                "events": COUNT,
            },
        },
        "links": record(dict.fromkeys(("self", "events", "result"), STRING), ("self", "events", "result")),
        "problem": ref("Problem"),
    },
    ["id", "state", "progress", "links"],
)
RUN = {
    "type": "object",
    "required": ["scenario", "strategy", "seed", "until_ms", "broken", "costs", "ownership", "unowned", "events"],
    "properties": {
        "scenario": STRING,
        "strategy": STRING,
        "seed": COUNT,
        "until_ms": COUNT,
        "broken": or_null(ANY_OBJECT) | {"description": "The invariant that a run broke; null for a sound one."},
        "costs": {"type": "object", "additionalProperties": NUMBER},
        "ownership": {
            "type": "object",
            "additionalProperties": record({"is": STRING, "partitions": SHARE}, ("is", "partitions")),
        },
        "unowned": SHARE,
        "events": listed(record({"at_ms": COUNT, "kind": STRING, "what": STRING}, ("at_ms", "kind", "what"))),
        "notes": listed(STRING),
        "drawing": ANY_OBJECT | {"description": "The run as intervals, for a chart."},
    },
}
LIVE_GROUP = {
    "type": "object",
    "required": ["group", "protocol", "state", "assignor", "members", "partitions", "window", "snapshot"],
    "properties": {
        "group": STRING,
        "protocol": {"enum": ["classic", "consumer"]},
        "state": STRING,
        "assignor": STRING,
        "members": listed(ANY_OBJECT),
        "partitions": listed(ANY_OBJECT),
        "window": ANY_OBJECT | {"description": "The looks that statuses come from, and what they cannot tell."},
        "snapshot": ANY_OBJECT,
    },
}
PROBLEM = {
    "type": "object",
    "description": "RFC 9457 problem details.",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"enum": [f"urn:rebalance-lab:problem:{kind}" for kind in TITLES]},
        "title": STRING,
        "status": {"type": "integer"},
        "detail": STRING,
        "path": STRING | {"description": "Of the bad field: group.members.c1.topics[0]; a parameter's name."},
        "limit": STRING | {"description": "Which of the service's limits, by its name in the settings."},
        "request_id": STRING,
    },
}
STRATEGY_INFO = record(
    {
        "name": STRING,
        "protocol": {"enum": ["classic", "consumer"]},
        "assignor": STRING,
        "short": or_null(STRING),
        "rebalance": {"enum": ["eager", "cooperative", "incremental"]},
        "what": STRING,
    },
    ["name", "protocol", "assignor", "short", "rebalance", "what"],
)


def components() -> dict[str, Schema]:
    request = record({"strategy": or_null(ref("Strategy")), "group": ref("Group")}, ["group"])
    return {
        "Strategy": {"enum": STRATEGY_NAMES},
        "Topic": TOPIC,
        "Member": MEMBER,
        "Group": GROUP,
        "Request": request,
        "Batch": record(
            {"requests": listed({}) | {"description": "Each is a Request; one that is wrong is told so in its place."}},
            ["requests"],
        ),
        "Quality": QUALITY,
        "Answer": ANSWER,
        "Answers": record({"results": listed({"anyOf": [ref("Answer"), FAULTY]})}, ["results"]),
        "SideBySide": record(
            {"group": ref("Group"), "strategies": listed(ref("Strategy"), minItems=1, maxItems=len(BUILT_IN))},
            ["group"],
        ),
        "Compared": record(
            {
                "results": listed({"anyOf": [ref("Answer"), FAULTY]}),
                "differences": listed(
                    record(
                        {"topic": STRING, "partition": COUNT, "owners": listed(or_null(STRING))},
                        ("topic", "partition", "owners"),
                    )
                )
                | {"description": "Partitions that do not go to the same member everywhere."},
            },
            ["results", "differences"],
        ),
        "Size": SIZE,
        "Plan": PLAN,
        "Sizing": SIZING,
        "Advice": ADVICE,
        "Job": JOB,
        "JobEvent": record(
            {
                "event": {"enum": ["progress", "done", "failed", "cancelled"]},
                "data": {
                    "type": "string",
                    "contentMediaType": "application/json",
                    "contentSchema": ref("Job"),
                },
            },
            ["event", "data"],
        ),
        "Run": RUN,
        "LiveGroup": LIVE_GROUP,
        "Problem": PROBLEM,
        "StrategyInfo": STRATEGY_INFO,
        **scenario_components(),
    }


def scenario_components() -> dict[str, Schema]:
    """Return the published schema of a scenario; as everywhere in it, what is optional may also be null."""
    whole = scenario_schema()
    parts = {f"Scenario{name}": part for name, part in whole.pop("$defs").items()}
    scenario = {key: value for key, value in whole.items() if key not in ("$schema", "title")}
    scenario["properties"]["strategy"] = or_null({"type": "string", "pattern": f"^({OFFERED})$"})
    made: dict[str, Schema] = rewritten({"Scenario": scenario, **parts})
    return made


def rewritten(value: Any) -> Any:
    if isinstance(value, list):
        return [rewritten(one) for one in value]
    if isinstance(value, dict):
        return {
            key: one.replace("#/$defs/", "#/components/schemas/Scenario") if key == "$ref" else rewritten(one)
            for key, one in value.items()
        }
    return value
