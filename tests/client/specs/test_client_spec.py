"""The YAML and Python specs: what they build, and one clear message for every mistake."""

# ruff: noqa: E501  (the tables read better with one case in a line)

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from toolkit.client.spec import build_spec, build_text
from toolkit.client.spec.layers import LAYERS
from toolkit.errors import FormatError, GraphmillError
from toolkit.graph.metagraph import MetaGraph

SAMPLES = Path(__file__).parents[3] / "samples"


def build(text: str) -> MetaGraph:
    return build_text(textwrap.dedent(text).lstrip("\n"), "s.yaml")


def message(text: str) -> str:
    with pytest.raises(GraphmillError) as caught:
        build_text(text, "s.yaml")
    shown = str(caught.value)
    assert "\n" not in shown
    return shown


# -- what is built ------------------------------------------------------------------------------------------------


def test_the_digits_sample() -> None:
    meta = build_spec(SAMPLES / "digits_cnn.yaml")
    names = {node.name for node in meta.graph}
    assert {"x", "y", "train", "loss", "accuracy", "probabilities", "init", "save/restore_all"} <= names
    assert set(meta.signatures) == {"serving_default", "train", "eval"}
    serving = meta.signatures["serving_default"]
    assert serving.inputs["x"].name == "x:0" and serving.outputs["probabilities"].name == "probabilities:0"
    assert str(serving.outputs["probabilities"].shape) == "[?,10]"
    assert meta.saver is not None and meta.saver.max_to_keep == 5
    assert meta.collections["init_op"] == ["init"] and meta.collections["train_op"] == ["train"]
    assert len(meta.collections["trainable_variables"]) == 8


def test_the_same_spec_builds_the_same_graph() -> None:
    from toolkit.formats.models.metagraph import to_proto

    first, second = (build_spec(SAMPLES / "digits_cnn.yaml") for _ in range(2))
    assert to_proto(first) == to_proto(second)


def test_raw_ops_scopes_devices_and_references() -> None:
    meta = build("""
        inputs:
          x: {dtype: float32, shape: [2, 3]}
        variables:
          w: {value: [[1.0], [2.0], [3.0]]}
          n: {shape: [], dtype: int64, initializer: zeros, trainable: false, resource: true}
        nodes:
          - op: MatMul
            name: product
            inputs: [x, w]
            attrs: {transpose_a: false}
          - scope: block
            device: /job:worker
            nodes:
              - {op: Split, name: parts, inputs: [0, product], attrs: {num_split: 2}, device: "/cpu:0"}
              - {op: AddV2, name: sum, inputs: {x: "parts:1", y: {const: 2.5}}}
              - {op: Pack, name: both, inputs: [[parts, sum]]}
              - {layer: relu, name: out, control_inputs: [product], colocate_with: sum}
          - {op: Assign, name: reset, inputs: [w, {const: [[0.0], [0.0], [0.0]]}]}
          - {op: NoOp, name: done, control_inputs: [reset]}
          - {op: Const, name: c, attrs: {value: [1, 2], dtype: int64}}
        saver: false
    """)
    graph = meta.graph
    assert graph.node("product").input_refs() == ["x", "w/read"]
    assert graph.node("block/sum").input_refs() == ["block/parts:1", "block/sum/y"]
    assert graph.node("block/parts").device == "/job:worker/device:CPU:0"
    assert graph.node("block/both").device == "/job:worker"
    assert graph.node("block/out").input_refs() == ["block/both", "^product"]
    assert graph.node("block/out").attr("_class") == [b"loc:@block/sum"]
    assert graph.node("reset").input_refs()[0] == "w"
    assert graph.node("done").input_refs() == ["^reset"]
    assert graph.node("c").attr("dtype").name == "int64"
    assert graph.node("n").op == "VarHandleOp"
    assert meta.saver is None


LAYER_ENTRIES = {
    "conv1d": "input: steps, filters: 3, kernel: 2, padding: causal, dilation: 2, activation: relu",
    "conv3d": "input: volumes, filters: 3, kernel: [2, 2, 1], strides: 2, data_format: channels_last",
    "conv2d_transpose": "filters: 3, kernel: 2, strides: [2, 1], bias_initializer: ones",
    "conv3d_transpose": "input: volumes, filters: 3, kernel: 2, padding: valid, use_bias: false",
    "separable_conv1d": "input: steps, filters: 3, kernel: 2, multiplier: 2, depthwise_regularizer: {l2: 0.1}",
    "separable_conv2d": "filters: 3, kernel: [2, 1], pointwise_initializer: ones, activation: tanh",
    "max_pool1d": "input: steps, size: 2, strides: 1",
    "avg_pool1d": "input: steps, padding: same",
    "max_pool3d": "input: volumes, size: [2, 1, 2]",
    "avg_pool3d": "input: volumes, strides: 1",
    "layer_norm": "epsilon: 0.001, center: false",
    "attention": "input: steps, memory: steps, heads: 2, units: 4, lengths: ids, causal: true, regularizer: {l2: 0.1}",
    "dense": "units: 4, activation: tanh, regularizer: {l2: 0.1}, kernel_initializer: {type: random_normal, stddev: 0.1}",
    "conv2d": "filters: 4, kernel: [3, 1], strides: 2, padding: valid, dilation: 1, use_bias: false",
    "depthwise_conv2d": "kernel: 3, multiplier: 2",
    "batch_norm": "training: flag, momentum: 0.9",
    "max_pool": "size: 2, strides: 1",
    "avg_pool": "size: [2, 2], padding: same",
    "reshape": "shape: [-1, 16]",
    "transpose": "perm: [0, 3, 1, 2]",
    "dropout": "rate: 0.5, seed: 3",
    "activation": "function: elu",
    "leaky_relu": "alpha: 0.1",
    "softmax": "axis: 1",
    "pad": "paddings: [[0, 0], [1, 1], [1, 1], [0, 0]], mode: reflect",
    "scale": "factor: 2.0, offset: -1.0",
    "cast": "dtype: float64",
    "add": "input: [x, x]",
    "subtract": "input: [x, x]",
    "multiply": "input: [x, x]",
    "divide": "input: [x, x]",
    "maximum": "input: [x, x]",
    "minimum": "input: [x, x]",
    "matmul": "input: [square, square]",
    "stack": "input: [x, x], axis: 1",
    "expand_dims": "axis: 1",
    "squeeze": "input: thin, axis: [1]",
    "clip": "minimum: 0, maximum: 1",
    "l2_normalize": "axis: -1",
    "rnn": "input: steps, units: 3, unrolled: true, bidirectional: true",
    "gru": "input: steps, units: 3, return: last, layers: 2, dropout: 0.1",
    "lstm": "input: steps, units: 3, lengths: ids, projection: 2, clip: 1.0, bidirectional: true",
    "reduce_sum": "axis: [1, 2]",
    "reduce_max": "axis: 1, keepdims: true",
    "concat": "input: [x, x], axis: -1",
    "one_hot": "input: ids, depth: 5",
    "embedding": "input: ids, vocabulary: 10, size: 3",
    "argmax": "axis: -1",
}


@pytest.mark.parametrize("kind", LAYERS)
def test_every_layer(kind: str) -> None:
    options = LAYER_ENTRIES.get(kind, "")
    source = "" if "input:" in options else "input: x, "
    meta = build(f"""
        inputs:
          x: {{shape: [null, 4, 4, 2]}}
          ids: {{dtype: int32, shape: [null]}}
          thin: {{shape: [null, 1, 4]}}
          square: {{shape: [3, 3]}}
          steps: {{shape: [null, 5, 2]}}
          volumes: {{shape: [null, 4, 4, 4, 2]}}
          flag: {{dtype: bool, default: false}}
        nodes:
          - {{layer: {kind}, name: it, {source}{options}}}
    """)
    assert any(node.name == "it" or node.name.startswith("it/") for node in meta.graph)


@pytest.mark.parametrize(
    "loss",
    [
        "{type: sparse_softmax_cross_entropy, labels: y, logits: out}",
        "{type: softmax_cross_entropy, labels: t, logits: out}",
        "{type: sigmoid_cross_entropy, labels: t, logits: out, weight: 0.5}",
        "{type: mean_squared_error, labels: t, predictions: out, name: error}",
        "{type: absolute_difference, labels: t, predictions: out}",
        "{tensor: out, regularization: false}",
    ],
)
@pytest.mark.parametrize(
    "optimizer",
    [
        "{type: sgd, learning_rate: 1e-2}",
        "{type: momentum, learning_rate: {schedule: exponential_decay, learning_rate: 0.1, decay_steps: 10, decay_rate: 0.5}, momentum: 0.9}",
        "{type: adam, clip_norm: 1.0}",
        "{type: rmsprop, learning_rate: 0.1, clip_value: 0.5, name: step}",
        "{type: adagrad, learning_rate: {schedule: piecewise_constant, boundaries: [5], values: [0.1, 0.01]}}",
        "{type: ftrl, learning_rate: 0.1}",
        "{type: adadelta}",
        "{type: adamw, weight_decay: 0.01, beta1: 0.8}",
        "{type: momentumw, weight_decay: 0.01, learning_rate: 0.1, momentum: 0.9, use_nesterov: true}",
        "{type: nadam}",
        "{type: lazy_adam, learning_rate: 0.1}",
        "{type: lars, learning_rate: 0.1, skip_list: [bias]}",
        "{type: proximal_sgd, learning_rate: 0.1, l1_regularization_strength: 0.01}",
        "{type: proximal_adagrad, learning_rate: 0.1}",
        "{type: adagrad_da, learning_rate: 0.1, l2_regularization_strength: 0.01}",
    ],
)
def test_losses_and_optimizers(loss: str, optimizer: str) -> None:
    meta = build(
        f"""
        seed: 1
        inputs:
          x: {{shape: [null, 3]}}
          y: {{dtype: int64, shape: [null]}}
          t: {{shape: [null, 2]}}
        nodes:
          - {{layer: dense, name: out, units: 2, regularizer: {{l1: 0.1}}}}
        loss: {loss}
        optimizer: {optimizer}
        metrics:
          accuracy: {{labels: y, predictions: out}}
          top: {{type: top_k_accuracy, labels: y, predictions: out, k: 1}}
          error: {{type: mean_squared_error, labels: t, predictions: out}}
          size: {{type: mean, tensor: out}}
        summaries: {{scalar: [size], histogram: [out]}}
        collections: {{kept: [out, x], ops: init}}
        saver: {{sharded: true, max_to_keep: 2}}
    """.replace("error:", "mse:")
        if "name: error" in loss
        else f"""
        inputs:
          x: {{shape: [null, 3]}}
          y: {{dtype: int64, shape: [null]}}
          t: {{shape: [null, 2]}}
        nodes:
          - {{layer: dense, name: out, units: 2}}
        loss: {loss}
        optimizer: {optimizer}
    """
    )
    train = "step" if "name: step" in optimizer else "train"
    assert train in meta.graph
    assert meta.collections["train_op"] == [train]


def test_anchors_merges_and_standard_words() -> None:
    meta = build("""
        inputs:
          x: {shape: [null, 3]}
          on: {dtype: bool, default: true}
        nodes:
          - &first {layer: dense, name: a, units: 4}
          - {<<: *first, name: b, units: 2}
    """)
    assert meta.graph.node("b/kernel").attr("shape").dims == (4, 2)


# -- mistakes -----------------------------------------------------------------------------------------------------

BASE = """
inputs:
  x: {dtype: float32, shape: [null, 3]}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "s.yaml: the spec is empty"),
        ("- 1", "s.yaml:1:1: expected a mapping, found a list"),
        ("{}", "s.yaml:1:1: the spec makes no graph: give inputs, variables or nodes"),
        ("a: [", "s.yaml:1: not valid YAML: "),
        ("inputs: {x: {}}\ninputs: {}", "s.yaml:2:1: the key 'inputs' is given twice"),
        ("inputs: {? [1] : 2}", "s.yaml:1:12: inputs: a key must be a word"),
        ("a: 1\n---\nb: 2", "s.yaml:2:1: not valid YAML: "),
        ("inputs: &a {x: *a}", "an alias contains itself"),
        ("input: {x: {}}", "s.yaml:1:1: unknown key 'input'; did you mean 'inputs' or 'init'? (expected: name, "),
        ("seed: x", "s.yaml:1:1: seed: expected a whole number, found 'x'"),
        ("seed: -1", "s.yaml:1:1: seed: expected at least 0, found -1"),
        ("inputs: {x: {dtype: flaot32}}", "s.yaml:1:14: inputs.x.dtype: 'flaot32' is not a data type; did you mean 'float32'"),
        ("inputs: {x: {shape: 3}}", "s.yaml:1:14: inputs.x.shape: expected a list, found 3"),
        ("inputs: {x: {shape: [a]}}", "s.yaml:1:22: inputs.x.shape[0]: expected a whole number, found 'a'"),
        ("inputs: {x: {dtyp: int32}}", "s.yaml:1:14: inputs.x: unknown key 'dtyp'; did you mean 'dtype'"),
        ("inputs: {x: {dtype: int32, default: 1.5}}", "s.yaml:1:10: inputs.x: expected int32, but got 1.5 of type 'float'"),
        ("inputs: {'bad name': {}}", "is not a scope name"),
        ("device: /jb:x\ninputs: {x: {}}", "s.yaml:1:1: device: '/jb:x' is not a device name"),
        ("variables: {v: {}}", "s.yaml:1:13: variables.v: a variable needs shape (with initializer) or value"),
        ("variables: {v: {shape: [2], initializer: zeroes}}", "'zeroes' is unknown; did you mean 'zeros'"),
        (
            "variables: {v: {shape: [2], initializer: {type: random_normal, std: 1}}}",
            "s.yaml:1:64: variables.v.initializer: unknown key 'std'; did you mean 'stddev'",
        ),
        ("variables: {v: {value: 1, initializer: ones}}", "give either initializer or value, not both"),
        ("variables: {v: {shape: [2], trainable: 1}}", "variables.v.trainable: expected true or false, found 1"),
        ("variables: {v: {value: [[1], [1, 2]]}}", "s.yaml:1:13: variables.v: not a tensor"),
        (BASE + "nodes: 3", "s.yaml:4:1: nodes: expected a list, found 3"),
        (BASE + "nodes:\n  - {name: a}", "s.yaml:5:5: nodes[0]: each entry has exactly one of the keys scope, layer, op, dataset, queue, cond, while, map, scan, call, repeat and include"),
        (BASE + "nodes:\n  - {layer: dens}", "s.yaml:5:6: nodes[0].layer: 'dens' is unknown; did you mean 'dense'"),
        (BASE + "nodes:\n  - {layer: dense}", "s.yaml:5:5: nodes[0]: the key 'units' is missing"),
        (BASE + "nodes:\n  - {layer: dense, unit: 3}", "s.yaml:5:20: nodes[0]: unknown key 'unit'; did you mean 'units'"),
        (BASE + "nodes:\n  - {layer: dense, units: 0}", "nodes[0].units: expected at least 1, found 0"),
        (BASE + "nodes:\n  - {layer: dense, units: 2, input: z}", "nodes[0].input: nothing is named 'z'"),
        (BASE + "nodes:\n  - {layer: dense, units: 2, activation: rleu}", "'rleu' is unknown; did you mean 'relu'"),
        (BASE + "nodes:\n  - {layer: dense, units: 2, input: 'x:1'}", "'x' has 1 output(s), so there is no 'x:1'"),
        (BASE + "nodes:\n  - {layer: conv2d, filters: 2, kernel: 3}", "s.yaml:5:5: nodes[0]: Conv2D with inputs"),
        (BASE + "nodes:\n  - {layer: max_pool, size: [1, 2, 3]}", "nodes[0].size: expected 2 values, found 3"),
        (BASE + "nodes:\n  - {layer: relu, input: [x, x]}", "the layer takes one input, not 2"),
        (BASE + "nodes:\n  - {layer: add}", "nodes[0]: the layer takes two inputs or more"),
        (BASE + "nodes:\n  - {layer: dropout, rate: 1.5}", "nodes[0].rate: expected at most 0.999999, found 1.5"),
        (BASE + "nodes:\n  - {layer: dense, units: 2, regularizer: {l2: 0}}", "expected l1 or l2 above 0"),
        ("nodes:\n  - {layer: relu}", "s.yaml:2:5: nodes[0]: the layer has no input"),
        (BASE + "nodes:\n  - {layer: relu, name: x}", "s.yaml:5:5: nodes[0]: the name 'x' is taken by an earlier entry"),
        (BASE + "nodes:\n  - {layer: relu, device: nowhere}", "nodes[0].device: 'nowhere' is not a device name"),
        (BASE + "nodes:\n  - {layer: relu, control_inputs: [y]}", "nodes[0].control_inputs[0]: nothing is named 'y'"),
        (BASE + "nodes:\n  - {op: Rleu, inputs: [x]}", "s.yaml:5:6: nodes[0].op: there is no op 'Rleu'; did you mean 'Relu'"),
        (BASE + "nodes:\n  - {op: Relu}", "s.yaml:5:5: nodes[0]: Relu takes 1 input(s) (features), got 0"),
        (BASE + "nodes:\n  - {op: Relu, inputs: {feature: x}}", "unknown key 'feature'; did you mean 'features'"),
        (BASE + "nodes:\n  - {op: Relu, inputs: [x], attrs: {T: flot}}", "attribute 'T' of Relu: 'flot' is not a data type"),
        (
            BASE + "nodes:\n  - {op: MatMul, inputs: [x, x], attrs: {transpose: true}}",
            "nodes[0].attrs: unknown key 'transpose'; did you mean 'transpose_b' or 'transpose_a'",
        ),
        (BASE + "nodes:\n  - {op: MatMul, inputs: [x, x], attrs: {transpose_b: 1}}", "must be a bool, not 1"),
        (BASE + "nodes:\n  - {op: MatMul, inputs: [x, {const: [[1.0]]}]}", "s.yaml:5:5: nodes[0]: MatMul with inputs [?,3], [1,1]"),
        (BASE + "nodes:\n  - {op: MatMul, inputs: [x, {const: 1, dtype: int32}]}", "has type int32 that does not match float32"),
        (BASE + "nodes:\n  - {op: Split, inputs: [0, x]}", "Split needs the attribute 'num_split' (int)"),
        (
            BASE + "nodes:\n  - {op: Conv2D, inputs: [x, x], attrs: {strides: [1, 1, 1, 1], padding: SAM}}",
            "'SAM' is not allowed for 'padding'; allowed: 'SAME', 'VALID', 'EXPLICIT'",
        ),
        (BASE + "nodes:\n  - {op: Assign, inputs: [x, x]}", "input 'ref' of Assign must be a reference variable, not 'x:0'"),
        (BASE + "nodes:\n  - {op: NoOp, name: n}\n  - {layer: relu, input: n}", "'n' is an operation without outputs"),
        (BASE + "nodes:\n  - {scope: s, nods: []}", "s.yaml:5:16: nodes[0]: unknown key 'nods'; did you mean 'nodes'"),
        (BASE + "nodes:\n  - {scope: s}", "s.yaml:5:5: nodes[0]: the key 'nodes' is missing"),
        (BASE + "loss: {type: hing}", "s.yaml:4:8: loss.type: 'hing' is unknown; did you mean 'hinge'? (expected one of: sparse_softmax"),
        (BASE + "loss: {type: mean_squared_error, labels: x}", "s.yaml:4:1: loss: the key 'predictions' is missing"),
        (BASE + "loss: {}", "s.yaml:4:1: loss: the key 'tensor' is missing"),
        (BASE + "metrics: {size: {tensor: x}}", "metrics.size: the key 'type' is missing"),
        (BASE + "metrics: {accuracy: {labels: x, predictions: q}}", "metrics.accuracy.predictions: nothing is named 'q'"),
        (BASE + "optimizer: {type: adam}", "s.yaml:4:1: optimizer: an optimizer needs a loss"),
        (BASE + "loss: {tensor: x}\noptimizer: {type: adm}", "optimizer.type: 'adm' is unknown; did you mean 'adam'"),
        (BASE + "loss: {tensor: x}\noptimizer: {type: adam}", "s.yaml:5:1: optimizer: there are no variables to optimize"),
        (BASE + "loss: {tensor: x}\noptimizer: {type: adam, beta3: 1}", "unknown key 'beta3'; did you mean 'beta2' or 'beta1'"),
        (BASE + "loss: {tensor: x}\noptimizer: {type: sgd}", "s.yaml:5:1: optimizer: the key 'learning_rate' is missing"),
        (
            BASE + "loss: {tensor: x}\noptimizer: {type: sgd, learning_rate: fast}",
            "optimizer.learning_rate: expected a number, found 'fast'",
        ),
        (
            BASE + "loss: {tensor: x}\noptimizer: {type: sgd, learning_rate: {schedule: cosine_decay, learning_rate: 1}}",
            "optimizer.learning_rate: the key 'decay_steps' is missing",
        ),
        (BASE + "saver: true", "s.yaml:4:1: saver: there are no variables to save"),
        (BASE + "saver: {max_to_keep: many}", "saver.max_to_keep: expected a whole number, found 'many'"),
        (BASE + "variables: {v: {value: 1.0}}\nsaver: {variables: [w]}", "saver.variables[0]: there is no variable 'w'"),
        (BASE + "signatures: {s: {inputs: [x]}}", "s.yaml:4:14: signatures.s: the key 'outputs' is missing"),
        (BASE + "signatures: {s: {outputs: {y: xx}}}", "signatures.s.outputs.y: nothing is named 'xx'; did you mean 'x'"),
        (BASE + "collections: {c: [q]}", "collections.c[0]: nothing is named 'q'"),
        (BASE + "summaries: {scaler: [x]}", "summaries: unknown key 'scaler'; did you mean 'scalar'"),
        (BASE + "summaries: {audio: [x]}", "s.yaml:4:13: summaries.audio: expected a mapping, found a list"),
        (BASE + "summaries: {audio: {x: {}}}", "s.yaml:4:21: summaries.audio.x: the key 'sample_rate' is missing"),
        (BASE + "summaries: {image: {i: {tensor: y}}}", "summaries.image.i.tensor: nothing is named 'y'"),
        (BASE + "summaries: {image: {i: {max_outputs: 0}}}", "summaries.image.i.max_outputs: expected at least 1, found 0"),
        (BASE + "nodes:\n  - {layer: conv1d, filters: 2, kernel: 3}", "s.yaml:5:5: nodes[0]: layer conv1d takes inputs of 3 dimensions, not of shape [?,3]"),
        (BASE + "nodes:\n  - {layer: attention}", "attention takes [batch, steps, features]; 'x:0' has [?,3]"),
        (
            "inputs: {x: {shape: [null, 2, 3]}}\nnodes:\n  - {layer: attention, heads: 2}",
            "s.yaml:3:5: nodes[0]: 3 units cannot be shared by 2 heads: give a multiple",
        ),
        (BASE + "init: maybe", "s.yaml:4:1: init: expected true or false, found 'maybe'"),
    ],
)  # fmt: skip
def test_mistakes(text: str, expected: str) -> None:
    assert expected in message(text)


# -- Python specs ---------------------------------------------------------------------------------------------------


def _python(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "spec.py"
    path.write_text(textwrap.dedent(text))
    return path


def test_python_specs(tmp_path: Path) -> None:
    by_function = build_spec(_python(tmp_path, """
        from toolkit import client as gm

        def build():
            x = gm.placeholder(gm.float32, [None, 2], name="x")
            y = gm.identity(x * 2.0, name="y")
            return gm.to_meta_graph(signatures={"double": gm.predict_signature({"x": x}, {"y": y})})
    """))  # fmt: skip
    assert list(by_function.signatures) == ["double"]
    at_module_level = build_spec(_python(tmp_path, """
        from toolkit import client as gm
        gm.constant(1.0, name="one")
    """))  # fmt: skip
    assert [node.name for node in at_module_level.graph] == ["one"]
    own_graph = build_spec(_python(tmp_path, """
        from toolkit import client as gm
        graph = gm.Graph()
        with graph.as_default():
            gm.constant(1.0, name="mine")
    """))  # fmt: skip
    assert [node.name for node in own_graph.graph] == ["mine"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def build(:", "spec.py:1: not valid Python: "),
        ("\nx = 1 / 0", "spec.py:2: the spec failed: ZeroDivisionError: division by zero"),
        ("x = 1", "spec.py: the spec made no nodes; define build()"),
        ("def build():\n    return 3", "spec.py: build() returned int; expected a MetaGraph"),
        (
            "from toolkit import client as gm\ngm.constant(1) + 'a'",
            "spec.py:2: expected int32, but got 'a' of type 'str'",
        ),
    ],
)
def test_mistakes_in_python_specs(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(GraphmillError) as caught:
        build_spec(_python(tmp_path, text))
    assert expected in str(caught.value)


def test_files_that_are_no_specs(tmp_path: Path) -> None:
    with pytest.raises(GraphmillError, match="nothing"):
        build_spec(tmp_path / "nothing.yaml")
    with pytest.raises(GraphmillError, match="nothing"):
        build_spec(tmp_path / "nothing.py")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FormatError, match="it is not UTF-8 text"):
        build_spec(tmp_path / "binary.yaml")
