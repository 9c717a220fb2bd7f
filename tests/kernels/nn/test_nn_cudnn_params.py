"""The buffer of cuDNN's recurrent networks: its size, what is in it, and there and back."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.kernels.nn import cudnn_networks
from tests.kernels.op_suite import Case, run_ours, sample

BAD = "INVALID_ARGUMENT"
#: rnn_mode, direction, layers, units, inputs, num_proj
MODELS = [
    ("lstm", "unidirectional", 1, 3, 4, 0),
    ("lstm", "bidirectional", 2, 3, 4, 0),
    ("lstm", "bidirectional", 2, 3, 4, 2),
    ("gru", "unidirectional", 3, 2, 5, 0),
    ("gru", "bidirectional", 1, 2, 5, 0),
    ("rnn_tanh", "bidirectional", 2, 4, 4, 0),
    ("rnn_relu", "unidirectional", 2, 4, 1, 0),
]


def shapes(mode: str, direction: str, layers: int, units: int, inputs: int, projection: int) -> list[tuple[int, ...]]:
    """Of the weights, then of the biases, counted by hand from cuDNN's documentation."""
    gates = {"lstm": 4, "gru": 3}.get(mode, 1)
    both = 2 if direction == "bidirectional" else 1
    state = projection or units
    found: list[tuple[int, ...]] = []
    for layer in range(layers):
        for _ in range(both):
            found += [(units, both * state if layer else inputs)] * gates + [(units, state)] * gates
            found += [(projection, units)] if projection else []
    return found + [(units,)] * (2 * gates * both * layers)


def attrs(mode: str, direction: str, projection: int, sizes: list[tuple[int, ...]] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"rnn_mode": mode, "direction": direction, "num_proj": projection}
    if sizes is not None:
        weights = sum(len(shape) == 2 for shape in sizes)
        found |= {"num_params_weights": weights, "num_params_biases": len(sizes) - weights}
    return found


def cases() -> list[Case]:
    found: list[Case] = []
    for mode, direction, layers, units, inputs, projection in MODELS:
        numbers = [np.int32(layers), np.int32(units), np.int32(inputs)]
        sizes = shapes(mode, direction, layers, units, inputs, projection)
        total = sum(int(np.prod(shape)) for shape in sizes)
        base = attrs(mode, direction, projection)
        for kind in ("int32", "int64"):
            found.append(Case("CudnnRNNParamsSize", numbers, base | {"T": "float32", "S": kind}))
        for dtype in ("float32", "float16", "bfloat16", "float64"):
            full = attrs(mode, direction, projection, sizes)
            found.append(Case("CudnnRNNParamsToCanonicalV2", [*numbers, sample(dtype, (total,), -1, 1)], full))
            parts = [sample(dtype, shape, -1, 1, at) for at, shape in enumerate(sizes)]
            split = full["num_params_weights"]
            found.append(Case("CudnnRNNCanonicalToParamsV2", [*numbers, parts[:split], parts[split:]], full))
            if not projection:
                first = {name: base[name] for name in ("rnn_mode", "direction")} | {"num_params": split}
                found.append(Case("CudnnRNNParamsToCanonical", [*numbers, sample(dtype, (total,), -1, 1)], first))
                found.append(Case("CudnnRNNCanonicalToParams", [*numbers, parts[:split], parts[split:]], first))
    return found


def wrong() -> list[Case]:
    one, three = np.int32(1), np.int32(3)
    size, params = {"T": "float32", "S": "int32"}, np.zeros(96, np.float32)
    eight = {"num_params": 8}
    matrices, biases = [np.zeros((3, 3), np.float32)] * 8, [np.zeros(3, np.float32)] * 8
    rows: list[tuple[str, list[Any], dict[str, Any]]] = [
        ("CudnnRNNParamsSize", [np.int32(0), three, three], size),
        ("CudnnRNNParamsSize", [one, np.int32(-1), three], size),
        ("CudnnRNNParamsSize", [one, three, np.int32([3])], size),
        ("CudnnRNNParamsSize", [one, three, three], size | {"num_proj": 4}),
        ("CudnnRNNParamsSize", [one, three, three], size | {"num_proj": 1, "rnn_mode": "gru"}),
        ("CudnnRNNParamsSize", [one, three, one], size | {"input_mode": "skip_input"}),
        ("CudnnRNNParamsSize", [one, np.int32(1 << 20), one], size),
        ("CudnnRNNParamsToCanonical", [one, three, three, params[:-1]], eight),
        ("CudnnRNNParamsToCanonical", [one, three, three, params[None]], eight),
        ("CudnnRNNParamsToCanonical", [one, three, three, params], {"num_params": 7}),
        ("CudnnRNNCanonicalToParams", [one, three, three, matrices[:7], biases[:7]], {"num_params": 7}),
        (
            "CudnnRNNCanonicalToParams",
            [one, three, three, [*matrices[:7], np.zeros((3, 4), np.float32)], biases],
            eight,
        ),
        ("CudnnRNNCanonicalToParams", [one, three, three, matrices, [*biases[:7], np.zeros(4, np.float32)]], eight),
    ]
    return [Case(op, inputs, more, error=BAD, id=str(at)) for at, (op, inputs, more) in enumerate(rows)]


CASES = [*cases(), *wrong()]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_there_and_back(model: tuple[Any, ...]) -> None:
    mode, direction, layers, units, inputs, projection = model
    numbers = [np.int32(layers), np.int32(units), np.int32(inputs)]
    sizes = shapes(*model)
    total = sum(int(np.prod(shape)) for shape in sizes)
    (size,) = run_ours(
        Case("CudnnRNNParamsSize", numbers, attrs(mode, direction, projection) | {"T": "float32", "S": "int64"})
    )
    assert size.dtype == np.int64 and size.tolist() == [total]
    params, full = np.arange(total, dtype=np.float32), attrs(mode, direction, projection, sizes)
    parts = run_ours(Case("CudnnRNNParamsToCanonicalV2", [*numbers, params], full))
    assert [part.shape for part in parts] == sizes
    np.testing.assert_array_equal(np.concatenate([part.ravel() for part in parts]), params)
    split = full["num_params_weights"]
    (back,) = run_ours(Case("CudnnRNNCanonicalToParamsV2", [*numbers, parts[:split], parts[split:]], full))
    np.testing.assert_array_equal(back, params)


def test_weights_of_one_layer_stand_gate_by_gate() -> None:
    """The matrices of the inputs, those of the state, then both biases: of an LSTM of one unit over one input."""
    numbers = [np.int32(1)] * 3
    parts = run_ours(Case("CudnnRNNParamsToCanonical", [*numbers, np.arange(16, dtype=np.float32)], {"num_params": 8}))
    assert [part.ravel().tolist() for part in parts] == [[float(at)] for at in range(16)]


def test_skipped_inputs_have_no_matrix() -> None:
    numbers = [np.int32(2), np.int32(3), np.int32(3)]
    for mode in ("skip_input", "auto_select"):
        given = {"rnn_mode": "gru", "input_mode": mode, "T": "float32", "S": "int32"}
        # two layers of three gates: recurrent matrices of both, inputs' of the second, two biases each
        assert run_ours(Case("CudnnRNNParamsSize", numbers, given))[0].tolist() == [3 * 9 * 3 + 2 * 3 * 3 * 2]
    wide = [np.int32(2), np.int32(3), np.int32(5)]
    given = {"rnn_mode": "gru", "input_mode": "auto_select", "T": "float32", "S": "int32"}
    assert run_ours(Case("CudnnRNNParamsSize", wide, given))[0].tolist() == [3 * 9 * 3 + 3 * 15 + 2 * 3 * 3 * 2]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_case(case: Case) -> None:
    cudnn_networks.check(case)


@pytest.mark.tensorflow
@pytest.mark.parametrize("mode", ["lstm", "gru"])
def test_buffer_of_keras(tf: ModuleType, mode: str) -> None:
    """What Keras hands to cuDNN for a layer is taken for that layer."""
    rnn: Any = importlib.import_module("keras.src.backend.tensorflow.rnn")
    units, inputs = 3, 4
    layer = tf.keras.layers.LSTM(units) if mode == "lstm" else tf.keras.layers.GRU(units, reset_after=True)
    x = tf.constant(sample("float32", (2, 5, inputs), -1, 1))
    wanted = layer(x)
    kernel, recurrent, bias = (value.numpy() for value in layer.weights)
    bias = sample("float32", bias.shape, -1, 1)
    layer.set_weights([kernel, recurrent, bias])
    wanted = layer(x)
    gates = 4 if mode == "lstm" else 3
    matrices = [*np.split(kernel, gates, axis=1), *np.split(recurrent, gates, axis=1)]
    if mode == "lstm":
        biases = np.split(np.concatenate([np.zeros_like(bias), bias]), 8)
    else:  # Keras begins with the update gate
        matrices = [matrices[at] for at in (1, 0, 2, 4, 3, 5)]
        flat = np.split(bias.ravel(), 6)
        biases = [flat[at] for at in (1, 0, 2, 4, 3, 5)]
    params = rnn._standardize_cudnn_weights(matrices, biases, [-1], transpose_weights=True).numpy()
    h = np.zeros((2, 1, units), np.float32)
    c = h if mode == "lstm" else np.zeros((), np.float32)
    given = [x.numpy(), h, c, params, np.int32([5, 5])]
    out, last, *_ = run_ours(Case("CudnnRNNV3", given, {"rnn_mode": mode, "time_major": False, "is_training": False}))
    bound = tolerance.likely(5 * (units + inputs + 10))  # 5 steps: products, biases and activations of at most 1
    for found in (out[:, -1], last[:, 0]):
        np.testing.assert_allclose(found, wanted.numpy(), rtol=0, atol=bound)
