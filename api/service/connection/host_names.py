"""Check the name in a request's Host. It keeps out other sites' pages: DNS rebinding gives an address a foreign name.

A name is this service's own when it is localhost, the address that the connection reached, the address of --host, or
one that the operator lists. The port is not compared, because a proxy or a container may publish another one.
Start at   HostNames.check
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

from rebalance_lab.api.service.connection.problems import Problem

LOCAL = ("localhost", "127.0.0.1", "[::1]")
HEADER = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{0,5})?")


class HostNames:
    def __init__(self, bound: str, listed: Sequence[str]) -> None:
        self.takes_all = "*" in listed
        self.names = frozenset(normalize_name(name) for name in (*LOCAL, bound, *listed))

    def check(self, header: str, reached: str) -> None:
        """Refuse a Host that is not this service's; `reached` is the address that the connection came in at."""
        found = HEADER.fullmatch(header)
        name = normalize_name(found[1]) if found else None
        if not self.takes_all and (name is None or name not in self.names | {normalize_name(reached)}):
            raise Problem(
                "wrong-host", "the request's Host is not one of this service's; `serve --allowed-host NAME` adds one"
            )


def normalize_name(name: str) -> str:
    """Return one spelling of a host: small letters, addresses without brackets in their usual form."""
    name = name.lower().removeprefix("[").removesuffix("]").removesuffix(".")
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
