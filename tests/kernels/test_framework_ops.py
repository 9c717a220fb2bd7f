"""Ops that hold graphs together besides control flow, against TensorFlow."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.kernels.graph_suite import check_graph
from tests.kernels.op_suite import Case, check, sample

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("names", [["CPU", "GPU"], ["GPU", "CPU"], ["TPU"], []])
def test_device_index(names: list[str], tf: ModuleType) -> None:
    check(Case("DeviceIndex", [], {"device_names": [name.encode() for name in names]}))


@pytest.mark.parametrize("dtype", ["float32", "string", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(2, 3), (None, 3), (), None])
def test_fake_param(shape: Any, dtype: str, tf: ModuleType) -> None:
    """Its values are whatever was in memory."""
    check(Case("FakeParam", [], {"dtype": dtype, "shape": shape}, skip_outputs=(0,)))


def test_graph_def_version() -> None:
    from toolkit.graph.graph import Graph
    from toolkit.runtime.session import Session

    graph = Graph()
    graph.versions.producer = 27
    graph.add("GraphDefVersion", "version")
    with Session(graph) as session:
        assert session.run("version:0") == 27


BATCHED: list[tuple[str, dict[str, Any], int, str | None]] = [
    ("plain", {}, 3, None), ("padded", {"allowed_batch_sizes": [2, 4, 8]}, 3, None),
    ("whole", {"allowed_batch_sizes": [2, 4, 8]}, 4, None), ("large", {}, 9, "INVALID_ARGUMENT"),
    ("split", {"enable_large_batch_splitting": True, "allowed_batch_sizes": [2, 4]}, 7, None),
    ("sizes", {"allowed_batch_sizes": [4, 2, 8]}, 3, "INVALID_ARGUMENT"),
    ("last", {"allowed_batch_sizes": [2, 4]}, 3, "INVALID_ARGUMENT"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "attrs", "size", "error"), BATCHED, ids=[row[0] for row in BATCHED])
def test_batch_function(what: str, attrs: dict[str, Any], size: int, error: str | None, tf: ModuleType) -> None:
    def build() -> Any:
        @tf.function
        def function(x: Any, y: Any, scale: Any) -> Any:
            return x * scale, tf.cast(y, tf.float32)[:, :1] + tf.reduce_sum(x, axis=1, keepdims=True)

        spec = [tf.TensorSpec([None, 3], tf.float32), tf.TensorSpec([None, 2], tf.int32), tf.TensorSpec([], tf.float32)]
        concrete = function.get_concrete_function(*spec)
        concrete.add_to_graph()
        out = tf.raw_ops.BatchFunction(
            in_tensors=[tf.constant(sample("float32", (size, 3))), tf.constant(sample("int32", (size, 2)))],
            captured_tensors=[tf.constant(2.5)], f=concrete, num_batch_threads=1, max_batch_size=8,
            batch_timeout_micros=0, Tout=[tf.float32, tf.float32], **attrs,
        )  # fmt: skip
        return list(out)

    check_graph(build, error=error)


def test_composite_tensors(tf: ModuleType) -> None:
    def build() -> Any:
        from tensorflow.core.protobuf import composite_tensor_variant_pb2

        spec = tf.RaggedTensorSpec([2, None], tf.float32)
        form = tf.__internal__.saved_model.encode_structure(spec).type_spec_value
        metadata = composite_tensor_variant_pb2.CompositeTensorVariantMetadata(type_spec_proto=form).SerializeToString()
        parts = [tf.constant([1.0, 2, 3]), tf.constant([0, 1, 3], tf.int64)]
        encoded = tf.raw_ops.CompositeTensorVariantFromComponents(components=parts, metadata=metadata)
        out = tf.raw_ops.CompositeTensorVariantToComponents(
            encoded=encoded, metadata=metadata, Tcomponents=[tf.float32, tf.int64]
        )
        return list(out)

    check_graph(build)


@pytest.mark.parametrize("wrong", [[np.float32, np.int32], [np.float32]])
def test_composite_tensor_of_other_types(wrong: list[Any]) -> None:
    from toolkit.errors import InvalidArgumentError
    from toolkit.graph import dtypes
    from toolkit.graph.graph import Graph
    from toolkit.runtime.session import Session

    graph = Graph()
    types = [dtypes.float32, dtypes.int64]
    parts = [graph.add("Placeholder", f"x{i}", attrs={"dtype": t}) for i, t in enumerate(types)]
    attrs = {"metadata": b"", "Tcomponents": types}
    encoded = graph.add("CompositeTensorVariantFromComponents", "encoded", parts, attrs=attrs)
    other = {"metadata": b"", "Tcomponents": [dtypes.from_numpy(np.dtype(t)) for t in wrong]}
    graph.add("CompositeTensorVariantToComponents", "apart", [encoded], attrs=other)
    with Session(graph) as session, pytest.raises(InvalidArgumentError):
        session.run("apart:0", {"x0:0": np.float32([1]), "x1:0": np.int64([0, 1])})


def test_composite_tensors_whose_form_is_no_message(tf: ModuleType) -> None:
    def build() -> Any:
        parts = [tf.constant([1.0, 2, 3])]
        encoded = tf.raw_ops.CompositeTensorVariantFromComponents(components=parts, metadata=b"ab,cd")
        return tf.raw_ops.CompositeTensorVariantToComponents(encoded=encoded, metadata=b"", Tcomponents=[tf.float32])

    check_graph(build, error="INVALID_ARGUMENT")


@pytest.mark.parametrize("index", [0, 1, 2, -1])
def test_references(index: int, tf: ModuleType) -> None:
    """The chosen variable itself is changed."""

    def build() -> Any:
        v1 = tf.compat.v1
        variables = [
            v1.get_variable(f"v{i}", initializer=tf.constant([float(i)]), use_resource=False) for i in range(2)
        ]
        v1.group(*(v.initializer for v in variables), name="init")
        chosen = tf.raw_ops.RefSelect(index=tf.constant(index), inputs=[v._ref() for v in variables])
        changed = v1.assign_add(tf.raw_ops.RefIdentity(input=chosen), [10.0])
        with tf.control_dependencies([changed]):
            return [tf.identity(changed), *(v.read_value() for v in variables)]

    check_graph(build, runs=2, error=None if index in (0, 1) else "INVALID_ARGUMENT")
