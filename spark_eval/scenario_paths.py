"""Find a place in a scenario's data by its path: `members.consumer.count`, `timeline[*].rolling restart.downtime`.

Names hold dots themselves (`client.session.timeout.ms`), so a path is read against the data: the longest existing key
wins. A last step that does not exist yet is a new key; the scenario's reader decides whether a scenario has it.
Start at   put
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from rebalance_lab.assignors.json_contract import ContractError

SECTIONS = ("client", "broker", "network", "callbacks")
"""May be named though a scenario has left them out."""
INDEX = re.compile(r"\[(\d{1,6})\]")


def put(document: Any, place: str, value: Any, path: str) -> None:
    """Change `document`. `path`: where the place stands in the sweep file; `[*]`: every entry that has the rest."""
    before, star, after = place.partition("[*].")
    if star:
        numbers = having(document, before, after, path)
        for number in numbers:
            put(document, f"{before}[{number}].{after}", value, path)
        if not numbers:
            raise ContractError(path, f"no entry of {before} has {after}")
        return
    here, rest = document, place
    while True:
        step, rest = next_step(here, rest, place, path)
        if not rest:
            here[step] = value
            return
        if isinstance(here, dict) and step not in here:
            here[step] = {}
        here = here[step]


def having(document: Any, place: str, after: str, path: str) -> list[int]:
    """Return which entries of the list at `place` have what `after` begins with."""
    entries = document.get(place)
    if not isinstance(entries, list):
        raise ContractError(path, f"{place} is no list: [*] means every entry of one")
    return [number for number, entry in enumerate(entries) if any(begins(after, str(key)) for key in entry)]


def next_step(here: Any, rest: str, place: str, path: str) -> tuple[str | int, str]:
    """Return the key or index that `rest` begins with, and what comes after it."""
    if isinstance(here, list):
        found = INDEX.match(rest)
        if found is None or int(found[1]) >= len(here):
            raise ContractError(path, f"{place}: a list of {len(here)}, so [0] and so on belongs before {rest!r}")
        return int(found[1]), rest[found.end() :].removeprefix(".")
    if not isinstance(here, dict):
        raise ContractError(path, f"{place}: there is nothing below {here!r}")
    keys = sorted((key for key in here if begins(rest, str(key))), key=len, reverse=True)
    if keys:
        return keys[0], rest[len(keys[0]) :].removeprefix(".")
    section = next((name for name in SECTIONS if begins(rest, name) and rest != name), None)
    if section is not None:
        return section, rest[len(section) + 1 :]
    if "[" in rest or (is_entry(here) and "." in rest):
        raise ContractError(path, f"the scenario has no {place}{near(rest, here)}")
    return rest, ""


def begins(rest: str, key: str) -> bool:
    return rest == key or rest.startswith((f"{key}.", f"{key}["))


def is_entry(here: dict[str, Any]) -> bool:
    """Tell whether a mapping is no settings. Only settings have names with dots; elsewhere the dot is a step that leads
    nowhere.
    """
    return not any("." in str(key) for key in here) and not all(isinstance(value, int | str) for value in here.values())


def near(rest: str, keys: Iterable[Any]) -> str:
    found = get_close_matches(re.split(r"[.\[]", rest)[0], [str(key) for key in keys], n=1)
    return f"; did you mean {found[0]}?" if found else f"; there are {', '.join(str(key) for key in keys)}"
