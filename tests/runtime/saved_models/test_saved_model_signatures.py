"""Signatures of SavedModels: structures, loops, branches, arrays, text, ragged and sparse tensors."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from commands.main import run
from tests.runtime.saved_models.saved_model_case import (
    answer_of_command,
    answer_of_session,
    answer_of_v2,
    check_saved_model,
)
from toolkit.formats.models.model import read_model

pytestmark = pytest.mark.tensorflow
RANDOM = np.random.default_rng(21)
X = RANDOM.standard_normal((3, 4)).astype(np.float32)


def _save(tf: ModuleType, folder: Path, function: Any, *specs: Any, **attributes: Any) -> Path:
    """A SavedModel whose one signature is `function`, closed over whatever `attributes` keep alive."""
    module = tf.Module()
    for name, value in attributes.items():
        setattr(module, name, value)
    module.serve = tf.function(function, input_signature=list(specs))
    tf.saved_model.save(module, str(folder / "model"), signatures=module.serve)
    return folder / "model"


def test_dict_of_many_types(tf: ModuleType, tmp_path: Path) -> None:
    def serve(x: Any, n: Any) -> dict[str, Any]:
        return {
            "z_last": x * 2, "a_first": tf.cast(x > 0, tf.bool), "half": tf.cast(x, tf.float16),
            "count": tf.size(x, tf.int64), "text": tf.strings.as_string(n), "complex": tf.complex(x, -x),
            "bytes": tf.cast(n, tf.uint8), "scalar": tf.reduce_sum(x),
        }  # fmt: skip

    specs = tf.TensorSpec([None, 4], tf.float32, name="x"), tf.TensorSpec([2], tf.int32, name="n")
    folder = _save(tf, tmp_path, serve, *specs)
    check_saved_model(tf, folder, {"x": X, "n": np.array([3, 250], np.int32)})


def test_names_of_the_signature_that_is_meant(
    tf: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """One output of a signature that nobody names; tensors are fetched as ever, and what is neither is told."""

    def serve(x: Any) -> dict[str, Any]:
        return {"twice": x * 2, "sum": tf.reduce_sum(x)}

    folder = str(_save(tf, tmp_path, serve, tf.TensorSpec([None], tf.float32, name="x")))
    run_it = ["run", folder, "--feed"]
    assert run([*run_it, "x=[1, 2]", "--fetch", "twice"]) == 0
    assert "twice = [2., 4.]" in capfd.readouterr().out
    assert run([*run_it, "serving_default_x=[1, 2]", "--fetch", "sum"]) == 0
    assert "sum = 3." in capfd.readouterr().out
    assert run([*run_it, "x=[1, 2]", "--fetch", "PartitionedCall:0"]) == 0
    capfd.readouterr()
    assert run([*run_it, "z=[1, 2]", "--fetch", "sum"]) == 2
    assert "there is nothing named 'z' to feed; inputs: x, serving_default_x" in capfd.readouterr().err


def test_outputs_without_names(tf: ModuleType, tmp_path: Path) -> None:
    """A tuple or a list is numbered; a single tensor is output_0."""
    spec = tf.TensorSpec([None, 4], tf.float32, name="x")

    class Module(tf.Module):
        @tf.function(input_signature=[spec])
        def several(self, x: Any) -> Any:
            return x + 1, tf.reduce_sum(x), x * 3

        @tf.function(input_signature=[spec])
        def listed(self, x: Any) -> Any:
            return [x + 1, x - 1]

        @tf.function(input_signature=[spec])
        def one(self, x: Any) -> Any:
            return -x

    module = Module()
    signatures = {"several": module.several, "listed": module.listed, "one": module.one}
    tf.saved_model.save(module, str(tmp_path / "model"), signatures=signatures)
    for key, count in (("several", 3), ("listed", 2), ("one", 1)):
        wanted = check_saved_model(tf, tmp_path / "model", {"x": X}, key)
        assert sorted(wanted) == [f"output_{n}" for n in range(count)]


def test_nested_arguments(tf: ModuleType, tmp_path: Path) -> None:
    """Nested dicts and tuples as inputs are flattened into the signature, under names TensorFlow makes."""
    spec = {
        "pair": (tf.TensorSpec([2], tf.float32, name="left"), tf.TensorSpec([2], tf.float32, name="right")),
        "inner": {"depth": {"x": tf.TensorSpec([], tf.float32)}, "b": tf.TensorSpec([], tf.float32, name="b")},
    }

    def serve(features: Any) -> dict[str, Any]:
        left, right = features["pair"]
        return {"out": left - right * features["inner"]["b"] + features["inner"]["depth"]["x"]}

    folder = _save(tf, tmp_path, serve, spec)
    inputs = read_model(folder).meta.signatures["serving_default"].inputs
    assert len(inputs) == 4
    values = {
        name: np.full([2] if info.shape.rank else [], n + 2, "f") for n, (name, info) in enumerate(inputs.items())
    }
    check_saved_model(tf, folder, values)


def test_while_cond_case_and_switch(tf: ModuleType, tmp_path: Path) -> None:
    weights = tf.Variable(RANDOM.uniform(-0.5, 0.5, (4, 4)).astype(np.float32))

    def serve(x: Any, n: Any) -> dict[str, Any]:
        def body(i: Any, y: Any) -> Any:
            y = tf.cond(i % 2 == 0, lambda: tf.tanh(y @ weights), lambda: y - tf.reduce_mean(y))
            return i + 1, y

        looped = tf.while_loop(lambda i, y: i < n, body, [0, x], maximum_iterations=20)[1]
        branches = [lambda: x, lambda: x * 2, lambda: tf.reverse(x, [1])]
        switched = tf.switch_case(tf.minimum(n, 5), branches)
        cases = [(n > 100, lambda: x + 1), (tf.reduce_sum(x) > 0, lambda: x + 2)]
        return {"looped": looped, "switched": switched, "cased": tf.case(cases, default=lambda: x + 3)}

    specs = tf.TensorSpec([None, 4], tf.float32, name="x"), tf.TensorSpec([], tf.int32, name="n")
    folder = _save(tf, tmp_path, serve, *specs, weights=weights)
    for n in (0, 1, 2, 7, 101):
        check_saved_model(tf, folder, {"x": X, "n": np.int32(n)})


def test_python_control_flow(tf: ModuleType, tmp_path: Path) -> None:
    """What AutoGraph makes of break, continue, early return and for loops over tensors and ranges."""

    def serve(x: Any, limit: Any) -> dict[str, Any]:
        total, seen = tf.constant(0.0), tf.constant(0)
        for row in x:
            if tf.reduce_sum(row) < -1.0:
                continue
            total += tf.reduce_sum(row)
            seen += 1
            if total > limit:
                break
        digits = tf.TensorArray(tf.int32, 0, dynamic_size=True)
        number = tf.cast(limit, tf.int32) + 1000
        while number > 0:
            digits = digits.write(digits.size(), number % 10)
            number //= 10
        return {"total": total, "seen": seen, "digits": digits.stack()}

    specs = tf.TensorSpec([None, 4], tf.float32, name="x"), tf.TensorSpec([], tf.float32, name="limit")
    folder = _save(tf, tmp_path, serve, *specs)
    x = RANDOM.standard_normal((9, 4)).astype(np.float32)
    for limit in (-5.0, 0.5, 1e3):
        check_saved_model(tf, folder, {"x": x, "limit": np.float32(limit)})


def test_map_scan_fold_and_tensor_arrays(tf: ModuleType, tmp_path: Path) -> None:
    def serve(x: Any) -> dict[str, Any]:
        pairs = tf.map_fn(
            lambda row: (tf.reduce_max(row), tf.argmax(row)), x, fn_output_signature=(tf.float32, tf.int64)
        )
        array = tf.TensorArray(tf.float32, 0, dynamic_size=True, infer_shape=False)
        for i in tf.range(tf.shape(x)[0]):
            array = array.write(i, x[i, : i + 1])
        lengths = tf.range(tf.shape(x)[0]) + 1
        split = tf.TensorArray(tf.float32, tf.shape(x)[0], infer_shape=False).split(array.concat(), lengths)
        ragged = tf.map_fn(
            lambda i: tf.range(i), tf.range(4), fn_output_signature=tf.RaggedTensorSpec([None], tf.int32)
        )  # fmt: skip
        return {
            "max": pairs[0], "at": pairs[1], "scan": tf.scan(lambda a, b: a + b, x), "concat": array.concat(),
            "fold": tf.foldr(lambda a, b: a * 0.5 + b, x), "second": split.read(1), "ragged": ragged.values,
            "vector": tf.vectorized_map(lambda row: tf.tensordot(row, row, 1), x),
        }  # fmt: skip

    folder = _save(tf, tmp_path, serve, tf.TensorSpec([None, 4], tf.float32, name="x"))
    check_saved_model(tf, folder, {"x": X})


def test_text_in_and_out(tf: ModuleType, tmp_path: Path) -> None:
    def serve(text: Any) -> dict[str, Any]:
        return {
            "upper": tf.strings.upper(text, encoding="utf-8"), "length": tf.strings.length(text, unit="UTF8_CHAR"),
            "reversed": tf.strings.reduce_join(
                tf.reverse(tf.strings.unicode_split(text, "UTF-8").to_tensor(""), [1]), axis=1
            ),
            "hash": tf.strings.to_hash_bucket_strong(text, 1000, [3, 5]),
        }  # fmt: skip

    folder = _save(tf, tmp_path, serve, tf.TensorSpec([None], tf.string, name="text"))
    for texts in (["héllo wörld", "", "日本語 text"], []):
        check_saved_model(tf, folder, {"text": np.array([text.encode() for text in texts], object)})


def test_ragged_inputs_and_outputs(tf: ModuleType, tmp_path: Path) -> None:
    """TensorFlow numbers the parts of a ragged input; the parts of an output have no names of its own."""

    def serve(tokens: Any) -> dict[str, Any]:
        doubled = tf.concat([tokens, tokens * 2], axis=1)
        return {"doubled": doubled, "sums": tf.reduce_sum(tokens, axis=-1), "rows": tokens.nrows()}

    folder = _save(tf, tmp_path, serve, tf.RaggedTensorSpec([None, None, None], tf.int64, ragged_rank=2))
    ragged = tf.ragged.constant([[[1, 2], []], [], [[3, 4, 5]]], dtype=tf.int64, ragged_rank=2)
    outer, inner = ragged.nested_row_splits
    inputs = {"tokens": ragged.flat_values.numpy(), "tokens_1": outer.numpy(), "tokens_2": inner.numpy()}
    wanted = check_saved_model(tf, folder, inputs)
    names = {"doubled.values", "doubled.row_splits", "doubled.row_splits_1", "sums.values", "sums.row_splits", "rows"}
    assert set(wanted) == names


def test_sparse_inputs_and_outputs(tf: ModuleType, tmp_path: Path) -> None:
    weights = tf.Variable(RANDOM.standard_normal((5, 2)).astype(np.float32))

    def serve(features: Any) -> dict[str, Any]:
        return {"product": tf.sparse.sparse_dense_matmul(features, weights), "scaled": features * 2.0}

    folder = _save(tf, tmp_path, serve, tf.SparseTensorSpec([None, 5], tf.float32), weights=weights)
    inputs = {
        "features": np.array([[0, 1], [2, 0], [2, 4]], np.int64), "features_1": np.float32([1, 2, 3]),
        "features_2": np.array([3, 5], np.int64),
    }  # fmt: skip
    wanted = check_saved_model(tf, folder, inputs)
    assert set(wanted) == {"product", "scaled.indices", "scaled.values", "scaled.dense_shape"}


def test_composites_of_tensorflow_1(tf: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Its signatures name sparse and ragged inputs as a whole; their parts are fed by name."""
    v1 = tf.compat.v1
    info, folder = v1.saved_model.build_tensor_info, tmp_path / "model"
    with tf.Graph().as_default(), v1.Session() as session:
        sparse = v1.sparse_placeholder(tf.float32, [None, 5], name="sparse")
        ragged = v1.ragged.placeholder(tf.int32, 1, name="ragged")
        builder = v1.saved_model.Builder(str(folder))
        inputs = {"sparse": info(sparse), "ragged": info(ragged)}
        outputs = {
            "dense": info(tf.sparse.to_dense(sparse)), "sparse": info(tf.sparse.transpose(sparse)),
            "ragged": info(tf.concat([ragged, ragged], 1)),
        }  # fmt: skip
        signature = v1.saved_model.build_signature_def(inputs, outputs, "predict")
        builder.add_meta_graph_and_variables(session, ["serve"], signature_def_map={"serving_default": signature})
        builder.save()
        feeds = {sparse: v1.SparseTensorValue([[0, 1], [1, 4]], [1.0, 2.0], [2, 5])}
        rows = v1.ragged.RaggedTensorValue(np.int32([7, 8, 9]), np.int64([0, 2, 2, 3]))
        dense, turned = session.run([outputs["dense"].name, tf.sparse.transpose(sparse)], feeds)
    given = {
        "sparse.indices": [[0, 1], [1, 4]], "sparse.values": [1.0, 2.0], "sparse.dense_shape": [2, 5],
        "ragged.values": rows.values, "ragged.row_splits": rows.row_splits,
    }  # fmt: skip
    for got in (answer_of_session(folder, given), answer_of_command(folder, given)):
        np.testing.assert_array_equal(got["dense"], dense)
        for part in ("indices", "values", "dense_shape"):
            np.testing.assert_array_equal(got[f"sparse.{part}"], getattr(turned, part))
        assert got["ragged.values"].tolist() == [7, 8, 7, 8, 9, 9]
        assert got["ragged.row_splits"].tolist() == [0, 4, 4, 6]
    assert run(["run", str(folder), "--feed", "sparse=[1]"]) == 2
    message = capfd.readouterr().err
    assert "there is nothing named 'sparse' to feed" in message and "sparse.indices" in message


def test_calls_within_calls(tf: ModuleType, tmp_path: Path) -> None:
    """Functions that call functions, a custom gradient, and a gradient in the signature."""

    class Module(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = tf.Variable(RANDOM.standard_normal((4, 4)).astype(np.float32))

        @tf.function
        def layer(self, x: Any, activate: bool) -> Any:
            y = x @ self.weight
            return tf.tanh(y) if activate else y

        @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
        def serve(self, x: Any) -> dict[str, Any]:
            @tf.custom_gradient
            def clipped(value: Any) -> Any:
                return tf.exp(value), lambda upstream: tf.clip_by_value(upstream, -0.5, 0.5)

            with tf.GradientTape() as tape:
                tape.watch(x)
                score = tf.reduce_sum(clipped(self.layer(self.layer(x, True), False)))
            saliency = tape.gradient(score, x)
            return {"score": score, "saliency": saliency, "norm": tf.norm(saliency)}

    module = Module()
    tf.saved_model.save(module, str(tmp_path / "model"), signatures=module.serve)
    check_saved_model(tf, tmp_path / "model", {"x": X})


def test_no_inputs(tf: ModuleType, tmp_path: Path) -> None:
    counter = tf.Variable(41)
    folder = _save(tf, tmp_path, lambda: {"next": counter.assign_add(1)}, counter=counter)
    assert check_saved_model(tf, folder, {})["next"] == 42


@pytest.mark.parametrize("tokens", [False, True])
def test_both_executors(tf: ModuleType, tmp_path: Path, tokens: bool) -> None:
    state = tf.Variable([1.0, 2.0])

    def serve(n: Any) -> dict[str, Any]:
        for i in tf.range(n):
            state.assign(state * 0.5 + tf.cast(i, tf.float32))
        return {"state": state.read_value()}

    folder = _save(tf, tmp_path, serve, tf.TensorSpec([], tf.int32, name="n"), state=state)
    wanted = answer_of_v2(tf, folder, {"n": np.int32(5)})
    got = answer_of_session(folder, {"n": np.int32(5)}, force_tokens=tokens)
    np.testing.assert_array_equal(got["state"], wanted["state"])
