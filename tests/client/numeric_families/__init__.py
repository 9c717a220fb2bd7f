"""Functions of every op with a gradient, to be compared with differences, family by family."""

from tests.client.numeric_families import (
    arrays,  # noqa: F401 -- fills the table
    elementwise,  # noqa: F401 -- fills the table
    flow,  # noqa: F401 -- fills the table
    functions,  # noqa: F401 -- fills the table
    matrices,  # noqa: F401 -- fills the table
    networks,  # noqa: F401 -- fills the table
)
from tests.client.numeric_families.rows import ROWS, Row

__all__ = ["ROWS", "Row"]
