"""Pieces of control flow as TensorFlow 1 writes it: Switch and Merge, frames, TensorArrays."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

from typing import Any

from tests.passes.programs.builder import Builder, maker
from toolkit import client as gm
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape

ops = gm.ops


@maker
def _cond(b: Builder, first: int, second: int, how: int) -> None:
    if b.depth > 1:
        return
    kind = ("float", "int", "text", "rows")[how % 4]
    predicate = b.settled(b.pick("bool", first))
    saved = b.saved()

    def side(number: int, turns: int) -> Any:
        b.restore(saved)
        b.last = None
        b.inside(number, turns)
        return [b.settled(b.pick(kind, number)), b.settled(b.pick("float", -1))]

    made = gm.cond(predicate, lambda: side(second, how // 4 % 4), lambda: side(second + 1, how // 16 % 4))
    b.restore(saved)
    b.put(kind, made[0])
    b.put("float", made[1])
    b.last = made[1].op


@maker
def _while(b: Builder, first: int, second: int, how: int) -> None:
    if b.depth > 1:
        return
    limit = b.root["count"] if how % 3 and not b.in_function else gm.constant(how % 4)
    start = b.settled(gm.constant(0)), b.settled(b.pick("float", first)), b.settled(b.pick("int", second))
    saved = b.saved()

    def body(i: Any, x: Any, j: Any) -> Any:
        b.restore(saved)
        counter = gm.identity(i)
        b.last = counter.op
        b.put("float", x)
        b.put("int", j)
        b.inside(second, how // 3 % 5)
        x, j = ops.tanh(b.pick("float", -1)) + 0.25 * x, b.pick("int", -1)
        return [b.settled(counter + 1), b.settled(x), b.settled(j)]

    made = gm.while_loop(lambda i, x, j: ops.less(i, limit), body, [*start], parallel_iterations=1 + how % 10)
    b.restore(saved)
    b.put("float", made[1])
    b.put("int", made[2])
    b.last = made[0].op


@maker
def _array(b: Builder, first: int, second: int, how: int) -> None:
    """A TensorArray that a loop writes, element by element, and reads again."""
    if b.depth > 1:
        return
    size = 1 + how % 3
    attrs = {"dtype": dtypes.float32, "element_shape": Shape([2, 3]), "clear_after_read": False}
    handle = b.effect(lambda: ops.function("TensorArrayV3")(size, **attrs)[0])
    flow = handle.op.outputs[1]
    x = b.pick("float", first)
    saved = b.saved()

    def body(i: Any, state: Any, flow: Any) -> Any:
        b.restore(saved)
        counter = gm.identity(i)
        b.last = counter.op
        b.put("float", state)
        b.inside(second, how // 3 % 3)
        state = b.settled(ops.tanh(b.pick("float", -1)) + x * 0.5)
        return [b.settled(counter + 1), state, ops.tensor_array_write_v3(handle, i, state, flow)]

    # effects of an iteration wait for the counter, which therefore waits for those before
    start = [b.settled(gm.constant(0)), b.settled(x), flow]
    made = gm.while_loop(lambda i, s, f: ops.less(i, size), body, start)
    b.restore(saved)
    b.last = made[0].op
    values = b.effect(lambda: ops.tensor_array_gather_v3(handle, gm.range(size), made[2], dtype=dtypes.float32))
    b.put("float", gm.reshape(gm.reduce_sum(values, axis=0), [2, 3]))
    b.put("float", b.effect(lambda: ops.tensor_array_read_v3(handle, size - 1, made[2], dtype=dtypes.float32)))
