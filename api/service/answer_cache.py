"""Cache answers by what was asked: the same question, body and options alike, has the same answer. Least used goes
first.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass

from rebalance_lab.api.service.workers.pool import Question

ENTRY_BYTES = 600


@dataclass(frozen=True, slots=True)
class Answer:
    body: bytes
    etag: str

    @property
    def held_bytes(self) -> int:
        """Return the size with what an entry costs beside its body: a million empty answers are not nothing."""
        return len(self.body) + ENTRY_BYTES

    @classmethod
    def of(cls, body: bytes) -> Answer:
        return cls(body, f'"{hashlib.sha256(body).hexdigest()[:32]}"')


class Cache:
    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.bytes = 0
        self._answers: OrderedDict[bytes, Answer] = OrderedDict()

    @staticmethod
    def key(question: Question) -> bytes:
        head = repr((question.operation, sorted(question.options.items(), key=repr))).encode()
        return hashlib.sha256(head + b"\0" + question.body).digest()

    def get(self, key: bytes) -> Answer | None:
        found = self._answers.get(key)
        if found is not None:
            self._answers.move_to_end(key)
        return found

    def put(self, key: bytes, answer: Answer) -> None:
        if answer.held_bytes > self.most_bytes // 8 or key in self._answers:
            return
        self._answers[key] = answer
        self.bytes += answer.held_bytes
        while self.bytes > self.most_bytes:
            _, oldest = self._answers.popitem(last=False)
            self.bytes -= oldest.held_bytes
