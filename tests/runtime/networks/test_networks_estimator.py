"""A published model that tf.estimator exported: the classifier of programming languages in the `guesslang` package."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.runtime.networks.published import Package
from tests.runtime.saved_models.saved_model_case import check_saved_model

pytestmark = pytest.mark.tensorflow

PACKAGE = Package(
    "guesslang",
    "2.2.1",
    "guesslang-2.2.1-py3-none-any.whl",
    "36bd12130515ee0e637f7255340ba92ea919d53423743f4c1b0c73727a5499cb",
    "guesslang/data/model",
)
SOURCES = {
    b"c": b'#include <stdio.h>\nint main(void) { printf("hi\\n"); return 0; }\n',
    b"py": b"def f(x):\n    return [y for y in x if y]\n\nprint(f([1]))\n",
    b"sql": b"SELECT name, count(*) FROM t GROUP BY name;",
    b"html": b"<html><body><p>text</p></body></html>",
}


@pytest.fixture(scope="module")
def folder() -> Path:
    return PACKAGE.fetch() / PACKAGE.model


@pytest.mark.parametrize(("key", "name"), [("serving_default", "inputs"), ("predict", "content")])
@pytest.mark.parametrize("by_v1", [False, True])
def test_like_tensorflow(tf: ModuleType, folder: Path, tmp_path: Path, key: str, name: str, by_v1: bool) -> None:
    """Text into byte pairs in a map, hashed; a wide part and a deep one; tables for the names of the classes."""
    model = tmp_path / "model"
    model.symlink_to(folder)
    texts = np.array([*SOURCES.values(), b"?"], object)
    answer = check_saved_model(tf, model, {name: texts}, key, by_v1=by_v1)
    scores = answer["scores" if key == "serving_default" else "probabilities"]
    languages = answer["classes" if key == "serving_default" else "all_classes"][0]
    assert [languages[best] for best in scores.argmax(axis=1)[:-1]] == list(SOURCES)
