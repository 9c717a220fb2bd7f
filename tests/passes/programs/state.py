"""Pieces with effects: variables of both kinds, queues, random numbers, tables, assertions."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

from typing import Any

from tests.passes.programs.builder import Builder, maker
from toolkit import client as gm
from toolkit.graph import dtypes

ops = gm.ops


@maker
def _variable(b: Builder, first: int, second: int, how: int) -> None:
    handle, x = b.cells[first % len(b.cells)], b.pick("float", second)
    write = (ops.assign_variable_op, ops.assign_add_variable_op, ops.assign_sub_variable_op)[(how >> 2) % 3]
    if how % 2:
        b.effect(lambda: write(handle, ops.tanh(x)))
    else:
        b.put("float", b.effect(lambda: ops.read_variable_op(handle, dtype=dtypes.float32)))


@maker
def _reference(b: Builder, first: int, second: int, how: int) -> None:
    if not b.references:
        return _variable(b, first, second, how)
    variable, x = b.references[first % len(b.references)], b.pick("float", second)
    if how % 2:
        write = (variable.assign, variable.assign_add, variable.assign_sub)[(how >> 2) % 3]
        b.effect(lambda: write(ops.tanh(x)))
    else:  # the memory of a reference may change: it is used before the next effect
        b.put("float", b.effect(lambda: variable.read_value() * 1.5))
    return None


@maker
def _queue(b: Builder, first: int, second: int, how: int) -> None:
    if not b.queues or b.depth:
        return
    queue = b.queues[first % len(b.queues)]
    if how % 2 or not queue[1]:
        x, s = b.pick("float", second), b.pick("text", how)
        b.effect(lambda: ops.queue_enqueue_v2(queue[0], [x, s]))
        queue[1] += 1
    elif how % 3:
        x, s = _dequeue(b, queue[0])
        queue[1] -= 1
        b.put("float", x)
        b.put("text", s)
    else:
        b.put("int", b.effect(lambda: ops.queue_size_v2(queue[0])))


def _dequeue(b: Builder, handle: Any) -> Any:
    with gm.control_dependencies([b.last] if b.last is not None else []):
        x, s = ops.queue_dequeue_v2(handle, component_types=[dtypes.float32, dtypes.string])
    b.last = x.op
    return x, s


@maker
def _random(b: Builder, first: int, second: int, how: int) -> None:
    b.random = True
    b.seeds[0] += 1
    seeds = {"seed": 7, "seed2": b.seeds[0]}
    if how % 3 == 0:
        b.put("float", b.effect(lambda: ops.random_uniform([2, 3], dtype=dtypes.float32, **seeds)))
    elif how % 3 == 1:
        b.put("float", b.effect(lambda: ops.random_shuffle(b.pick("float", first), **seeds)))
    else:
        drawn = b.effect(lambda: ops.random_uniform_int(gm.constant([], dtypes.int32), 0, 9, **seeds))
        b.put("int", drawn)


@maker
def _stateless(b: Builder, first: int, second: int, how: int) -> None:
    seed = gm.stack([b.pick("int", first), gm.constant(how % 5)])
    b.put("float", ops.stateless_random_uniform([2, 3], seed, dtype=dtypes.float32))


@maker
def _lookup(b: Builder, first: int, second: int, how: int) -> None:
    found = ops.lookup_table_find_v2(b.table, b.pick("text", first), gm.constant(-1, dtypes.int64))
    b.put("long", gm.concat([found, gm.constant([how % 3], dtypes.int64)], 0))


@maker
def _asserted(b: Builder, first: int, second: int, how: int) -> None:
    flag = b.pick("bool", first)
    b.effect(lambda: ops.function("Assert")(ops.logical_or(flag, ops.logical_not(flag)), [b.pick("int", second)]))
