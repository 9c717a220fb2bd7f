"""Every operation that the segment compiler lowers, in every mode: compiled or not, with oneDNN and without."""

from __future__ import annotations

import pytest

from tests.compiler.modes import check_modes
from tests.compiler.operations import rows_elementwise, rows_products, rows_quantized, rows_training, rows_windows
from tests.compiler.operations.rows import Row

TABLES = (
    rows_elementwise.ROWS,
    rows_windows.ROWS,
    rows_products.ROWS,
    rows_quantized.ROWS,
    rows_training.ROWS,
)
ROWS: dict[str, Row] = {name: row for table in TABLES for name, row in table.items()}


@pytest.mark.parametrize("name", ROWS)
def test_rows(name: str) -> None:
    row = ROWS[name]
    graph, fetches, feeds = row.build()
    check_modes(graph, fetches, feeds, exact=row.exact)


def test_no_name_is_in_two_tables() -> None:
    assert len(ROWS) == sum(map(len, TABLES))
