"""What is public resolves through TensorFlow's internal modules, too, as programs import it."""

from __future__ import annotations

import importlib

import pytest

from toolkit.tensorflow import importer, internal, names
from toolkit.tensorflow.tables import spellings


def _found(module: str) -> dict[str, tuple[str, object, object]]:
    """Names of a module whose public name is here, with what both stand for."""
    found: dict[str, tuple[str, object, object]] = {}
    for name, public in internal.facts()[module].items():
        wanted = names.find(public)
        if wanted is not names.ABSENT:
            found[name] = public, wanted, names.find(f"{module}.{name}")
    return found


@pytest.mark.parametrize("module", sorted(internal.facts()))
def test_internal_names_are_the_public_ones(module: str) -> None:
    found = _found(module)
    assert [name for name, (_, _, here) in found.items() if here is names.ABSENT] == []
    # gen_ modules have the ops themselves, whose arguments may be others than the public function's
    if module not in spellings.OP_MODULES:
        assert [name for name, (_, wanted, here) in found.items() if here is not wanted] == []


def test_programs_import_them() -> None:
    with importer.installed():
        init_ops = importlib.import_module("tensorflow.python.ops.init_ops")
        tensorflow = importlib.import_module("tensorflow")
        assert init_ops.Constant is tensorflow.constant_initializer
        file_io = importlib.import_module("tensorflow.python.lib.io.file_io")
        assert file_io.file_exists is tensorflow.gfile.Exists
        optimizer = importlib.import_module("tensorflow.python.training.rmsprop")
        assert optimizer.RMSPropOptimizer is tensorflow.train.RMSPropOptimizer
        with pytest.raises(ImportError, match="Nothing"):
            exec("from tensorflow.python.ops.init_ops import Nothing", {})
