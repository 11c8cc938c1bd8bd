"""Read what an operator decides, from a TOML file and from flags that win over it.

Given      the file's text
Returns    Settings; ContractError with the path of the first bad key
Secrets    a token is kept as its SHA-256: tokens are 32 random bytes, so there is nothing to guess and nothing to salt
Start at   read_settings
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, get_type_hints

from rebalance_lab.assignors.json_contract import ContractError, at, expect_list, expect_object, refuse_unknown
from rebalance_lab.harness.scenario.units import quoted

LOOPBACK = ("127.0.0.1", "::1", "localhost")
NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
HOST = re.compile(r"\*|[A-Za-z0-9._-]{1,253}|\[?[0-9A-Fa-f:.]{2,45}\]?")
PORT = re.compile(r"[^:]*:[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limit what one request may ask for, and how much may wait. Too large is 413, too much is 422, too many 429 or
    503.
    """

    body_bytes: int = 8_000_000
    bodies_bytes: int = 64_000_000
    """Of all open requests, as far as their bodies have arrived."""
    bodies_bytes_per_client: int = 32_000_000
    members: int = 10_000
    partitions: int = 200_000
    requests: int = 100
    """Of one batch."""
    seeds: int = 50
    simulated_days: int = 31
    simulated_events: int = 1_000_000
    """Facts that one run may tell: members that start, partitions that change hands, commits."""
    assign_s: float = 10.0
    recommend_s: float = 60.0
    simulation_s: float = 120.0
    header_s: float = 10.0
    """Until a request's head must be there; its body has body_s more."""
    body_s: float = 20.0
    idle_s: float = 15.0
    """A connection without a request."""
    connections: int = 1_000
    waiting: int = 64
    """Requests that wait for a process."""
    waiting_s: float = 2.0
    """How long a quick question may wait for a process; when it would be longer, it is refused at once."""
    slow_waiting_s: float = 30.0
    """The same for a recommendation or a sizing; a simulation waits as a job."""
    jobs: int = 16
    """Simulations, recommendations and sizings that wait or run."""
    jobs_per_client: int = 8
    """Of these, those of one token, or of one address without tokens; at least one place stays for other clients."""
    jobs_kept: int = 100
    """Simulations that are done and can still be fetched."""
    jobs_kept_per_client: int = 50
    cache_bytes: int = 64_000_000
    worker_bytes: int = 4_000_000_000
    """Address space of one process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    name: str
    sha256: str
    requests_per_minute: int = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Describe a Kafka cluster that requests may name; its address is never a request's."""

    name: str
    bootstrap: str
    timeout_s: float = 5.0
    settings: Mapping[str, str] = field(default_factory=dict)
    """For the client, by librdkafka's names: security.protocol and the like."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int | None = None
    """Processes for quick questions; as many as there are cores without it. Half as many and one more do long work."""
    allow_anonymous: bool = False
    """Without tokens on an address that others can reach."""
    allowed_hosts: tuple[str, ...] = ()
    """Names in a request's Host beside those of this machine; "*" is any. Every other name is refused, because it may
    come from a page that plays tricks with DNS.
    """
    cors_origins: tuple[str, ...] = ()
    graceful_s: float = 20.0
    limits: Limits = Limits()
    tokens: tuple[Token, ...] = ()
    clusters: Mapping[str, Cluster] = field(default_factory=dict)


SERVER_KEYS = ("host", "port", "workers", "allow_anonymous", "allowed_hosts", "cors_origins", "graceful_s")


def read_settings(text: str) -> Settings:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ContractError("", f"not TOML: {error}") from None
    refuse_unknown(data, (*SERVER_KEYS, "limits", "tokens", "clusters"), "")
    plain = {name: value for name, value in data.items() if name in SERVER_KEYS}
    settings: Settings = read_fields(Settings(), plain, "")
    check_host_names(settings.allowed_hosts, "allowed_hosts")
    clusters = expect_object(data.get("clusters", {}), "clusters")
    limits: Limits = read_fields(Limits(), expect_object(data.get("limits", {}), "limits"), "limits")
    check_body_room(limits)
    return replace(
        settings,
        limits=limits,
        tokens=read_tokens(expect_list(data.get("tokens", []), "tokens")),
        clusters={name: read_cluster(name, one, at("clusters", name)) for name, one in clusters.items()},
    )


def read_fields(default: Any, values: Mapping[str, Any], path: str) -> Any:
    """Return the dataclass with those of its fields that are given, each of the type it is declared with."""
    hints = get_type_hints(type(default))
    names = [one.name for one in fields(default)]
    refuse_unknown(values, names, path)
    return replace(default, **{name: typed(value, hints[name], at(path, name)) for name, value in values.items()})


def typed(value: Any, wanted: Any, path: str) -> Any:
    if wanted is bool and isinstance(value, bool):
        return value
    if wanted is str and isinstance(value, str) and value:
        return value
    if wanted in (int, int | None) and type(value) is int and value > 0:
        return value
    if wanted is float and type(value) in (int, float) and 0 < value < 1e9:
        return float(value)
    if wanted == tuple[str, ...] and isinstance(value, list) and all(isinstance(one, str) for one in value):
        return tuple(value)
    raise ContractError(path, f"expected {KINDS.get(wanted, 'another kind of value')}, got {quoted(value)}")


KINDS: Mapping[Any, str] = {
    bool: "true or false",
    str: "text",
    int: "a whole number above 0",
    int | None: "a whole number above 0",
    float: "a number above 0",
    tuple[str, ...]: "a list of texts",
}


def check_body_room(limits: Limits) -> None:
    """Refuse less room than one body may take: such a body would be told to come again for ever."""
    for name in ("bodies_bytes", "bodies_bytes_per_client"):
        room = getattr(limits, name)
        if room < limits.body_bytes:
            raise ContractError(
                at("limits", name), f"expected at least body_bytes, which is {limits.body_bytes:,}, got {room:,}"
            )


def check_host_names(names: Sequence[str], path: str) -> None:
    for name in names:
        if not HOST.fullmatch(name) or PORT.fullmatch(name):
            raise ContractError(path, f"expected a host such as lab.example, without a port, got {quoted(name)}")


def read_tokens(values: Sequence[Any]) -> tuple[Token, ...]:
    tokens: list[Token] = []
    for i, value in enumerate(values):
        path = at("tokens", i)
        token: Token = read_fields(Token(name="", sha256=""), expect_object(value, path), path)
        if not NAME.fullmatch(token.name) or token.name in [one.name for one in tokens]:
            raise ContractError(at(path, "name"), "every token needs a name of its own: letters, digits, '.', '_', '-'")
        if not re.fullmatch(r"[0-9a-f]{64}", token.sha256):
            raise ContractError(at(path, "sha256"), "expected 64 hex digits, as `serve --new-token NAME` prints them")
        tokens.append(token)
    return tuple(tokens)


def read_cluster(name: str, value: Any, path: str) -> Cluster:
    if not NAME.fullmatch(name):
        raise ContractError(path, "a cluster's name is made of letters, digits, '.', '_' and '-'")
    given = dict(expect_object(value, path))
    client = expect_object(given.pop("settings", {}), at(path, "settings"))
    cluster: Cluster = read_fields(Cluster(name=name, bootstrap=""), given, path)
    if not cluster.bootstrap:
        raise ContractError(at(path, "bootstrap"), "is missing: HOST:PORT")
    return replace(cluster, settings={key: str(one) for key, one in client.items()})


def check_reach(settings: Settings) -> None:
    """Refuse an address that the whole network reaches without tokens, which users would otherwise learn from a log."""
    if settings.host not in LOOPBACK and not settings.tokens and not settings.allow_anonymous:
        raise ContractError(
            "--host",
            f"{settings.host} can be reached by others and there are no tokens: configure some "
            "(`rebalance-lab serve --new-token NAME`), or say --allow-anonymous",
        )


class TooMuch(ContractError):
    """Refuse a request that exceeds one of the configured limits; `limit` names it."""

    def __init__(self, limit: str, path: str, message: str) -> None:
        super().__init__(path, message)
        self.limit = limit
