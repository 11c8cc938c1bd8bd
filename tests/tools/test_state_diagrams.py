"""The printed states are the tables'."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.state_diagrams import COMMAND, ROOT, pages


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_shows_its_table_as_it_is(path: Path) -> None:
    assert path.read_text() == pages()[path], f"run: {COMMAND}"
