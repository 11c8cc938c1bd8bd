"""The twelve canonical scenarios of the specification, epoch by epoch.

Each row is a message and its answer in the language of script.py, then the group (group epoch/assignment epoch and
state), then every member: S stable, R revoking, L waiting for others to let go, its epoch/previous epoch, what it is
assigned with assignment epochs, and after a minus what it is to give up. A member that is not written is unchanged.
"""

from __future__ import annotations

import pytest

from tests.protocol_v2.coordinator.script import Script
from tests.protocol_v2.coordinator.shown import shown_current

SCENARIOS = {
    "the first member gets everything": """
        A 0 [t4] -> 2 {0-3}             ; 2/2 Stable      ; A S 2/0 {0-3@2}
        A 2 own {0-3} -> 2 ·            ; 2/2 Stable
    """,
    "a second member waits until the first has let go": """
        A 0 [t4] -> 2 {0-3}             ; 2/2 Stable      ; A S 2/0 {0-3@2}
        B 0 [t4] -> 3 {}                ; 3/3 Reconciling ; B L 3/0 {}
        A 2 -> 2 {0,1}                  ; 3/3 Reconciling ; A R 2/2 {0,1@2} -{2,3@2}
        B 3 -> 3 ·                      ; 3/3 Reconciling ; B L 3/3 {}
        A 2 own {0,1} -> 3 ·            ; 3/3 Reconciling ; A S 3/2 {0,1@2}
        B 3 -> 3 {2,3}                  ; 3/3 Stable      ; B S 3/3 {2,3@3}
    """,
    "three join before the first one hears of it (topic t6)": """
        A 0 [t6] -> 2 {0-5}             ; 2/2 Stable      ; A S 2/0 {0-5@2}
        B 0 [t6] -> 3 {}                ; 3/3 Reconciling ; B L 3/0 {}
        C 0 [t6] -> 4 {}                ; 4/4 Reconciling ; C L 4/0 {}
        A 2 -> 2 {0,1}                  ; 4/4 Reconciling ; A R 2/2 {0,1@2} -{2-5@2}
        B 3 -> 4 ·                      ; 4/4 Reconciling ; B L 4/3 {}
        A 2 own {0,1} -> 4 ·            ; 4/4 Reconciling ; A S 4/2 {0,1@2}
        B 4 -> 4 {3,4}                  ; 4/4 Reconciling ; B S 4/4 {3,4@4}
        C 4 -> 4 {2,5}                  ; 4/4 Stable      ; C S 4/4 {2,5@4}
    """,
    "a member leaves and the other takes over": """
        A 0 [t4] -> 2 {0-3}             ; 2/2 Stable      ; A S 2/0 {0-3@2}
        B 0 [t4] -> 3 {}                ; 3/3 Reconciling ; B L 3/0 {}
        A 2 own {0,1} -> 3 {0,1}        ; 3/3 Reconciling ; A S 3/2 {0,1@2}
        B 3 -> 3 {2,3}                  ; 3/3 Stable      ; B S 3/3 {2,3@3}
        B -1 -> -1 ·                    ; 4/3 Assigning   ; B gone
        A 3 -> 4 {0-3}                  ; 4/4 Stable      ; A S 4/3 {0,1@2 2,3@4}
        A -1 -> -1 ·                    ; 5/4 Empty       ; A gone
        A 0 [t4] -> 6 {0-3}             ; 6/6 Stable      ; A S 6/0 {0-3@6}
    """,
    "a member crashes and its session ends": """
        A 0 [t4] -> 2 {0-3}             ; 2/2 Stable      ; A S 2/0 {0-3@2}
        B 0 [t4] -> 3 {}                ; 3/3 Reconciling ; B L 3/0 {}
        A 2 own {0,1} -> 3 {0,1}        ; 3/3 Reconciling ; A S 3/2 {0,1@2}
        wait 30                         ; 3/3 Reconciling
        A 3 -> 3 ·                      ; 3/3 Reconciling
        wait 16                         ; 4/3 Assigning   ; B gone
        A 3 -> 4 {0-3}                  ; 4/4 Stable      ; A S 4/3 {0,1@2 2,3@4}
        B 3 -> UNKNOWN_MEMBER_ID        ; 4/4 Stable
    """,
    "a slow revoker is removed after its rebalance timeout": """
        A 0 [t4] rto 20000 -> 2 {0-3}   ; 2/2 Stable      ; A S 2/0 {0-3@2}
        B 0 [t4] -> 3 {}                ; 3/3 Reconciling ; B L 3/0 {}
        A 2 -> 2 {0,1}                  ; 3/3 Reconciling ; A R 2/2 {0,1@2} -{2,3@2}
        wait 15                         ; 3/3 Reconciling
        A 2 -> 2 ·                      ; 3/3 Reconciling
        wait 5                          ; 4/3 Assigning   ; A gone
        B 3 -> 4 {0-3}                  ; 4/4 Stable      ; B S 4/3 {0-3@4}
        A 2 -> UNKNOWN_MEMBER_ID        ; 4/4 Stable
        A 0 [t4] -> 5 {}                ; 5/5 Reconciling ; A L 5/0 {}
    """,
    "a static member restarts in time and nobody notices": """
        A 0 [t4] i i1 -> 2 {0-3}        ; 2/2 Stable      ; A S 2/0 {0-3@2}
        B 0 [t4] -> 3 {}                ; 3/3 Reconciling ; B L 3/0 {}
        A 2 i i1 own {0,1} -> 3 {0,1}   ; 3/3 Reconciling ; A S 3/2 {0,1@2}
        B 3 -> 3 {2,3}                  ; 3/3 Stable      ; B S 3/3 {2,3@3}
        A -2 i i1 -> -2 ·               ; 3/3 Reconciling ; A S -2/2 {0,1@0}
        B 3 -> 3 ·                      ; 3/3 Reconciling
        X 0 [t4] i i1 -> 3 {0,1}        ; 3/3 Stable      ; A gone ; X S 3/0 {0,1@0}
    """,
    "a static member cannot be taken over while it is alive": """
        A 0 [t4] i i1 -> 2 {0-3}                  ; 2/2 Stable      ; A S 2/0 {0-3@2}
        X 0 [t4] i i1 -> UNRELEASED_INSTANCE_ID   ; 2/2 Stable
        X 2 i i1 -> FENCED_INSTANCE_ID            ; 2/2 Stable
        A -2 i i1 -> -2 ·                         ; 2/2 Reconciling ; A S -2/0 {0-3@0}
        wait 46                                   ; 3/2 Empty       ; A gone
        X 0 [t4] i i1 -> 4 {0-3}                  ; 4/4 Stable      ; X S 4/0 {0-3@4}
    """,
    "a topic grows and the next heartbeats share the new partitions (topic ~x)": """
        topic ~x 4
        A 0 [~x] -> 2 {0-3}             ; 2/2 Stable      ; A S 2/0 {0-3@2}
        B 0 [~x] -> 3 {}                ; 3/3 Reconciling ; B L 3/0 {}
        A 2 own {0,1} -> 3 {0,1}        ; 3/3 Reconciling ; A S 3/2 {0,1@2}
        B 3 -> 3 {2,3}                  ; 3/3 Stable      ; B S 3/3 {2,3@3}
        grow ~x 6                       ; 3/3 Stable
        A 3 -> 4 {0,1,4}                ; 4/4 Reconciling ; A S 4/3 {0,1@2 4@4}
        B 3 -> 4 {2,3,5}                ; 4/4 Stable      ; B S 4/3 {2,3@3 5@4}
    """,
    "a regular expression matches a new topic (topic ~a)": """
        topic ~a 2
        A 0 re '~.*' -> 1 {}            ; 1/1 Stable      ; A S 1/0 {}
        wait 0.1                        ; 2/1 Assigning
        A 1 -> 2 {0,1}                  ; 2/2 Stable      ; A S 2/1 {0,1@2}
        topic ~b 1                      ; 2/2 Stable
        A 2 -> 2 ·                      ; 2/2 Stable
        wait 11                         ; 2/2 Stable
        A 2 -> 2 ·                      ; 2/2 Stable
        wait 0.1                        ; 3/2 Assigning
        A 2 -> 3 {0,1 ~b:0}             ; 3/3 Stable      ; A S 3/2 {0,1@2 ~b:0@3}
    """,
    "a lost answer is forgiven once": """
        A 0 [t4] -> 2 {0-3}             ; 2/2 Stable      ; A S 2/0 {0-3@2}
        B 0 [t4] -> 3 {}                ; 3/3 Reconciling ; B L 3/0 {}
        A 2 -> 2 {0,1}                  ; 3/3 Reconciling ; A R 2/2 {0,1@2} -{2,3@2}
        A 2 own {0,1} -> 3 ·            ; 3/3 Reconciling ; A S 3/2 {0,1@2}
        A 2 own {0,1} full -> 3 {0,1}   ; 3/3 Reconciling
        A 2 -> FENCED_MEMBER_EPOCH      ; 3/3 Reconciling
        A 0 [t4] -> 3 {0,1}             ; 3/3 Reconciling
        B 3 own {} -> 3 {2,3}           ; 3/3 Stable      ; B S 3/3 {2,3@3}
    """,
    "a classic member takes two rounds to get its share": """
        A 0 [t4] -> 2 {0-3}             ; 2/2 Stable      ; A S 2/0 {0-3@2}
        join c -> 3                     ; 3/3 Reconciling ; c L 3/0 {}
        sync c 3 -> {}                  ; 3/3 Reconciling
        beat c 3 -> NONE                ; 3/3 Reconciling
        A 2 -> 2 {0,1}                  ; 3/3 Reconciling ; A R 2/2 {0,1@2} -{2,3@2}
        A 2 own {0,1} -> 3 ·            ; 3/3 Reconciling ; A S 3/2 {0,1@2}
        beat c 3 -> REBALANCE_IN_PROGRESS ; 3/3 Reconciling
        join c -> 3                     ; 3/3 Stable      ; c S 3/3 {2,3@3}
        sync c 3 -> {2,3}               ; 3/3 Stable
        beat c 3 -> NONE                ; 3/3 Stable
    """,
}


@pytest.mark.parametrize("title", SCENARIOS)
def test_epoch_by_epoch(title):
    script = Script(title, [])
    members: dict[str, str] = {}
    for row in filter(None, map(str.strip, SCENARIOS[title].splitlines())):
        message, *after = (part.strip() for part in row.replace("~", "run-").split(";"))
        script.step(message)
        if not after:
            continue
        for entry in after[1:]:
            who, said = entry.split(" ", 1)
            members.pop(who, None) if said == "gone" else members.update({who: script.canonical_record(said)})
        group = script.player.machine.groups["g"]
        assert f"{group.group_epoch}/{group.assignment_epoch} {group.state.value}" == after[0], row
        assert {member.member_id: shown_current(member.current) for member in group.members.values()} == members, row
