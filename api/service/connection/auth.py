"""Authenticate clients by their tokens, and limit how often each may ask.

Given      a request's Authorization
Returns    the name of its token; Problem 401 or 429 otherwise
Compared   as hashes, against every token there is, in constant time: neither duration nor answer tells how near a guess
           was
Start at   Guard.admit
"""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rebalance_lab.api.service.connection.problems import Problem
from rebalance_lab.api.service.service_settings import Token

CHALLENGE = {"www-authenticate": 'Bearer realm="rebalance-lab"'}


def new_token() -> tuple[str, str]:
    """Make a token to hand out, and the hash to keep."""
    token = f"rl_{secrets.token_urlsafe(32)}"
    return token, hashlib.sha256(token.encode()).hexdigest()


@dataclass(slots=True)
class Bucket:
    """Limit a rate: a bucket fills by `per_s`, holds ten seconds' worth or at least ten requests, and gives one to
    each.
    """

    per_s: float
    left: float
    at_s: float

    @property
    def most(self) -> float:
        return max(10.0, 10 * self.per_s)

    def take(self, now_s: float) -> float:
        """Take one request, and return 0, or the seconds until there is one."""
        self.left = min(self.most, self.left + (now_s - self.at_s) * self.per_s)
        self.at_s = now_s
        if self.left >= 1:
            self.left -= 1
            return 0.0
        return (1 - self.left) / self.per_s


class Guard:
    def __init__(self, tokens: Sequence[Token], clock: Callable[[], float] = time.monotonic) -> None:
        self.tokens = tuple(tokens)
        self.clock = clock
        self.buckets = {
            token.name: Bucket(token.requests_per_minute / 60, max(10.0, token.requests_per_minute / 6), clock())
            for token in tokens
        }

    def admit(self, authorization: str | None) -> str | None:
        """Return the token's name; None where there are no tokens, so that all clients are the same."""
        if not self.tokens:
            return None
        name = self.name_of(authorization)
        wait_s = self.buckets[name].take(self.clock())
        if wait_s:
            raise Problem("rate", f"the token {name} has used up its requests", retry_after_s=math.ceil(wait_s))
        return name

    def name_of(self, authorization: str | None) -> str:
        scheme, _, token = (authorization or "").partition(" ")
        given = hashlib.sha256(token.strip().encode("utf-8", "replace")).hexdigest()
        found = None
        for one in self.tokens:
            if hmac.compare_digest(one.sha256, given):
                found = one.name
        if found is None or scheme.lower() != "bearer":
            raise Problem("unauthorized", "send Authorization: Bearer with a token of this service", headers=CHALLENGE)
        return found
