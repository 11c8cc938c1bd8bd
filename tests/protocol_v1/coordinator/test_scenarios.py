"""The canonical scenarios, S1 to S12: the coordinator's half of each, with the members' messages written out."""

from __future__ import annotations

import pytest

from tests.protocol_v1.coordinator.script import check

SCENARIOS = {
    "S1 three dynamic members join one after the other": """
        config group.initial.rebalance.delay.ms=3000
        J A new T=45000 R=300000 -> 79
        J A park as=ja                       # leads, and the group waits 3 s for others
        D -> PreparingRebalance
        @1000 J B new T=45000 R=300000 -> 79
        J B park as=jb
        @2000 J C new T=45000 R=300000 -> 79
        J C park as=jc
        @3000 D -> PreparingRebalance        # newcomers extend the wait once
        @6000 <- ja 0 gen=1 leader listed=3
        <- jb 0 gen=1 follower
        <- jc 0 gen=1 follower
        D -> CompletingRebalance
        S B park as=sb
        S C park as=sc
        S A plan=A:t0t1,B:t2t3,C:t4t5 -> 0 assignment=t0t1
        <- sb 0 assignment=t2t3
        <- sc 0 assignment=t4t5
        D -> Stable
        +3000 H A -> 0
    """,
    "S2 one member leaves, the others rejoin without a delay": """
        G A* B C T=45000 R=300000
        C C -> codes=0
        L C -> 0 entries=0
        D -> PreparingRebalance
        +3000 H A -> 27
        H B -> 27
        C A gen=1 -> codes=0                 # a member commits before it rejoins
        J A list=range:gen1 park as=ja
        +1 J B list=range:gen1 -> 0 gen=2 follower
        <- ja 0 gen=2 leader listed=2
        S B park as=sb
        S A plan=A:t0t1t2,B:t3t4t5 -> 0 assignment=t0t1t2
        <- sb 0 assignment=t3t4t5
    """,
    "S2 ...and a remaining member leads if the leader left": """
        G A* B C
        L A -> 0
        J B list=range:gen1 park as=jb
        J C list=range:gen1 -> 0 gen=2 leader listed=2
        <- jb 0 gen=2 follower
    """,
    "S3 a member that falls silent is missed after its session": """
        G A* B C T=45000 R=300000
        @done+40000 H A -> 0
        H B -> 0
        @done+45010 H A -> 27
        J A list=range:gen1 park as=ja
        J B list=range:gen1 -> 0 gen=2
        <- ja 0 gen=2 listed=2
        H C gen=1 -> 25
    """,
    "S3 ...and holds back a join phase under way until then": """
        G A* B C T=45000 R=300000
        @done+30000 H B -> 0
        L B -> 0
        J A park as=ja
        @done+45010 <- ja 0 gen=2 listed=1
    """,
    "S4 a static follower restarts within its session: nobody notices": """
        G i1/i1* i2/i2 i3/i3 T=45000
        +10000 J b2 new i=i2 T=45000 -> 0 gen=1 leader=i1 listed=0 follower
        S b2 gen=1 -> 0 assignment=I2
        H i1 -> 0
        H i3 -> 0
        D -> Stable
    """,
    "S4 ...and a static leader is told not to assign": """
        G i1/i1* i2/i2 T=45000
        +10000 J a2 new i=i1 T=45000 -> 0 gen=1 leader listed=2 skip
        S a2 gen=1 -> 0 assignment=I1
    """,
    "S5 a static member restarts after its session: two rebalances": """
        G i1/i1* i2/i2 i3/i3 T=45000 R=300000
        @done+40000 H i1 -> 0
        H i3 -> 0
        @done+45010 H i1 -> 27
        J i1 list=range:g1 park as=j1
        J i3 list=range:g1 -> 0 gen=2
        <- j1 0 gen=2 listed=2
        S i3 park
        S i1 plan=i1:x,i3:y -> 0
        +5000 J b2 new i=i2 T=45000 R=300000 park as=j2
        D -> PreparingRebalance              # added at once, without MEMBER_ID_REQUIRED
        J i1 list=range:g2 park as=j1b
        J i3 list=range:g2 -> 0 gen=3
        <- j2 0 gen=3
        <- j1b 0 gen=3 listed=3
    """,
    "S5 ...or one, if it comes back before the first has ended": """
        G i1/i1* i2/i2 i3/i3 T=45000 R=300000
        @done+40000 H i1 -> 0
        H i3 -> 0
        @done+45010 J b2 new i=i2 T=45000 R=300000 park as=j2
        J i1 list=range:g1 park as=j1
        J i3 list=range:g1 -> 0 gen=2
        <- j2 0 gen=2
        <- j1 0 gen=2 listed=3
    """,
    "S6 two processes with one instance id: the first is fenced": """
        G x1/i1* z
        J y1 new i=i1 -> 0 gen=1
        S y1 gen=1 -> 0 assignment=X1
        C x1 gen=1 i=i1 -> codes=82
        H x1 gen=1 i=i1 -> 82
        J x2 new i=i1 -> 0 gen=1             # if it polls on, it fences the other
        H y1 gen=1 i=i1 -> 82
    """,
    "S7 a slow poller leaves by itself and comes back as somebody else": """
        G A* B C
        +10 L B -> 0
        H A -> 27
        J A list=range:g1 park as=ja
        J C list=range:g1 -> 0 gen=2
        <- ja 0 listed=2
        S C park
        S A plan=A:x,C:y -> 0
        C B gen=1 -> codes=25
        J B new -> 79
        J B park as=jb
        J A list=range:g2 park
        J C list=range:g2 -> 0 gen=3
        <- jb 0 gen=3
    """,
    "S8 cooperative scale-out takes two generations": """
        Gj m1* m2 list=cooperative-sticky:g0
        S m2 name=cooperative-sticky park
        S m1 name=cooperative-sticky plan=m1:t0t1t2,m2:t3t4t5 -> 0
        J m3 new list=cooperative-sticky:none -> 79
        J m3 park as=j3
        H m1 -> 27
        H m2 -> 27
        J m1 list=cooperative-sticky:t0t1t2 park as=j1
        J m2 list=cooperative-sticky:t3t4t5 -> 0 gen=2
        <- j3 0 gen=2
        <- j1 0 gen=2 listed=3 name=cooperative-sticky
        S m2 name=cooperative-sticky park as=s2
        S m3 name=cooperative-sticky park as=s3
        S m1 name=cooperative-sticky plan=m1:t0t1,m2:t3t4 -> 0 assignment=t0t1
        <- s2 0 assignment=t3t4
        <- s3 0 assignment=-                 # t2 and t5 are not released yet
        J m1 list=cooperative-sticky:t0t1 park as=j1b
        D -> PreparingRebalance
        H m3 gen=2 -> 27
        J m2 list=cooperative-sticky:t3t4 park as=j2b
        J m3 list=cooperative-sticky:now -> 0 gen=3
        <- j1b 0 gen=3 listed=3
        <- j2b 0 gen=3
        S m2 name=cooperative-sticky park
        S m3 name=cooperative-sticky park as=s3b
        S m1 name=cooperative-sticky plan=m1:t0t1,m2:t3t4,m3:t2t5 -> 0
        <- s3b 0 assignment=t2t5
    """,
    "S8 a follow-up that overtakes a SyncGroup costs a generation": """
        Gj m1* m2
        S m1 plan=m1:x,m2:y -> 0
        J m1 list=range:follow-up park
        S m2 gen=1 -> 27
    """,
    "S9 a rolling bounce of dynamic members: two generations each": """
        G A* B
        L A -> 0
        J B list=range:g1 -> 0 gen=2 leader  # a survivor leads
        S B plan=B:all -> 0
        +1000 J A new -> 79
        J A park as=ja
        H B -> 27
        J B list=range:g2 -> 0 gen=3 leader listed=2
        <- ja 0 gen=3 follower
    """,
    "S9 a restart that comes while the survivors are waited for shares their generation": """
        G A* B C
        L C -> 0
        J A list=range:g1 park as=ja
        J C2 new -> 79                       # already this id holds back the end
        J B list=range:g1 park as=jb
        J C2 -> 0 gen=2
        <- ja 0 gen=2 listed=3
        <- jb 0 gen=2
    """,
    "S9 all down together: the group empties, and the next start waits": """
        config group.initial.rebalance.delay.ms=3000
        G A* B
        L A -> 0
        L B -> 0
        D -> Empty
        J C new -> 79
        J C => 3000 0 gen=3
    """,
    "S10 a rolling bounce of static members costs no generation": """
        G i1/i1* i2/i2 T=45000
        +100 J a new i=i1 T=45000 -> 0 gen=1 skip
        S a gen=1 -> 0 assignment=I1
        H i2 -> 0
        +100 J b new i=i2 T=45000 -> 0 gen=1
        S b gen=1 -> 0 assignment=I2
        H a gen=1 -> 0
        D -> Stable
    """,
    "S11 a leader dies between JoinGroup and SyncGroup": """
        Gj L* B C T=45000 R=300000
        S B gen=1 park as=sb
        S C gen=1 park as=sc
        @done+30000 H B -> 0
        @done+45000 <- sb 27
        <- sc 27
        D -> PreparingRebalance
        J B list=range:g1 park as=jb
        J C list=range:g1 -> 0 gen=2 leader listed=2
        <- jb 0 gen=2 follower
    """,
    "S11 a leader that heartbeats but never syncs is dropped with the rebalance timeout": """
        Gj L* B T=45000 R=60000
        S B gen=1 park as=sb
        @done+30000 H L -> 0
        @done+59000 H L -> 0
        @done+60000 <- sb 27
        H L gen=1 -> 25
    """,
    "S12 a coordinator dies in the middle of a rebalance": """
        G A* B C T=45000 R=300000
        J D new -> 79
        J D park as=jd
        J A list=range:g1 park as=ja
        J B list=range:g1 park as=jb
        H C -> 27
        coordinator crash
        D -> Stable members=3
        J A list=range:g1 park as=ja2
        J B list=range:g1 park as=jb2
        J D -> 25
        J D2 new -> 79
        J D2 park as=jd2
        H C -> 27
        J C list=range:g1 -> 0 gen=2
        <- ja2 0 gen=2 listed=4
        <- jb2 0 gen=2
        <- jd2 0 gen=2
        never jd
        never ja
    """,
    "S12 ...and one whose assignment was durable is taken up with it": """
        G A* B
        J A list=range:g1 park as=ja
        J B list=range:g1 -> 0 gen=2
        S B park as=sb
        S A plan=A:x,B:y -> 0
        coordinator crash
        D -> Stable
        H A gen=2 -> 0
        J B list=range:g2 park as=jb
        J A list=range:g2 -> 0 gen=3
        <- jb 0 gen=3
    """,
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_coordinators_half_of(scenario):
    check(SCENARIOS[scenario])
