"""Models with one defect each, and the rule that finds it: for every rule of `validate`, by subject."""

from tests.passes.validate_corpus import (
    devices,  # noqa: F401 -- fills the table
    files,  # noqa: F401 -- fills the table
    functions,  # noqa: F401 -- fills the table
    numerics,  # noqa: F401 -- fills the table
    security,  # noqa: F401 -- fills the table
    shapes,  # noqa: F401 -- fills the table
    signatures,  # noqa: F401 -- fills the table
    structure,  # noqa: F401 -- fills the table
    variables,  # noqa: F401 -- fills the table
)
from tests.passes.validate_corpus.rows import ROWS, Row
from tests.passes.validate_graphs import R

__all__ = ["ROWS", "R", "Row"]
