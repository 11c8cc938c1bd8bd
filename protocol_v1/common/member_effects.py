"""Define the events that a member is told and the effects it wants done beyond timers. A driver exchanges both with it.

Told       Poll, PollReturned, CallbackDone, Commit, Subscribe, Unsubscribe, EnforceRebalance, Close   the application
           Responded, Disconnected, MetadataChanged                                                    the network
           TimerFired                                                                                  the clock
Wants      Send, Disconnect, RequestMetadata                                                           the network
           Call, Raise, Committed, Fetched, Closed                                                     the application
           SetTimer, CancelTimer (effects.py)                                                          the clock
Tells      Moved, RejoinNeeded, Left: facts for a trace, with the reason
Contract   after Call the application's thread is in that callback until CallbackDone; the driver sends no Poll, Close,
           Subscribe or Unsubscribe before. Requests are answered by `Responded` with the very request of the Send
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import ClassVar, TypeAlias

from rebalance_lab.assignors.model import Topic
from rebalance_lab.protocol_v1.common.effects import CancelTimer, SetTimer, TimerKey
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.fast_dataclass import fast_dataclass
from rebalance_lab.protocol_v1.common.messages import Request, Response

TopicPartition: TypeAlias = tuple[str, int]
Offsets: TypeAlias = Mapping[TopicPartition, int]


@fast_dataclass(kw_only=True)
class FindCoordinatorRequest(Request):
    """Ask any broker for the coordinator; the request is not among those that a coordinator serves. Only what a group's
    member needs.
    """

    versions: ClassVar[range] = range(0, 7)
    latest: ClassVar[int] = 6

    version: int = 6
    key: str
    key_type: int = 0


@fast_dataclass(kw_only=True)
class FindCoordinatorResponse(Response):
    error_code: Error = Error.NONE


class Callback(Enum):
    """Name the methods of the application's ConsumerRebalanceListener."""

    REVOKED = "onPartitionsRevoked"
    ASSIGNED = "onPartitionsAssigned"
    LOST = "onPartitionsLost"


class CloseOption(Enum):
    """Choose what a closing member does about its place in the group (KIP-1092)."""

    DEFAULT = "default"
    """Dynamic members leave, static ones stay."""
    LEAVE_GROUP = "leave group"
    REMAIN_IN_GROUP = "remain in group"


class Cause(Enum):
    """Name why a member wants to join (again), or is out; the value is what a trace says."""

    JOIN = "join"
    LEAVE = "leave"
    POLL_INTERVAL = "max.poll.interval"
    ENFORCED = "enforceRebalance"
    NEW_PARTITIONS = "new partitions"
    SUBSCRIPTION = "subscription change"
    GROUP_REBALANCES = "the group rebalances"
    REVOKED = "revoked partitions are to be placed"
    FOREIGN_ASSIGNMENT = "assigned what is not subscribed"
    MEMBER_ID = "a member id was handed out"
    FORGOTTEN = "the coordinator forgot this member"
    FAILED = "a rebalance failed"


class CommitOutcome(Enum):
    DONE = "committed"
    RETRIABLE = "failed for now"
    REBALANCE_IN_PROGRESS = "a rebalance is in progress"
    COMMIT_FAILED = "no longer in the group"
    FENCED = "fenced by another member with this instance id"
    TIMED_OUT = "timed out"
    FAILED = "failed"


# What a member is told


@fast_dataclass()
class Poll:
    """Report that the application enters poll(). It is inside, and the network is served, until PollReturned or a
    Raise.
    """

    positions: Offsets = field(default_factory=dict)
    """How far the application has consumed: what an auto-commit commits. Absent partitions keep what they had."""
    buffered: bool = False
    """Records that were fetched before wait for it: it returns with these at once."""


@fast_dataclass()
class PollReturned:
    """Report that the application is busy with records; max.poll.interval counts from here."""

    positions: Offsets = field(default_factory=dict)
    """How far it has consumed, as with Poll."""


@fast_dataclass()
class CallbackDone:
    error: str | None = None
    """What the application's callback raised."""


@fast_dataclass()
class Commit:
    """Commit by commitSync or commitAsync; Committed tells how it went. commitSync may be called inside a callback."""

    offsets: Offsets
    sync: bool = True


@fast_dataclass()
class Subscribe:
    topics: frozenset[str] = frozenset()
    pattern: str | None = None
    """A regular expression that whole topic names are matched against, instead of `topics`."""
    regex: str | None = None
    """The same, matched by the coordinator; only members of KIP-848 have it (SubscriptionPattern)."""


@fast_dataclass()
class Unsubscribe:
    pass


@fast_dataclass()
class EnforceRebalance:
    reason: str | None = None


@fast_dataclass()
class Close:
    option: CloseOption = CloseOption.DEFAULT
    positions: Offsets = field(default_factory=dict)
    timeout_ms: int = 30_000


@fast_dataclass()
class Responded:
    request: Request
    response: Response


@fast_dataclass()
class Disconnected:
    """Report that the connection to the coordinator broke; all requests in flight there fail."""


@fast_dataclass()
class MetadataChanged:
    """Bring fresh metadata of all topics of the cluster; it is also the answer to RequestMetadata."""

    topics: Mapping[str, Topic]


@fast_dataclass()
class TimerFired:
    key: TimerKey


Told: TypeAlias = (
    Poll
    | PollReturned
    | CallbackDone
    | Commit
    | Subscribe
    | Unsubscribe
    | EnforceRebalance
    | Close
    | Responded
    | Disconnected
    | MetadataChanged
    | TimerFired
)

# What a member wants done, and what it tells


@fast_dataclass()
class Send:
    """Send a request to the coordinator; FindCoordinator goes to any broker."""

    request: Request


@fast_dataclass(kw_only=True)
class Disconnect:
    """Drop the connection to the coordinator: it does not answer, or says that it is none."""

    reason: str


@fast_dataclass(kw_only=True)
class RequestMetadata:
    """Ask for metadata; the member does not go on before MetadataChanged comes."""


@fast_dataclass()
class Call:
    callback: Callback
    partitions: tuple[TopicPartition, ...]


@fast_dataclass(kw_only=True)
class Raise:
    """Raise an error out of poll(), which ends with it."""

    error: Error | None
    message: str


@fast_dataclass()
class Committed:
    offsets: Offsets
    outcome: CommitOutcome
    by: str
    """Who wanted it: prepare, interval, close, commitSync or commitAsync."""


@fast_dataclass()
class Fetched:
    """Tell where to go on from; -1 where nothing was committed, and the application's reset policy decides."""

    offsets: Offsets


@fast_dataclass(kw_only=True)
class Closed:
    pass


@fast_dataclass()
class Moved:
    state: str
    event: str


@fast_dataclass(kw_only=True)
class RejoinNeeded:
    cause: Cause
    reason: str
    """What the next JoinGroup says (KIP-800)."""


@fast_dataclass(kw_only=True)
class Left:
    cause: Cause
    reason: str
    sent: bool
    """Whether the coordinator is told; otherwise it learns by silence."""


MemberEffect: TypeAlias = (
    Send
    | Disconnect
    | RequestMetadata
    | Call
    | Raise
    | Committed
    | Fetched
    | Closed
    | Moved
    | RejoinNeeded
    | Left
    | SetTimer
    | CancelTimer
)
