"""Restrict where the lab may connect: to this machine, or to the test cluster that the environment names.

Given      bootstrap addresses as text, or an address that a broker advertises
Returns    (host, port) pairs, or WireError in one line
"""

from __future__ import annotations

import ipaddress
import re
from typing import TypeAlias

from rebalance_lab.harness.kafka.brokers.providers.external import BOOTSTRAP_VARIABLE, configured

Address: TypeAlias = tuple[str, int]


class WireError(Exception):
    """Report in one line that the peer is not allowed, not there, does not answer, or speaks another protocol."""


def parse_bootstrap(text: str) -> list[Address]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise WireError(f"bootstrap address {text!r} is not host:port")
    return [check(parse_address(part)) for part in parts]


def parse_address(text: str) -> Address:
    found = re.fullmatch(r"(.+):(\d{1,5})", text)
    if found is None or not 0 < int(found[2]) < 65_536:
        raise WireError(f"bootstrap address {text!r} is not host:port")
    return found[1].strip("[]"), int(found[2])


def check(address: Address) -> Address:
    host, port = address
    if not is_loopback(host) and host not in configured_hosts():
        raise WireError(f"{host}:{port} is not this machine, nor the test cluster that {BOOTSTRAP_VARIABLE} names")
    return address


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def configured_hosts() -> set[str]:
    """Return the hosts of the test cluster; its nodes may advertise other ports."""
    return {parse_address(part.strip())[0] for part in (configured() or "").split(",") if part.strip()}
