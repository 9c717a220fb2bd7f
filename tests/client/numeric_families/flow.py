# Rows are lambdas, whose arguments have no types.
# pyright: basic
"""Conditionals, loops, functions, variables, arrays, lists, ragged and composite tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.client.numeric_families.rows import of_version, positive, row, u
from toolkit import client as gm
from toolkit.client import ops
from toolkit.client.construction import create
from toolkit.client.flow import functional_flow
from toolkit.client.functions.trace import trace

FIRST = "TensorFlow has no second order of loops made of primitives"

# -- primitives --------------------------------------------------------------------------------------------


def _either(cond: Callable[..., Any], holds: bool) -> Callable[..., Any]:
    def build(x: Any, w: Any) -> Any:
        pred = gm.reduce_sum(x) > (-100.0 if holds else 100.0)
        return cond(pred, lambda: gm.matmul(x, w) * x, lambda: ops.sin(x) + 0.5 * w)

    return build


def _looped(while_loop: Callable[..., Any], count: int) -> Callable[..., Any]:
    def build(x: Any, w: Any) -> Any:
        return while_loop(
            lambda i, _: i < count, lambda i, a: (i + 1, gm.tanh(gm.matmul(a, w)) + a * x), [gm.constant(0), x]
        )[1]

    return build


def _until(while_loop: Callable[..., Any]) -> Callable[..., Any]:
    """As many iterations as the values want: which stays the same nearby."""

    def build(x: Any, w: Any) -> Any:
        return while_loop(lambda a, _: gm.reduce_sum(a) < 20.0, lambda a, b: (a * 1.7 + w * w, b + a), [x, w])

    return build


for _op in ("Switch", "Merge"):
    for _holds in (False, True):
        row(_op, _either(gm.cond, _holds), u(2, 2), u(2, 2), about=f"{_holds}")
for _op in ("Enter", "Exit", "NextIteration"):
    for _count in (0, 3):
        row(_op, _looped(gm.while_loop, _count), u(2, 2), u(2, 2), about=f"{_count}", first_only=FIRST)
    row(_op, _until(gm.while_loop), positive(2, 2), positive(2, 2), about="until", first_only=FIRST)


# -- functions ---------------------------------------------------------------------------------------------


def _stateful(branch: Callable[[], Any]) -> Callable[[], Any]:
    """With a node that has a state: the op is then the one for functions that have."""

    def made() -> Any:
        return branch() + 0.0 * ops.random_uniform(gm.constant([], "int32"), dtype=gm.float64)

    return made


def _case(index: int, wrap: Callable[..., Any] = lambda f: f) -> Callable[..., Any]:
    def build(x: Any, w: Any) -> Any:
        branches = [lambda: ops.exp(x), lambda: ops.sin(x) * w, lambda: gm.tanh(w)]
        return functional_flow.switch_case(
            ops.cast(gm.reduce_sum(x) * 0.0, DstT=gm.int32) + index, [*map(wrap, branches)]
        )

    return build


for _holds in (False, True):
    row("StatelessIf", _either(functional_flow.cond, _holds), u(2, 2), u(2, 2), about=f"{_holds}")
    row(
        "If", _either(lambda p, t, f: functional_flow.cond(p, _stateful(t), _stateful(f)), _holds), u(2, 2), u(2, 2),
        about=f"{_holds}",
    )  # fmt: skip
for _index in (0, 1, 2):
    row("StatelessCase", _case(_index), u(2, 2), u(2, 2), about=f"{_index}")
    row("Case", _case(_index, _stateful), u(2, 2), u(2, 2), about=f"{_index}")


def _stateful_loop(condition: Any, body: Any, start: Any) -> Any:
    return functional_flow.while_loop(
        condition,
        lambda i, a: (i + 1, body(i, a)[1] + 0.0 * ops.random_uniform(gm.constant([], "int32"), dtype=gm.float64)),
        start,
    )


for _count in (0, 3):
    row("StatelessWhile", _looped(functional_flow.while_loop, _count), u(2, 2), u(2, 2), about=f"{_count}")
    row("While", _looped(_stateful_loop, _count), u(2, 2), u(2, 2), about=f"{_count}")
row("StatelessWhile", _until(functional_flow.while_loop), positive(2, 2), positive(2, 2), about="until")


def _nested(x: Any, w: Any) -> Any:
    def body(i: Any, a: Any) -> Any:
        inner = functional_flow.while_loop(
            lambda j, _: j < i + 1, lambda j, b: (j + 1, ops.sin(b * w)), [gm.constant(0), a]
        )
        return i + 1, functional_flow.cond(i < 1, lambda: inner[1] * x, lambda: inner[1] + x)

    return functional_flow.while_loop(lambda i, _: i < 2, body, [gm.constant(0), x])[1]


row("StatelessWhile", _nested, u(2, 2), u(2, 2), about="nested")


def _called(op: str, depth: int = 1) -> Callable[..., Any]:
    def build(x: Any, w: Any) -> Any:
        def body(a: Any, b: Any) -> Any:
            if depth > 1:
                return gm.tanh(_called(op, depth - 1)(a, b)) * a
            return gm.matmul(a, b) * ops.sin(a), ops.exp(b) * x

        arguments = [("a", gm.float64, x.static_shape), ("b", gm.float64, w.static_shape)]
        traced = trace(body, arguments)
        attrs = {"f": traced.ref, "Tout": traced.result_types}
        made = create.create_op(op, [[x, w, *traced.captured]], attrs, None).outputs
        for tensor, shape in zip(made, traced.result_shapes, strict=True):
            tensor.set_shape(shape)
        return made[0] + made[1] if len(made) > 1 else made[0]

    return build


for _op in ("PartitionedCall", "StatefulPartitionedCall"):
    row(_op, _called(_op), u(2, 2), u(2, 2))
    row(_op, _called(_op, 2), u(2, 2), u(2, 2), about="nested")


def _python(x: Any, w: Any) -> Any:
    from toolkit import tensorflow as tf

    made: Any = tf.py_function(lambda a, b: tf.tanh(a) * b + tf.square(b), [x, w], tf.float64)
    made.set_shape([2])
    return made


row("EagerPyFunc", _python, u(2), u(2))

# -- variables ---------------------------------------------------------------------------------------------

row("ReadVariableOp", lambda v, x: ops.sin(v * x) * v, u(2, 3), u(3), variables=1)
row("ResourceGather", lambda v: gm.gather(v, [[2, 0], [2, 1]]), u(3, 2), variables=1)
row(
    "ResourceGather",
    lambda v: gm.embedding_lookup(v, [1, 1, 0]) * gm.convert_to_tensor(v)[0],
    u(3, 2),
    variables=1,
    about="and read",
)
for _places in ([[2], [0], [2]], [[2, 1], [0, 0]]):
    row(
        "ResourceGatherNd", lambda v, p=_places: ops.resource_gather_nd(v.handle, p, dtype=gm.float64), u(3, 2),
        variables=1, about=f"{_places}",
    )  # fmt: skip

# -- arrays ------------------------------------------------------------------------------------------------


def _array(size: int, like: Any) -> Any:
    return ops.tensor_array_v3(size, dtype=like.dtype, clear_after_read=False)


def _written(x: Any, y: Any) -> Any:
    handle, flow = _array(2, x)
    flow = ops.tensor_array_write_v3(handle, 1, y * x, ops.tensor_array_write_v3(handle, 0, x, flow))
    first, second = (ops.tensor_array_read_v3(handle, i, flow, dtype=x.dtype) for i in (0, 1))
    return first * second + ops.sin(first)


def _scattered(m: Any) -> Any:
    handle, flow = _array(3, m)
    flow = ops.tensor_array_scatter_v3(handle, [2, 0, 1], m, flow)
    return ops.tensor_array_gather_v3(handle, [1, 2], flow, dtype=m.dtype)


def _split(m: Any) -> Any:
    handle, flow = _array(2, m)
    flow = ops.tensor_array_split_v3(handle, m, gm.constant([1, 2], "int64"), flow)
    return ops.tensor_array_concat_v3(handle, flow, dtype=m.dtype)[0]


AGAIN = "the array of gradients is written when it is read for the second time"
for _op in ("TensorArrayReadV3", "TensorArrayWriteV3"):
    row(_op, _written, u(2), u(2), first_only=AGAIN)
for _op in ("TensorArrayScatterV3", "TensorArrayGatherV3"):
    row(_op, _scattered, u(3, 2))
for _op in ("TensorArraySplitV3", "TensorArrayConcatV3"):
    row(_op, _split, u(3, 2))

# -- lists -------------------------------------------------------------------------------------------------


def _item(handle: Any, index: int, like: Any) -> Any:
    return ops.tensor_list_get_item(handle, index, [2], element_dtype=like.dtype)


def _stacked(handle: Any, like: Any) -> Any:
    return ops.tensor_list_stack(handle, [2], element_dtype=like.dtype)


def _pair(x: Any, y: Any) -> Any:
    made = ops.empty_tensor_list([2], 5, element_dtype=x.dtype)
    return ops.tensor_list_push_back(ops.tensor_list_push_back(made, x), y)


def _popped(x: Any, y: Any) -> list[Any]:
    rest, last = ops.tensor_list_pop_back(_pair(x * y, y), [2], element_dtype=x.dtype)
    return [_stacked(rest, x), last]


def _listed(m: Any) -> Any:
    return ops.tensor_list_from_tensor(m, [2])


row("TensorListPushBack", lambda x, y: _stacked(_pair(x, y), x), u(2), u(2))
row("TensorListPopBack", _popped, u(2), u(2))
row("TensorListStack", lambda m: _stacked(_listed(m), m), u(3, 2))
row("TensorListFromTensor", lambda m: _stacked(_listed(m), m), u(3, 2))
row("TensorListGetItem", lambda m: _item(t := _listed(m), 1, m) * _item(t, 0, m), u(3, 2))
row("TensorListSetItem", lambda m, x: _stacked(ops.tensor_list_set_item(_listed(m), 1, x), x), u(3, 2), u(2))
row(
    "TensorListSetItem",
    lambda m, x: _stacked(ops.tensor_list_set_item(_listed(m), 4, x, resize_if_index_out_of_bounds=True), x),
    u(3, 2), u(2), about="beyond the end",
)  # fmt: skip
row("TensorListResize", lambda m: _item(ops.tensor_list_resize(_listed(m), 2), 1, m), u(3, 2))
row("TensorListGather", lambda m: ops.tensor_list_gather(_listed(m), [2, 0], [2], element_dtype=m.dtype), u(3, 2))
row("TensorListScatter", lambda m: _stacked(ops.tensor_list_scatter(m, [1, 0, 2], [2]), m), u(3, 2))
row("TensorListScatterV2", lambda m: _stacked(ops.tensor_list_scatter_v2(m, [1, 0, 2], [2], 3), m), u(3, 2))
row(
    "TensorListScatterIntoExistingList",
    lambda m, n: _stacked(ops.tensor_list_scatter_into_existing_list(_listed(m), n, [2, 0]), m), u(3, 2), u(2, 2),
)  # fmt: skip


def _joined(version: str) -> Callable[[Any], Any]:
    def build(m: Any) -> Any:
        parts = ops.tensor_list_split(m, [-1, 2], gm.constant([1, 2], "int64"))
        if version:
            return ops.tensor_list_concat_v2(parts, [-1, 2], gm.constant([], "int64"), element_dtype=m.dtype)[0]
        return ops.tensor_list_concat(parts, element_dtype=m.dtype)[0]

    return build


row("TensorListConcat", _joined(""), u(3, 2))
row("TensorListConcatV2", _joined("V2"), u(3, 2))
row("TensorListSplit", _joined("V2"), u(3, 2))

# -- ragged, optional and composite ------------------------------------------------------------------------

_SPLITS = np.int64([0, 2, 2, 5])
row("RaggedTensorToSparse", lambda v: ops.ragged_tensor_to_sparse([_SPLITS], v)[1], u(5))
row(
    "RaggedTensorToTensor",
    lambda v, d: ops.ragged_tensor_to_tensor(
        gm.constant([-1, 2], "int64"), v, d, [_SPLITS], row_partition_types=["ROW_SPLITS"]
    ),
    u(5), u(),
)  # fmt: skip
row(
    "RaggedTensorToTensor",
    lambda v, d: ops.ragged_tensor_to_tensor(
        gm.constant([-1, 4, 2], "int64"), v, d, [gm.constant(3, "int64"), gm.constant([0, 0, 2, 2, 2], "int64")],
        row_partition_types=["FIRST_DIM_SIZE", "VALUE_ROWIDS"],
    ),
    u(5, 2), u(2), about="rows",
)  # fmt: skip
row("RaggedGather", lambda v: ops.ragged_gather([_SPLITS], v, [2, 0, 2], OUTPUT_RAGGED_RANK=1)[-1], u(5, 2))
row(
    "RaggedFillEmptyRows",
    lambda v, d: ops.ragged_fill_empty_rows(gm.constant([0, 0, 2], "int64"), v, gm.constant(4, "int64"), d)[1],
    u(3), u(),
)  # fmt: skip


def _through_variant(v: Any) -> Any:
    variant = ops.ragged_tensor_to_variant([_SPLITS], v, batched_input=True)
    return ops.ragged_tensor_from_variant(
        variant, input_ragged_rank=0, output_ragged_rank=1, Tvalues=v.dtype, Tsplits=gm.int64
    )[-1]


row("RaggedTensorToVariant", _through_variant, u(5))
row("RaggedTensorFromVariant", _through_variant, u(5))


def _optional(x: Any, y: Any) -> Any:
    held = ops.optional_from_value([x, y * x])
    return ops.optional_get_value(held, output_types=[x.dtype, y.dtype], output_shapes=[[2, 3], [2, 3]])


for _op in ("OptionalFromValue", "OptionalGetValue"):
    row(_op, lambda x, y: list(_optional(x, y)), u(2, 3), u(2, 3))


def _composite(x: Any, y: Any) -> Any:
    packed = ops.composite_tensor_variant_from_components([x * 2.0, y], metadata=b"")
    return list(ops.composite_tensor_variant_to_components(packed, metadata=b"", Tcomponents=[x.dtype, y.dtype]))


for _op in ("CompositeTensorVariantFromComponents", "CompositeTensorVariantToComponents"):
    row(_op, _composite, u(2), u(2))

# -- of older graphs ---------------------------------------------------------------------------------------

row(
    "BatchNormWithGlobalNormalization",
    of_version(
        8,
        lambda *xs: ops.batch_norm_with_global_normalization(
            *xs, variance_epsilon=0.01, scale_after_normalization=True
        ),
    ),
    u(1, 2, 2, 3), u(3), positive(3), u(3), u(3), single=True,
)  # fmt: skip
