"""Every operation that the segment compiler lowers, in every mode: compiled or not, with oneDNN and without."""

from __future__ import annotations

import pytest

from tests.runtime.segments import rows_elementwise, rows_products, rows_training, rows_windows
from tests.runtime.segments.modes import check_modes
from tests.runtime.segments.rows import Row

ROWS: dict[str, Row] = {}
for table in (rows_elementwise.ROWS, rows_windows.ROWS, rows_products.ROWS, rows_training.ROWS):
    assert not ROWS.keys() & table.keys(), "a name is in two tables"
    ROWS |= table


@pytest.mark.parametrize("name", ROWS)
def test_rows(name: str) -> None:
    row = ROWS[name]
    graph, fetches, feeds = row.build()
    check_modes(graph, fetches, feeds, row.rtol)


def test_there_are_many() -> None:
    assert len(ROWS) >= 300
