"""Every request from everybody in every state: the error table that was measured on a Kafka 4.3.1 broker.

m is a dynamic member, s the static member of instance `s`, x a stranger, q an instance id that nobody has, - nobody.
The columns: Empty after a life, PreparingRebalance out of Empty, PreparingRebalance out of Stable, CompletingRebalance,
Stable. n is the group's generation; n+1 stands for every other.
"""

from __future__ import annotations

import pytest

from tests.protocol_v1.coordinator.script import check

STATES = {
    "Empty": ("G m* s/s\nL m s -> 0\nD -> Empty", 2),
    "Preparing out of Empty": (
        "ids m-1 s-2\nJ m new -> 79\nJ m park\nJ s new i=s park\nknow s=s-2\nD -> PreparingRebalance",
        0,
    ),
    "Preparing out of Stable": ("G m* s/s z\nJ z list=range:other park\nD -> PreparingRebalance", 1),
    "Completing": ("Gj m* s/s\nD -> CompletingRebalance", 1),
    "Stable": ("G m* s/s\nD -> Stable", 1),
}

TABLE = """
H m        gen=n               25 27 27 0 0
H s i=s    gen=n               25 27 27 0 0
H m        gen=n+1             25 22 22 22 22
H x        gen=n               25 25 25 25 25
H x        gen=n+1             25 25 25 25 25
H -        gen=n               25 25 25 25 25
H m i=q    gen=n               25 25 25 25 25
H x i=s    gen=n               25 82 82 82 82
H x i=s    gen=n+1             25 82 82 82 82
S s i=s    gen=n               25 27 27 park 0
S m        gen=n+1             25 22 22 22 22
S m        gen=n name=other    25 27 23 23 23
S m        gen=n type=other    25 23 23 23 23
S m        gen=n name=null     23 23 23 23 23
S x        gen=n+1 type=null   23 23 23 23 23
S x        gen=n               25 25 25 25 25
S x i=s    gen=n               25 82 82 82 82
C m        gen=n               25 0 0 27 0
C s i=s    gen=n               25 0 0 27 0
C m        gen=n+1             25 22 22 22 22
C m        gen=-1              0 22 22 22 22
C -        gen=-1              0 25 25 25 25
C x        gen=-1              0 25 25 25 25
C -        gen=n               25 25 25 25 25
C x        gen=n               25 25 25 25 25
C x i=s    gen=n               25 82 82 82 82
C - i=s    gen=-1              0 82 82 82 82
C - i=q    gen=-1              0 25 25 25 25
J x                            25 25 25 25 25
J m i=q                        25 25 25 25 25
J x i=s                        25 82 82 82 82
J m type=other                 25 23 23 23 23
J m list=other                 25 23 23 23 23
J y new list=other             79 23 23 23 23
J y new                        79 79 79 79 79
L x                            e25 e25 e25 e25 e25
L -                            e25 e25 e25 e25 e25
L /q                           e25 e25 e25 e25 e25
L m/q                          e25 e25 e25 e25 e25
L x/s                          e25 e82 e82 e82 e82
Delete                         0 68 68 68 68
"""
ROWS = [(" ".join(words[:-5]), words[-5:]) for words in (line.split() for line in TABLE.strip().splitlines())]
CELLS = [
    pytest.param(state, request, answer, id=f"{request} in {state}")
    for request, answers in ROWS
    for state, answer in zip(STATES, answers, strict=True)
]


@pytest.mark.parametrize(("state", "request_", "answer"), CELLS)
def test_an_error_follows_from_state_and_sender(state, request_, answer):
    setting, generation = STATES[state]
    line = request_.replace("gen=n+1", f"gen={generation + 1}").replace("gen=n", f"gen={generation}")
    if answer == "park":
        expectation = "park"
    elif answer.startswith("e"):
        expectation = f"-> 0 entries={answer[1:]}"
    elif line.startswith("C"):
        expectation = f"-> codes={answer}"
    else:
        expectation = f"-> {answer}"
    check(f"{setting}\n{line} {expectation}")
