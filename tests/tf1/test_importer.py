"""`import tensorflow`, in its spellings, answered here and undone again."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from toolkit.tensorflow import importer, modules

SPELLINGS = ["tensorflow", "tensorflow.compat.v1"]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_root_in_every_spelling(spelling: str) -> None:
    with importer.installed():
        found = importlib.import_module(spelling)
        assert found is modules.module("")
        assert found.__version__ == modules.VERSION
        assert found.float32.name == "float32"


@pytest.mark.parametrize(
    ("module", "name", "public"),
    [
        ("tensorflow.python.framework.ops", "get_default_graph", "get_default_graph"),
        ("tensorflow.python.ops.array_ops", "concat", "concat"),
        ("tensorflow.python.framework.dtypes", "float32", "float32"),
        ("tensorflow.python.ops.math_ops", "reduce_sum", "reduce_sum"),
        ("tensorflow.python.ops.lookup_ops", "StaticHashTable", "lookup.StaticHashTable"),
        ("tensorflow.python.ops.lookup_ops", "index_table_from_file", "contrib.lookup.index_table_from_file"),
        ("tensorflow.nn", "relu", "nn.relu"),
        ("tensorflow.compat.v1.nn", "relu", "nn.relu"),
    ],
)
def test_internal_modules_lead_to_the_public_names(module: str, name: str, public: str) -> None:
    from toolkit.tensorflow import names

    with importer.installed():
        assert getattr(importlib.import_module(module), name) is names.find(public)


def test_functions_of_ops_in_internal_modules() -> None:
    with importer.installed():
        module = importlib.import_module("tensorflow.python.ops.gen_array_ops")
        assert module.gather_v2.__name__ == "gather_v2"


def test_what_is_not_there_is_said() -> None:
    with importer.installed(), pytest.raises(ImportError, match=r"tf\.nowhere"):
        importlib.import_module("tensorflow.nowhere")


def test_keras_says_why() -> None:
    with importer.installed(), pytest.raises(ImportError, match="Keras is a library of its own"):
        importlib.import_module("tensorflow.keras.layers")


def test_what_was_imported_before_comes_back() -> None:
    real = pytest.importorskip("tensorflow")
    with importer.installed():
        assert importlib.import_module("tensorflow") is not real
    assert sys.modules["tensorflow"] is real
    assert importlib.import_module("tensorflow.compat.v1") is not modules.module("")


def test_importing_loads_neither_numpy_nor_tensorflow() -> None:
    code = (
        "import sys; from toolkit.tensorflow import importer; importer.install(); import tensorflow as tf; "
        "tf.float32; tf.__version__; print([m for m in ('numpy', 'google.protobuf') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
