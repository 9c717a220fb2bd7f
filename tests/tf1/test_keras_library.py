"""tf.keras is the Keras that is installed, where it is of a release that runs on TensorFlow 1's names."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolkit.tensorflow import importer, keras_library, modules, names

_PROGRAM = """
from toolkit.tensorflow import importer
importer.install()
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras.layers import Dense
from tensorflow.python.keras import backend as K
import tensorflow.contrib.keras.python.keras.layers as theirs
import tensorflow.compat.v1.keras.layers as of_v1
assert tf.keras is keras is tf.contrib.keras is __import__("keras")
assert theirs is of_v1 is keras.layers and Dense is theirs.Dense
assert keras.layers.__spec__.name == "keras.layers" and K.TENSORFLOW is tf.VERSION
try:
    import tensorflow.keras.nothing
except ModuleNotFoundError as error:
    print(error)
"""


def _install(folder: Path, release: str) -> None:
    """A package that says that it is this release of Keras."""
    package = folder / "keras"
    (package / "backend").mkdir(parents=True)
    (package / "__init__.py").write_text("from keras import backend, layers\n")
    (package / "layers.py").write_text("class Dense:\n    pass\n")
    (package / "backend" / "__init__.py").write_text("import tensorflow as tf\nTENSORFLOW = tf.VERSION\n")
    facts = folder / f"Keras-{release}.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: Keras\nVersion: {release}\n")


def _run(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    code = f"import sys\nsys.path.insert(0, {str(folder)!r})\n{program}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


@pytest.mark.parametrize("release", ["2.2.4", "2.0.8"])
def test_its_modules_are_those_of_tensorflow(tmp_path: Path, release: str) -> None:
    _install(tmp_path, release)
    done = _run(tmp_path, _PROGRAM)
    assert done.returncode == 0, done.stderr
    assert "keras.nothing" in done.stdout


@pytest.mark.parametrize("release", ["2.3.1", "2.20.0", "3.1.0"])
def test_later_releases_want_a_tensorflow_of_their_own(tmp_path: Path, release: str) -> None:
    _install(tmp_path, release)
    done = _run(tmp_path, "from toolkit.tensorflow import importer\nimporter.install()\nimport tensorflow.keras.layers")
    assert done.returncode == 1
    assert "pip install keras==2.2.4" in done.stderr


def test_names_of_modules() -> None:
    names = ["keras", "python.keras.layers", "contrib.keras.api.keras.utils", "keras_style", "nn.keras", ""]
    found = ["keras", "keras.layers", "keras.utils", "", "", ""]
    assert [keras_library.name_of(each) for each in names] == found


def test_what_needs_no_keras() -> None:
    keras: Any = modules.module("keras")
    assert keras.initializers.Zeros is names.find("zeros_initializer")
    assert keras.initializers.he_normal is names.find("initializers.he_normal")
    given: Any = keras.initializers.RandomUniform(seed=3).get_config()
    assert given == {"minval": -0.05, "maxval": 0.05, "seed": 3, "dtype": "float32"}
    with importer.installed():
        regularizers = importlib.import_module("tensorflow.python.keras.regularizers")
    made = regularizers.L1L2.from_config(keras.regularizers.l1_l2(0.5).get_config())
    assert isinstance(made, keras.regularizers.Regularizer) and (made.l1, made.l2) == (0.5, 0.01)


def test_categories_as_numbers() -> None:
    to_categorical: Any = names.find("keras.utils.to_categorical")
    assert to_categorical([0, 2]).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert to_categorical([0, 2]).dtype == np.float32 and to_categorical([[1], [0]], dtype="int64").dtype == np.int64
    assert to_categorical([[1], [0]]).shape == (2, 2) and to_categorical([[0, 1]], 3).shape == (1, 2, 3)
    with pytest.raises(IndexError):
        to_categorical([3], 3)
