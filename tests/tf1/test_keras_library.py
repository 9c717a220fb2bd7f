"""tf.keras is the Keras that is installed, where it is of a release that runs on TensorFlow 1's names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from toolkit.tensorflow import keras_library

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
