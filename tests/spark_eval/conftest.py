"""One Spark session for the tests that need no more than one; they stay together on one worker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

SPARK = pytest.mark.xdist_group("spark")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(SPARK)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'rebalance-lab[spark]'")
    from rebalance_lab.assignors.json_contract import ContractError
    from rebalance_lab.spark_eval.session import check_java, open_session

    try:
        check_java()
    except ContractError as error:
        pytest.skip(f"Spark cannot run here: {error}")
    with open_session("local[2]") as session:
        yield session
