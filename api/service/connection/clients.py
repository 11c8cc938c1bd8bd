"""Tell clients apart, for limits that each of them has: by the token, or by the address where there are no tokens."""

from __future__ import annotations

import ipaddress

NETWORK_BITS = 64
"""A client with IPv6 has a whole network of this size, and could come from another address each time."""


def name_client(token: str | None, address: str) -> str:
    """Return the name under which limits count a client."""
    if token is not None:
        return token
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address) or found.ipv4_mapped:
        return str(getattr(found, "ipv4_mapped", None) or found)
    return str(ipaddress.ip_network((found, NETWORK_BITS), strict=False))
