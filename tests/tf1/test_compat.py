"""tf.compat: values beside TensorFlow's."""

from __future__ import annotations

import importlib
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pytest

from tests.tf1 import node_oracle
from toolkit import tensorflow as ours
from toolkit.tensorflow import importer

pytestmark = pytest.mark.tensorflow

CALLS = {
    "as_bytes": [("a",), (b"a",), (bytearray(b"a"),), ("\u00e9", "latin-1"), (3,), (None,)],
    "as_text": [("a",), (b"a",), (b"\xe9", "latin-1"), (b"\xff",), (3,)],
    "as_str": [("a",), (b"a",), (3,)],
    "as_str_any": [("a",), (b"a",), (3,), (np.float32(0.5),)],
    "path_to_str": [("a/b",), (PurePosixPath("a/b"),), (3,)],
    "dimension_value": [(3,), (None,)],
    "forward_compatible": [(2019, 1, 1), (2026, 1, 15), (2026, 1, 16), (2030, 1, 1), (2030, 13, 1)],
}


def _outcome(compat: Any, name: str, arguments: tuple[Any, ...]) -> Any:
    try:
        return getattr(compat, name)(*arguments)
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("name", CALLS)
def test_functions_give_what_tensorflows_give(name: str) -> None:
    theirs = node_oracle.theirs().compat
    for arguments in CALLS[name]:
        found, wanted = (_outcome(compat, name, arguments) for compat in (ours.compat, theirs))
        assert found == wanted and type(found) is type(wanted), arguments


def test_types_are_tensorflows() -> None:
    theirs = node_oracle.theirs().compat
    for name in ("integral_types", "real_types", "complex_types", "bytes_or_text_types"):
        assert getattr(ours.compat, name) == getattr(theirs, name)


def test_sizes_of_shapes() -> None:
    with ours.Graph().as_default():
        shape = ours.placeholder(ours.float32, [None, 3]).shape
    assert ours.compat.dimension_value(shape[1]) == 3 and ours.compat.dimension_value(shape[0]) is None
    assert ours.compat.dimension_at_index(shape, 1) == 3
    assert ours.compat.dimension_at_index(ours.TensorShape(None), 5).value is None


def test_other_days_hold_inside_of_a_block() -> None:
    with ours.compat.forward_compatibility_horizon(2018, 1, 1):
        assert not ours.compat.forward_compatible(2019, 1, 1)
    assert ours.compat.forward_compatible(2019, 1, 1)


def test_programs_find_them_in_all_places() -> None:
    with importer.installed():
        for module in ("tensorflow.compat", "tensorflow.compat.v1.compat", "tensorflow.python.util.compat"):
            assert importlib.import_module(module).as_str(b"a") == "a"
