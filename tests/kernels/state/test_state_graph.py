"""Variables, temporary variables and first-version resources in whole graphs; forms of ops that TensorFlow lacks."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.kernels.graph_suite import check_graph
from tests.kernels.op_suite import Case, check, compare, run_ours, sample
from tests.kernels.step import FakeStep
from toolkit.errors import GivenUpError
from toolkit.kernels.resources.handles import ResourceHandle

pytestmark = pytest.mark.tensorflow

X = sample("float32", (2, 3))


def _variables(tf: Any) -> Any:
    """Both kinds, with initializers, updates and a read that waits."""
    v1 = tf.compat.v1
    ref = v1.get_variable("ref", initializer=X, use_resource=False)
    resource = v1.get_variable("resource", initializer=X * 2, use_resource=True)
    tf.group(ref.initializer, resource.initializer, name="init")
    more = v1.assign_add(ref, X, use_locking=True)
    tf.raw_ops.DisableCopyOnRead(resource=resource.handle)
    read = resource.read_value()
    with tf.control_dependencies([more, read]):
        less = resource.assign_sub(X).op
    with tf.control_dependencies([less]):
        return [more, resource.read_value(), tf.raw_ops.VarIsInitializedOp(resource=resource.handle)]


def _destroyed(tf: Any) -> Any:
    handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[2, 3], shared_name="gone")
    assign = tf.raw_ops.AssignVariableOp(resource=handle, value=X)
    with tf.control_dependencies([assign]):
        before = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
    with tf.control_dependencies([before]):
        destroy = tf.raw_ops.DestroyResourceOp(resource=handle)
    with tf.control_dependencies([destroy]):
        return [before, tf.raw_ops.VarIsInitializedOp(resource=handle)]


def _temporary(tf: Any) -> Any:
    from tensorflow.python.ops import gen_state_ops, state_ops

    temporary = gen_state_ops.temporary_variable(shape=[2, 3], dtype=tf.float32, var_name="t")
    started = state_ops.assign(temporary, X)
    added = state_ops.assign_add(started, X)
    return gen_state_ops.destroy_temporary_variable(added, var_name="t")


@pytest.mark.parametrize("build", [_variables, _destroyed, _temporary], ids=lambda f: f.__name__)
def test_variables(build: Any, tf: ModuleType) -> None:
    check_graph(lambda: build(tf), runs=2 if build is _variables else 1)


def test_uninitialized_variables_are_named(tf: ModuleType) -> None:
    def build() -> Any:
        return tf.compat.v1.get_variable("ref", initializer=X, use_resource=False) + 1.0

    check_graph(build, error="FAILED_PRECONDITION")


def _old_tables(tf: Any) -> Any:
    """Tables whose handles are strings."""
    from tensorflow.python.ops import gen_lookup_ops as ops

    fixed = ops.hash_table(key_dtype=tf.string, value_dtype=tf.int64)
    init = ops.initialize_table(fixed, ["a", "b"], np.int64([1, 2]))
    free = ops.mutable_hash_table(key_dtype=tf.int64, value_dtype=tf.float32)
    put = ops.lookup_table_insert(free, np.int64([5]), np.float32([0.5]))
    vectors = ops.mutable_hash_table_of_tensors(key_dtype=tf.int64, value_dtype=tf.float32, value_shape=[2])
    with tf.control_dependencies([ops.lookup_table_import(vectors, np.int64([5]), np.float32([[1, 2]]))]):
        found = ops.lookup_table_find(vectors, np.int64([5, 6]), np.float32([0, 0]))
        exported = list(ops.lookup_table_export(vectors, tf.int64, tf.float32))
    with tf.control_dependencies([init, put]):
        one = ops.lookup_table_find(fixed, ["b", "x"], np.int64(-1))
        two = ops.lookup_table_find(free, np.int64([5, 6]), np.float32(9))
        return [one, two, ops.lookup_table_size(fixed), found, *exported]


def _anonymous(tf: Any) -> Any:
    r = tf.raw_ops
    made = [
        r.AnonymousMutableHashTable(key_dtype=tf.int64, value_dtype=tf.int64),
        r.AnonymousMutableDenseHashTable(empty_key=np.int64(-1), deleted_key=np.int64(-2), value_dtype=tf.int64),
    ]
    out: list[Any] = []
    for handle in made:
        put = r.LookupTableInsertV2(table_handle=handle, keys=np.int64([1]), values=np.int64([7]))
        with tf.control_dependencies([put]):
            out.append(r.LookupTableFindV2(table_handle=handle, keys=np.int64([1, 2]), default_value=np.int64(0)))
    fixed = r.AnonymousHashTable(key_dtype=tf.int64, value_dtype=tf.int64)
    init = r.InitializeTableV2(table_handle=fixed, keys=np.int64([1]), values=np.int64([7]))
    with tf.control_dependencies([init]):
        out.append(r.LookupTableSizeV2(table_handle=fixed))
    vectors = r.AnonymousMutableHashTableOfTensors(key_dtype=tf.int64, value_dtype=tf.float32, value_shape=[2])
    out.append(r.LookupTableFindV2(table_handle=vectors, keys=np.int64([1]), default_value=np.float32([1, 2])))
    return out


@pytest.mark.parametrize("build", [_old_tables, _anonymous], ids=lambda f: f.__name__)
def test_tables(build: Any, tf: ModuleType) -> None:
    check_graph(lambda: build(tf))


def test_list_scatter_of_the_first_version(tf: ModuleType) -> None:
    def build() -> Any:
        r = tf.raw_ops
        made = r.TensorListScatter(tensor=X, indices=np.int32([2, 0]), element_shape=np.int32([3]))
        return r.TensorListStack(input_handle=made, element_shape=np.int32([3]), element_dtype=tf.float32)

    check_graph(build)


def test_closing_a_stack(tf: ModuleType) -> None:
    def build() -> Any:
        handle = tf.raw_ops.StackV2(max_size=-1, elem_type=tf.float32)
        with tf.control_dependencies([tf.raw_ops.StackCloseV2(handle=handle)]):
            return tf.raw_ops.StackPushV2(handle=handle, elem=X)

    check_graph(build, error="INVALID_ARGUMENT")


def test_convolution_gradients_from_tensors() -> None:
    """The forms that take the tensor for its shape give what those that take the sizes give."""
    one = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    x, w, dy = sample("float32", (2, 5, 5, 3)), sample("float32", (3, 3, 3, 4)), sample("float32", (2, 5, 5, 4))
    pairs = [
        ("Conv2DBackpropInput", [np.int32(x.shape), w, dy], "Conv2DBackpropInputV2", [x, w, dy], one),
        ("Conv2DBackpropFilter", [x, np.int32(w.shape), dy], "Conv2DBackpropFilterV2", [x, w, dy], one),
    ]
    deep = {"strides": [1] * 5, "padding": "SAME"}
    x, w, dy = x[:, :, :, None], w[:, :, None], dy[:, :, :, None]
    pairs += [
        ("Conv3DBackpropInputV2", [np.int32(x.shape), w, dy], "Conv3DBackpropInput", [x, w, dy], deep),
        ("Conv3DBackpropFilterV2", [x, np.int32(w.shape), dy], "Conv3DBackpropFilter", [x, w, dy], deep),
    ]
    for op, inputs, other, tensors, attrs in pairs:
        compare(run_ours(Case(other, tensors, attrs))[0], run_ours(Case(op, inputs, attrs))[0])


def test_reading_several_variables() -> None:
    from toolkit.graph import dtypes
    from toolkit.graph.shape import Shape
    from toolkit.kernels.resources.variables import Variable

    step = FakeStep()
    handles: list[ResourceHandle] = []
    for i in range(2):
        cell = Variable(f"v{i}", dtypes.float32, Shape([2, 3]))
        cell.value = X * i
        step.resources.create("", f"v{i}", cell)
        handles.append(ResourceHandle("", f"v{i}", "Var"))
    types = [dtypes.float32] * 2
    found = run_ours(Case("_ReadVariablesOp", [handles], {"dtypes": types, "N": 2}), step=step)
    compare(found[1], X)


def test_tensor_summary(tf: ModuleType) -> None:
    (text,) = run_ours(Case("TensorSummary", [X]))
    (value,) = tf.compat.v1.Summary.FromString(text.item()).value
    np.testing.assert_array_equal(tf.make_ndarray(value.tensor), X)
    assert value.node_name == "node"


def test_learned_samplers_agree(tf: ModuleType) -> None:
    attrs = {"num_true": 1, "num_sampled": 3, "unique": True, "range_max": 9, "seed": 2, "seed2": 3}
    for op in ("LearnedUnigramCandidateSampler", "ThreadUnsafeUnigramCandidateSampler"):
        check(Case(op, [np.int64([[1], [2]])], attrs, graph=True))


def test_abort() -> None:
    with pytest.raises(GivenUpError, match="because"):
        run_ours(Case("Abort", [], {"error_msg": "because"}))
