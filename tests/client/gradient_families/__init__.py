"""The ops that TensorFlow has a gradient for, family by family."""

from tests.client.gradient_families import (
    algebra,  # noqa: F401 -- fills the table
    matrices,  # noqa: F401 -- fills the table
    networks,  # noqa: F401 -- fills the table
    structures,  # noqa: F401 -- fills the table
)
from tests.client.gradient_families.rows import CASES, measure

__all__ = ["CASES", "measure"]
