"""Keras' layers of attention on a GPU, gradients too: their numbers, and whether they become one operation."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.compiler.attention.forms import numbers
from tests.compiler.attention.test_forms import compared
from toolkit.formats.models.model import read_model

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.tensorflow
_THERE = np.array([[1, 1, 0, 1, 1], [1, 0, 1, 1, 0]], bool)


def _multi_head(keras: Any, **sizes: Any) -> Callable[..., Any]:
    return keras.layers.MultiHeadAttention(**{"num_heads": 2, "key_dim": 16, **sizes})


#: what a layer is made of, rows and keys, and what makes the result of the layer, queries and values
CASES: dict[str, tuple[Callable[[Any], Any], tuple[int, int], Callable[[Any, Any, Any], Any]]] = {
    "self": (_multi_head, (5, 5), lambda layer, x, y: layer(x, x)),
    "other keys": (_multi_head, (6, 5), lambda layer, x, y: layer(x, y)),
    "causal": (_multi_head, (5, 5), lambda layer, x, y: layer(x, x, use_causal_mask=True)),
    "a mask of keys": (_multi_head, (6, 5), lambda layer, x, y: layer(x, y, attention_mask=_THERE[:, None])),
    "a mask, causal": (
        _multi_head, (5, 5), lambda layer, x, y: layer(x, x, attention_mask=_THERE[:, None], use_causal_mask=True)
    ),
    "other values": (
        lambda keras: _multi_head(keras, key_dim=16, value_dim=24, num_heads=3), (6, 5),
        lambda layer, x, y: layer(x, y, y),
    ),
    "groups": (
        lambda keras: keras.layers.GroupQueryAttention(head_dim=16, num_query_heads=4, num_key_value_heads=2), (6, 5),
        lambda layer, x, y: layer(x, y),
    ),
    "plain": (lambda keras: keras.layers.Attention(), (6, 5), lambda layer, x, y: layer([x, y])),
    "less where hidden": (lambda keras: keras.layers.Attention(), (5, 5),
                          lambda layer, x, y: layer([x, y], use_causal_mask=True)),
}  # fmt: skip
#: a mask that is scores less a number, chosen instead of these
_APART = ("less where hidden",)


@pytest.mark.parametrize("learning", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("precision", ["tf32", "bf16"])
@pytest.mark.parametrize("name", CASES)
def test_layers(tf: ModuleType, name: str, precision: str, learning: bool, tmp_path: Path) -> None:
    keras: Any = importlib.import_module("keras")
    constants: Any = importlib.import_module("tensorflow.python.framework.convert_to_constants")
    keras.utils.set_random_seed(7)
    make, (rows, keys), call = CASES[name]
    layer = make(keras)
    # small, so that shares are not all 0 and 1: there the sums of d_out * out, which stand for those of gradients by
    # shares times shares, have more rounding than what they are subtracted from
    given = [0.25 * numbers(2, rows, 32, seed=1), 0.25 * numbers(2, keys, 32, seed=2)]

    def run(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            made = call(layer, x, y)
            loss = tf.reduce_sum(tf.square(made) * numbers(2, rows, int(made.shape[-1]), seed=40))
        by = [x] if rows == keys else [x, y]
        return [made, *tape.gradient(loss, by)] if learning else [made]

    function = tf.function(run, input_signature=[tf.TensorSpec(each.shape, tf.float32) for each in given])
    expected = [np.asarray(each) for each in function(*given)]
    frozen = constants.convert_variables_to_constants_v2(function.get_concrete_function(), lower_control_flow=False)
    (tmp_path / "graph.pb").write_bytes(frozen.graph.as_graph_def().SerializeToString())
    graph = read_model(tmp_path / "graph.pb").graph
    fetched = [each.name for each in frozen.outputs]
    feeds = {each.name: value for each, value in zip(frozen.inputs, given, strict=True)}
    lines = compared(graph, fetched, feeds, expected, precision)
    formed = name not in _APART
    assert sum("gpu_attention " in line for line in lines) == formed, lines
    assert sum("gpu_attention_gradient" in line for line in lines) == (formed and learning), lines
