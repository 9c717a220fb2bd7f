"""Tensor lists, maps, optionals, TensorArrays and stacks against TensorFlow, in small graphs."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.kernels.graph_suite import check_graph, run_ours
from tests.kernels.op_suite import compare, sample
from toolkit.formats.arrays.tensor import from_array
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node

pytestmark = pytest.mark.tensorflow

Rows = dict[str, Callable[[Any, Any], Any]]
F = np.float32
X = sample("float32", (4, 3))


def _raw(tf: Any) -> Any:
    return tf.raw_ops


def from_tensor(tf: Any, tensor: Any, shape: Any = None) -> Any:
    tensor = tf.constant(tensor)
    shape = tensor.shape[1:].as_list() if shape is None else shape
    return tf.raw_ops.TensorListFromTensor(tensor=tensor, element_shape=np.array(shape, np.int32))


def hide(tf: Any, value: Any) -> Any:
    """The value without a static shape, so that the kernel and not the shape function sees it first."""
    return tf.compat.v1.placeholder_with_default(value, None)


def stack(tf: Any, handle: Any, dtype: Any = F, shape: Any = -1, count: int = -1) -> Any:
    return tf.raw_ops.TensorListStack(
        input_handle=handle, element_shape=np.array(shape, np.int32), element_dtype=dtype, num_elements=count
    )


def reserve(tf: Any, count: int, shape: Any = (3,), dtype: Any = F) -> Any:
    return tf.raw_ops.TensorListReserve(
        element_shape=np.array(shape, np.int32), num_elements=count, element_dtype=dtype
    )


def empty(tf: Any, shape: Any = (3,), limit: int = -1, dtype: Any = F) -> Any:
    return tf.raw_ops.EmptyTensorList(
        element_shape=np.array(shape, np.int32), max_num_elements=limit, element_dtype=dtype
    )


def push(tf: Any, handle: Any, value: Any) -> Any:
    return tf.raw_ops.TensorListPushBack(input_handle=handle, tensor=value)


def pop(tf: Any, handle: Any, shape: Any = -1, dtype: Any = F) -> Any:
    return tf.raw_ops.TensorListPopBack(
        input_handle=handle, element_shape=np.array(shape, np.int32), element_dtype=dtype
    )


def get(tf: Any, handle: Any, index: int, shape: Any = -1, dtype: Any = F) -> Any:
    return tf.raw_ops.TensorListGetItem(
        input_handle=handle, index=index, element_shape=np.array(shape, np.int32), element_dtype=dtype
    )


def put(tf: Any, handle: Any, index: int, item: Any, **attrs: Any) -> Any:
    return tf.raw_ops.TensorListSetItem(input_handle=handle, index=index, item=item, **attrs)


def gather(tf: Any, handle: Any, indices: Any, shape: Any = -1) -> Any:
    return tf.raw_ops.TensorListGather(
        input_handle=handle, indices=np.int32(indices), element_shape=np.array(shape, np.int32), element_dtype=F
    )


def concat(tf: Any, handle: Any, shape: Any = -1, leading: Any = ()) -> Any:
    return list(
        tf.raw_ops.TensorListConcatV2(
            input_handle=handle,
            element_shape=np.array(shape, np.int32),
            leading_dims=np.int64(leading),
            element_dtype=F,
        )
    )


def scatter(tf: Any, tensor: Any, indices: Any, count: int) -> Any:
    return tf.raw_ops.TensorListScatterV2(
        tensor=tensor, indices=np.int32(indices), element_shape=np.int32(tensor.shape[1:]), num_elements=count
    )


def split(tf: Any, tensor: Any, lengths: Any) -> Any:
    return tf.raw_ops.TensorListSplit(
        tensor=tensor, element_shape=np.int32([-1, *tensor.shape[1:]]), lengths=np.int64(lengths)
    )


GOOD: Rows = {
    "stack": lambda tf, r: stack(tf, from_tensor(tf, X)),
    "stack-counted": lambda tf, r: stack(tf, from_tensor(tf, X), count=4),
    "stack-strings": lambda tf, r: stack(tf, from_tensor(tf, [b"a", b"", b"xyz"]), dtype="string"),
    "stack-scalars": lambda tf, r: stack(tf, from_tensor(tf, np.arange(5)), dtype=np.int64),
    "stack-empty": lambda tf, r: stack(tf, empty(tf), shape=[3]),
    "stack-reserved": lambda tf, r: stack(tf, reserve(tf, 2)),
    "stack-half-set": lambda tf, r: stack(tf, put(tf, reserve(tf, 3, -1), 1, X[0])),
    "length": lambda tf, r: [r.TensorListLength(input_handle=h) for h in (from_tensor(tf, X), empty(tf))],
    "element-shape": lambda tf, r: [
        r.TensorListElementShape(input_handle=empty(tf, shape), shape_type=np.int32) for shape in (-1, [2, -1], [3], [])
    ],
    "get": lambda tf, r: get(tf, from_tensor(tf, X), 2),
    "get-unset": lambda tf, r: get(tf, reserve(tf, 2, [-1, 3]), 1, [2, 3]),
    "set": lambda tf, r: stack(tf, put(tf, from_tensor(tf, X), 0, X[3])),
    "set-keeps-old": lambda tf, r: _set_keeps_old(tf),
    "set-resizes": lambda tf, r: stack(tf, put(tf, empty(tf), 2, X[0], resize_if_index_out_of_bounds=True)),
    "push": lambda tf, r: stack(tf, push(tf, push(tf, empty(tf, -1), X[0]), X[1])),
    "push-strings": lambda tf, r: stack(tf, push(tf, empty(tf, [], dtype="string"), b"ab"), dtype="string"),
    "pop": lambda tf, r: [pop(tf, from_tensor(tf, X))[1], stack(tf, pop(tf, from_tensor(tf, X))[0])],
    "pop-unset": lambda tf, r: pop(tf, reserve(tf, 1))[1],
    "resize-longer": lambda tf, r: stack(tf, r.TensorListResize(input_handle=from_tensor(tf, X), size=6)),
    "resize-shorter": lambda tf, r: stack(tf, r.TensorListResize(input_handle=from_tensor(tf, X), size=1)),
    "gather": lambda tf, r: gather(tf, from_tensor(tf, X), [3, 0, 3]),
    "gather-unset": lambda tf, r: gather(tf, reserve(tf, 3), [2, 0]),
    "scatter": lambda tf, r: stack(tf, scatter(tf, X[:2], [3, 1], -1)),
    "scatter-counted": lambda tf, r: stack(tf, scatter(tf, X[:2], [3, 1], 6)),
    "scatter-into": lambda tf, r: stack(
        tf,
        r.TensorListScatterIntoExistingList(input_handle=from_tensor(tf, X), tensor=X[:2], indices=np.int32([4, 0])),
    ),
    "split": lambda tf, r: [get(tf, split(tf, X, [1, 0, 3]), i) for i in range(3)],
    "concat": lambda tf, r: concat(tf, split(tf, X, [1, 0, 3])),
    "concat-unset": lambda tf, r: concat(tf, reserve(tf, 2, [2, 3]), [2, 3], [2, 2]),
    "concat-none": lambda tf, r: concat(tf, empty(tf, [-1, 3]), [-1, 3]),
    "concat-v1": lambda tf, r: list(r.TensorListConcat(input_handle=split(tf, X, [2, 2]), element_dtype=F)),
    "concat-lists": lambda tf, r: stack(
        tf, r.TensorListConcatLists(input_a=from_tensor(tf, X), input_b=from_tensor(tf, X[:1]), element_dtype=F)
    ),
    "zeros-like": lambda tf, r: stack(tf, tf.zeros_like(from_tensor(tf, X))),
    "add-n": lambda tf, r: stack(tf, tf.add_n([from_tensor(tf, X), from_tensor(tf, X), reserve(tf, 4)])),
    "push-batch": lambda tf, r: _push_batch(tf),
    "nested": lambda tf, r: stack(
        tf, get(tf, push(tf, empty(tf, [], dtype="variant"), from_tensor(tf, X)), 0, [], "variant")
    ),
    "map": lambda tf, r: _map(tf),
    "optional": lambda tf, r: _optional(tf),
}  # fmt: skip


def _set_keeps_old(tf: Any) -> Any:
    old = from_tensor(tf, X)
    new = put(tf, old, 0, X[3])
    with tf.control_dependencies([stack(tf, new)]):
        return [stack(tf, old), stack(tf, new)]


def _push_batch(tf: Any) -> Any:
    handles = tf.stack([empty(tf), from_tensor(tf, X)])
    pushed = tf.raw_ops.TensorListPushBackBatch(input_handles=handles, tensor=X[:2])
    return [stack(tf, pushed[i]) for i in range(2)]


def _map(tf: Any) -> Any:
    r = tf.raw_ops
    made = r.TensorMapInsert(input_handle=r.EmptyTensorMap(), key=np.int32(3), value=X[0])
    made = r.TensorMapInsert(input_handle=made, key=np.int32(5), value=X[1])
    less = r.TensorMapErase(input_handle=made, key=np.int32(3), value_dtype=F)
    return [
        r.TensorMapSize(input_handle=made), r.TensorMapSize(input_handle=less),
        r.TensorMapLookup(input_handle=made, key=np.int32(5), value_dtype=F),
        r.TensorMapHasKey(input_handle=less, key=np.int32(3)), r.TensorMapHasKey(input_handle=less, key=np.int32(5)),
        tf.sort(r.TensorMapStackKeys(input_handle=made, key_dtype=np.int32)),
    ]  # fmt: skip


def _optional(tf: Any) -> Any:
    r = tf.raw_ops
    full = r.OptionalFromValue(components=[X, np.int32(4)])
    values = r.OptionalGetValue(optional=full, output_types=[F, np.int32], output_shapes=[[4, 3], []])
    none = r.OptionalNone()
    return [*values, r.OptionalHasValue(optional=full), r.OptionalHasValue(optional=none)]


BAD: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "get-range": ("INVALID_ARGUMENT", lambda tf, r: get(tf, from_tensor(tf, X), 4)),
    "get-unknown": ("INVALID_ARGUMENT", lambda tf, r: get(tf, reserve(tf, 2, -1), 0)),
    "set-range": ("INVALID_ARGUMENT", lambda tf, r: stack(tf, put(tf, from_tensor(tf, X), 4, X[0]))),
    "set-shape": ("INVALID_ARGUMENT", lambda tf, r: stack(tf, put(tf, from_tensor(tf, X), 0, hide(tf, X[0][:2])))),
    "pop-empty": ("INVALID_ARGUMENT", lambda tf, r: pop(tf, empty(tf))[1]),
    "push-full": ("INVALID_ARGUMENT", lambda tf, r: stack(tf, push(tf, empty(tf, limit=0), X[0]))),
    "push-shape": ("INVALID_ARGUMENT", lambda tf, r: stack(tf, push(tf, empty(tf), X))),
    "stack-count": ("INVALID_ARGUMENT", lambda tf, r: stack(tf, from_tensor(tf, X), count=3)),
    "stack-unknown": ("INVALID_ARGUMENT", lambda tf, r: stack(tf, empty(tf, -1))),
    "stack-mixed": ("INVALID_ARGUMENT", lambda tf, r: stack(tf, push(tf, push(tf, empty(tf, -1), X[0]), X))),
    "gather-range": ("INVALID_ARGUMENT", lambda tf, r: gather(tf, from_tensor(tf, X), [4])),
    "split-sum": ("INVALID_ARGUMENT", lambda tf, r: get(tf, split(tf, X, [1, 1]), 0)),
    "scatter-range": ("INVALID_ARGUMENT", lambda tf, r: stack(tf, scatter(tf, X[:2], [3, 1], 2))),
    "map-missing": ("INVALID_ARGUMENT", lambda tf, r: r.TensorMapLookup(
        input_handle=r.EmptyTensorMap(), key=np.int32(5), value_dtype=F)),
    "optional-none": ("INVALID_ARGUMENT", lambda tf, r: r.OptionalGetValue(
        optional=r.OptionalNone(), output_types=[F], output_shapes=[[]])),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_tensor_list(name: str, tf: ModuleType) -> None:
    check_graph(lambda: GOOD[name](tf, tf.raw_ops))


@pytest.mark.parametrize("name", BAD)
def test_tensor_list_refuses(name: str, tf: ModuleType) -> None:
    status, build = BAD[name]
    check_graph(lambda: build(tf, tf.raw_ops), error=status)


# -- TensorArrays --------------------------------------------------------------------------------------------


def array(tf: Any, size: int = 4, **options: Any) -> Any:
    return tf.raw_ops.TensorArrayV3(size=size, dtype=options.pop("dtype", F), **options)


def write(tf: Any, made: Any, index: int, value: Any) -> Any:
    handle, flow = made
    return handle, tf.raw_ops.TensorArrayWriteV3(handle=handle, index=index, value=value, flow_in=flow)


def read(tf: Any, made: Any, index: int, dtype: Any = F) -> Any:
    return tf.raw_ops.TensorArrayReadV3(handle=made[0], index=index, flow_in=made[1], dtype=dtype)


def unstack(tf: Any, made: Any, value: Any, indices: Any = None) -> Any:
    indices = np.int32(range(len(value)) if indices is None else indices)
    flow = tf.raw_ops.TensorArrayScatterV3(handle=made[0], indices=indices, value=value, flow_in=made[1])
    return made[0], flow


def ta_gather(tf: Any, made: Any, indices: Any, shape: Any = None) -> Any:
    return tf.raw_ops.TensorArrayGatherV3(
        handle=made[0], indices=np.int32(indices), flow_in=made[1], dtype=F, element_shape=shape
    )


def ta_concat(tf: Any, made: Any) -> Any:
    return list(tf.raw_ops.TensorArrayConcatV3(handle=made[0], flow_in=made[1], dtype=F))


def ta_split(tf: Any, made: Any, value: Any, lengths: Any) -> Any:
    flow = tf.raw_ops.TensorArraySplitV3(handle=made[0], value=value, lengths=np.int64(lengths), flow_in=made[1])
    return made[0], flow


def _reads(tf: Any, **options: Any) -> Any:
    made = unstack(tf, array(tf, **options), X)
    first = read(tf, made, 1)
    with tf.control_dependencies([first]):
        return [first, read(tf, made, 1)]


def _gradient(tf: Any) -> Any:
    made = unstack(tf, array(tf), X)
    handle, flow = tf.raw_ops.TensorArrayGradV3(handle=made[0], flow_in=made[1], source="gradients")
    grads = write(tf, write(tf, (handle, flow), 1, X[0]), 1, X[1])  # adds up
    return [read(tf, grads, 1), read(tf, grads, 2)]


def _gradient_shaped(tf: Any, sizes: Any = (2,)) -> Any:
    made = unstack(tf, array(tf, element_shape=[3]), X)
    handle, flow = tf.raw_ops.TensorArrayGradWithShape(
        handle=made[0], flow_in=made[1], shape_to_prepend=hide(tf, np.int32(sizes)), source="gradients"
    )
    return read(tf, write(tf, (handle, flow), 1, X[:2]), 2)


def _close(tf: Any) -> Any:
    made = unstack(tf, array(tf), X)
    with tf.control_dependencies([made[1]]):
        closed = tf.raw_ops.TensorArrayCloseV3(handle=made[0])
    with tf.control_dependencies([closed]):
        return read(tf, made, 0)


def _size(tf: Any, made: Any) -> Any:
    return tf.raw_ops.TensorArraySizeV3(handle=made[0], flow_in=made[1])


ARRAYS: Rows = {
    "read": lambda tf, r: read(tf, write(tf, array(tf), 2, X), 2),
    "write-dynamic": lambda tf, r: _size(tf, write(tf, array(tf, 0, dynamic_size=True), 2, X)),
    "gather": lambda tf, r: ta_gather(tf, unstack(tf, array(tf), X), [3, 1]),
    "gather-none": lambda tf, r: ta_gather(tf, unstack(tf, array(tf), X), [], [3]),
    "scatter-dynamic": lambda tf, r: _size(tf, unstack(tf, array(tf, 1, dynamic_size=True), X, [5, 0, 1, 2])),
    "scatter-gather": lambda tf, r: ta_gather(tf, unstack(tf, array(tf), X, [3, 2, 1, 0]), [0, 1, 2, 3]),
    "concat": lambda tf, r: ta_concat(tf, ta_split(tf, array(tf, 3), X, [1, 0, 3])),
    "split-read": lambda tf, r: read(tf, ta_split(tf, array(tf, 3), X, [1, 0, 3]), 2),
    "twice": lambda tf, r: _reads(tf, clear_after_read=False),
    "unset": lambda tf, r: read(tf, array(tf, element_shape=[2]), 0),
    "gradient": lambda tf, r: _gradient(tf),
    "gradient-shaped": lambda tf, r: _gradient_shaped(tf),
    "strings": lambda tf, r: read(tf, write(tf, array(tf, dtype="string"), 0, b"xy"), 0, "string"),
}  # fmt: skip
BAD_ARRAYS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "read-range": ("INVALID_ARGUMENT", lambda tf, r: read(tf, array(tf), 4)),
    "read-type": ("INVALID_ARGUMENT", lambda tf, r: read(tf, write(tf, array(tf), 0, X), 0, np.int32)),
    "read-unset": ("INVALID_ARGUMENT", lambda tf, r: read(tf, array(tf), 0)),
    "read-twice": ("INVALID_ARGUMENT", lambda tf, r: _reads(tf)),
    "write-range": ("INVALID_ARGUMENT", lambda tf, r: write(tf, array(tf), 4, X)[1]),
    "write-type": ("INVALID_ARGUMENT", lambda tf, r: write(tf, array(tf), 0, np.int32(3))[1]),
    "write-shape": ("INVALID_ARGUMENT", lambda tf, r: write(tf, array(tf, element_shape=[2]), 0, hide(tf, X))[1]),
    "write-twice": ("INVALID_ARGUMENT", lambda tf, r: write(tf, write(tf, array(tf), 0, X), 0, X)[1]),
    "write-other-shape": ("INVALID_ARGUMENT", lambda tf, r: write(
        tf, write(tf, array(tf, identical_element_shapes=True), 0, X), 1, X[0])[1]),
    "gather-mixed": ("INVALID_ARGUMENT", lambda tf, r: ta_gather(
        tf, write(tf, write(tf, array(tf), 0, X), 1, X[0]), [0, 1])),
    "gather-none": ("UNIMPLEMENTED", lambda tf, r: ta_gather(tf, array(tf, 0), [])),
    "split-sum": ("INVALID_ARGUMENT", lambda tf, r: ta_split(tf, array(tf, 2), X, [1, 1])[1]),
    "split-count": ("INVALID_ARGUMENT", lambda tf, r: ta_split(tf, array(tf, 3), X, [1, 3])[1]),
    "closed": ("INVALID_ARGUMENT", lambda tf, r: _close(tf)),
    **{
        f"gradient-shaped-{sizes}": ("INVALID_ARGUMENT", lambda tf, r, sizes=sizes: _gradient_shaped(tf, sizes))
        for sizes in (1, [[2]], [-1], [-2])
    },
}  # fmt: skip


@pytest.mark.parametrize("name", ARRAYS)
def test_tensor_array(name: str, tf: ModuleType) -> None:
    check_graph(lambda: ARRAYS[name](tf, tf.raw_ops))


@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_tensor_array_refuses(name: str, tf: ModuleType) -> None:
    status, build = BAD_ARRAYS[name]
    check_graph(lambda: build(tf, tf.raw_ops), error=status)


def _loop(tf: Any) -> Any:
    """A v1 while loop over TensorArrays with its gradient, which goes through stacks."""
    v1 = tf.compat.v1
    v1.disable_control_flow_v2()
    x = tf.constant(X)
    source = tf.TensorArray(tf.float32, 4, clear_after_read=False).unstack(x)
    target = tf.TensorArray(tf.float32, 4)
    _, total, target = v1.while_loop(
        lambda i, total, target: i < 4,
        lambda i, total, target: (
            i + 1,
            total + tf.sin(source.read(i)) * total,
            target.write(i, total * source.read(3 - i)),
        ),
        [0, tf.constant([1.0, 2.0, 3.0]), target],
    )
    loss = tf.reduce_sum(total) + tf.reduce_sum(target.stack())
    return [loss, *v1.gradients(loss, [x])]


def test_loop_and_gradient(tf: ModuleType) -> None:
    check_graph(lambda: _loop(tf))


def _stack_graph(tf: Any, limit: int, pushes: int, pops: int) -> Any:
    r = tf.raw_ops
    handle = r.StackV2(max_size=limit, elem_type=tf.float32)
    results: list[Any] = []
    for i in range(pushes):
        with tf.control_dependencies(results[-1:]):
            results.append(r.StackPushV2(handle=handle, elem=X[i]))
    for _ in range(pops):
        with tf.control_dependencies(results[-1:]):
            results.append(r.StackPopV2(handle=handle, elem_type=tf.float32))
    return results


@pytest.mark.parametrize(
    ("limit", "pushes", "pops", "error"),
    [(-1, 3, 2, None), (3, 3, 3, None), (2, 3, 0, "INVALID_ARGUMENT"), (-1, 1, 2, "INVALID_ARGUMENT")],
)
def test_stack(limit: int, pushes: int, pops: int, error: str | None, tf: ModuleType) -> None:
    check_graph(lambda: _stack_graph(tf, limit, pushes, pops), error=error)


def _old_graph(version: str) -> Graph:
    """Arrays of the first two versions, whose handles are strings, and old stacks; as an old file would have them."""
    graph = Graph()
    graph.versions.producer = 9

    def const(name: str, value: Any) -> Node:
        array = np.asarray(value)
        dtype = dtypes.from_numpy(array.dtype)
        return graph.add("Const", name, attrs={"dtype": dtype, "value": from_array(array, dtype)})

    def add(op: str, *inputs: Node, after: tuple[Node, ...] = (), **attrs: Any) -> Node:
        return graph.add(op, graph.unique_name(op), inputs, attrs=attrs, control_inputs=after)

    f32 = dtypes.float32
    flow0 = const("flow", F(0))
    handle = add(f"TensorArray{version}", const("size", np.int32(4)), dtype=f32)
    some = const("some", np.int32([0, 1, 2]))
    flow = add(f"TensorArrayScatter{version}", handle, some, const("values", X[:3]), flow0, T=f32)
    flow = add(f"TensorArrayWrite{version}", handle, const("three", np.int32(3)), const("last", X[3]), flow, T=f32)
    read_one = add(f"TensorArrayRead{version}", handle, const("one", np.int32(1)), flow, dtype=f32)
    size = add(f"TensorArraySize{version}", handle, flow)
    rest = const("rest", np.int32([3, 0]))
    both = add(f"TensorArrayGather{version}", handle, rest, flow, after=(read_one, size), dtype=f32)
    results = [read_one, size, both]
    grads = add(f"TensorArrayGrad{version}", handle, flow, source=b"g")
    flow = add(f"TensorArrayWrite{version}", grads, const("two", np.int32(2)), const("dy", X[2]), flow, T=f32)
    results.append(add(f"TensorArrayRead{version}", grads, const("again", np.int32(2)), flow, dtype=f32))
    if not version:
        packed = add("TensorArray", const("size2", np.int32(4)), dtype=f32)
        flow = add("TensorArrayUnpack", packed, const("all", X), flow0, T=f32)
        results.append(add("TensorArrayPack", packed, flow, dtype=f32))
        stack_handle = add("Stack", elem_type=f32)
        pushed = add("StackPush", stack_handle, const("elem", X[0]), T=f32)
        popped = add("StackPop", stack_handle, after=(pushed,), elem_type=f32)
        results += [popped, add("Identity", popped, after=(add("StackClose", stack_handle, after=(popped,)),), T=f32)]
    for i, node in enumerate(results):
        graph.add("Identity", f"result{i}", [node], attrs={"T": node.output_types[0].base})
    return graph


@pytest.mark.parametrize("version", ["", "V2"])
def test_old_versions(version: str, tf: ModuleType) -> None:
    v1 = tf.compat.v1
    serialized = _old_graph(version).to_proto().SerializeToString()
    names = [f"result{i}:0" for i in range(7 if not version else 4)]
    with tf.Graph().as_default():
        tf.graph_util.import_graph_def(v1.GraphDef.FromString(serialized), name="")
        with v1.Session() as session:
            expected = session.run(names)
    (mine,) = run_ours(serialized, names, {})
    assert not isinstance(mine, str), mine
    for ours, theirs in zip(mine, expected, strict=True):
        compare(ours, np.asarray(theirs))
