"""Datasets of what Python generators give."""

from __future__ import annotations

from typing import Any

from toolkit.client.data.dataset import Dataset
from toolkit.errors import UsageError


def from_generator(generator: Any, output_types: Any, output_shapes: Any, args: Any, output_signature: Any) -> Dataset:
    """The elements that a Python generator gives, in each pass anew."""
    raise UsageError("from_generator is not supported yet; write a TFRecord file or give arrays to from_tensor_slices")
