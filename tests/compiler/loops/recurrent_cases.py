"""Recurrent layers that TensorFlow freezes, against what compiled plans make of them."""

# TensorFlow has no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests import perturbation
from tests.compiler.compare import explained
from tests.compiler.modes import session
from toolkit import read_model
from toolkit.kernels.cpu.onednn.library import library

FORMS = pytest.mark.parametrize("lowered", [True, False], ids=["while-loop", "functional"])
KINDS = ["lstm", "gru", "lbr_gru"]
RANDOM = np.random.default_rng(7)


def array(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def check_frozen(
    folder: Path, graph_def: Any, names: Sequence[str], feeds: Mapping[str, Any], wanted: Sequence[Any],
    layers: Sequence[str], why: str = "", loops: bool = True,
) -> None:  # fmt: skip
    """Ours agrees with TensorFlow's answer and has these primitives; a loop that is left says why.

    Args:
        folder: for the model file.
        loops: there is a loop where there are no primitives.
    """
    (folder / "frozen.pb").write_bytes(graph_def.SerializeToString())
    model = read_model(str(folder / "frozen.pb"))
    results: list[Any] = []
    for mode in ("compiled", "compiled without oneDNN"):
        with session(model, mode) as running:
            results += [running.run(list(names), feeds) for _ in range(2)]
    results.append([np.asarray(each) for each in wanted])
    perturbation.assert_agree(
        results, lambda: perturbation.of_network(model, lambda running: running.run(list(names), feeds)), names
    )
    if library() is None:
        return
    lines = explained(model, names, feeds)
    kinds = re.findall(r"^ +\d+ (\w+) ", lines, re.MULTILINE)
    assert sorted(kind for kind in kinds if kind in KINDS) == sorted(layers), lines
    assert ("loop" in kinds) == (loops and not layers), lines
    assert why in lines, lines


def check_function(
    tf: ModuleType, folder: Path, call: Callable[..., Any], inputs: Sequence[np.ndarray], lowered: bool,
    layers: Sequence[str], why: str = "",
) -> None:  # fmt: skip
    """Freeze a function of tensors and compare; `lowered` turns its loops into Enter, Switch, Merge, ..."""
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    specs = [tf.TensorSpec(value.shape, value.dtype, name=f"x{i}") for i, value in enumerate(inputs)]
    call(*inputs)  # makes the weights
    function = tf.function(lambda *given: tf.nest.flatten(call(*given))).get_concrete_function(*specs)
    frozen = convert_variables_to_constants_v2(function, lower_control_flow=lowered)
    wanted = frozen(*map(tf.constant, inputs))
    feeds = {tensor.name: value for tensor, value in zip(frozen.inputs, inputs, strict=True)}
    names = [tensor.name for tensor in frozen.outputs]
    check_frozen(folder, frozen.graph.as_graph_def(), names, feeds, wanted, layers, why)
