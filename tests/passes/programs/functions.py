"""Pieces that call functions: plain calls, If, Case and While, lists of tensors; with state and effects in them."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from schemas.function_pb2 import FunctionDef
from tests.passes.programs.builder import KINDS, Builder, maker
from toolkit import client as gm
from toolkit.graph import dtypes
from toolkit.graph.attrs import FuncRef
from toolkit.graph.bodies import FunctionBody, to_function

ops = gm.ops
#: what a function takes and gives, besides the handles of what has state
_PASSED = ("float", "float", "int", "bool", "text")


def _arguments(b: Builder, number: int) -> list[Any]:
    """What a function is given: some of each kind, then everything that has state."""
    return [*(b.pick(kind, number + place) for place, kind in enumerate(_PASSED)), *b.cells, b.table]


def _written(name: str, graph: Any, args: list[Any], given: list[Any], last: Any = None) -> FuncRef:
    """Make a function of a graph and put it in the library.

    Args:
        last: the operation that must run whether or not a result needs it.
    """
    out, core = FunctionDef(), graph.core
    out.signature.name = f"{name}_{len(core.library)}"
    for n, tensor in enumerate(args):
        out.signature.input_arg.add(name=f"arg{n}", type=tensor.dtype.enum)
    ends: list[Any] = []
    for n, tensor in enumerate(given):
        attrs = {"T": tensor.dtype.base, "index": n}
        ends.append(core.add("_Retval", core.unique_name("end"), [tensor.output], attrs=attrs))
        out.signature.output_arg.add(name=f"result{n}", type=tensor.dtype.base.enum)
    if last is not None:
        out.signature.control_output.append("effects")
        out.control_ret["effects"] = last.name
        out.signature.is_stateful = True
    controls = [] if last is None else [last.node]
    core.library.add(to_function(FunctionBody(core, [tensor.op.node for tensor in args], ends, controls), out))
    return FuncRef(out.signature.name)


def _function(
    b: Builder, number: int, turns: int, results: Callable[[Builder], list[Any]], *, counts: bool = False
) -> tuple[FuncRef, bool]:
    """A function of `_arguments`, in the library; and whether it has effects.

    Args:
        results: what it gives, of what is in it.
        counts: whether a counter comes before the other arguments; it is `inner.root["counter"]`.
    """
    outer = gm.get_default_graph()
    with gm.Graph().as_default() as graph:
        graph.core.library = outer.core.library
        types: list[Any] = [*(KINDS[kind] for kind in _PASSED), *((dtypes.resource, []) for _ in (*b.cells, b.table))]
        types = [*([(dtypes.int32, [])] if counts else []), *types]
        args = [gm.placeholder(dtype, shape, name=f"arg{n}") for n, (dtype, shape) in enumerate(types)]
        rest = args[counts:]
        pools: dict[str, list[Any]] = {kind: [] for kind in KINDS}
        for kind, tensor in zip(_PASSED, rest, strict=False):
            pools[kind].append(tensor)
        pools["rows"].append(ops.tanh(rest[0]))
        pools["double"].append(ops.cast(rest[0], dtypes.float64))
        pools["long"].append(gm.constant([1, 2, 3], dtypes.int64))
        inner = Builder(
            pools, rest[len(_PASSED) : -1], rest[-1], {"counter": args[0]}, depth=b.depth, seeds=b.seeds,
            in_function=True, subnormal=b.subnormal,
        )  # fmt: skip
        if counts:
            inner.pools["int"].append(args[0])
        inner.inside(number, turns)
        given = [inner.settled(tensor) if number % 2 else gm.identity(tensor) for tensor in results(inner)]
    b.random |= inner.random
    return _written(f"f{number % 1000}", graph, args, given, inner.last), inner.last is not None


def _plain_results(inner: Builder) -> list[Any]:
    return [inner.pick("float", -1), inner.pick("int", -1), inner.pick("text", -1)]


def _take(b: Builder, made: Any) -> None:
    for kind, tensor in zip(("float", "int", "text"), made, strict=True):
        b.put(kind, tensor)


def _call(b: Builder, op: str, has_effects: bool, make: Callable[[Any], Any]) -> Any:
    """A call by the op for functions with effects, or the one for those without."""
    is_call = op == "PartitionedCall"
    if not has_effects:
        return make(ops.function(op if is_call else f"Stateless{op}"))
    with gm.control_dependencies([b.last] if b.last is not None else []):
        made = make(ops.function(f"Stateful{op}" if is_call else op))
    b.last = made[0].op
    return made


_RESULTS = [dtypes.float32, dtypes.int32, dtypes.string]


@maker
def _called(b: Builder, first: int, second: int, how: int) -> None:
    if b.depth > 1:
        return
    args = _arguments(b, first)
    if b.functions and how % 3 == 0 and not b.in_function:
        ref, has_effects = b.functions[second % len(b.functions)]
    else:
        drew, b.random = b.random, False
        ref, has_effects = _function(b, second, 1 + how % 4, _plain_results)
        if not b.random:  # whether calls share what draws numbers depends on who runs them
            b.functions.append((ref, has_effects))
        b.random |= drew
    _take(b, _call(b, "PartitionedCall", has_effects, lambda op: op(args, Tout=_RESULTS, f=ref)))


@maker
def _if(b: Builder, first: int, second: int, how: int) -> None:
    if b.depth > 1:
        return
    args, flag = _arguments(b, first), b.pick("bool", how)
    (then, one), (other, two) = (_function(b, second + n, how // 3 % 3, _plain_results) for n in (0, 1))
    _take(b, _call(b, "If", one or two, lambda op: op(flag, args, Tout=_RESULTS, then_branch=then, else_branch=other)))


@maker
def _case(b: Builder, first: int, second: int, how: int) -> None:
    if b.depth > 1:
        return
    args, index = _arguments(b, first), b.pick("int", how)
    made = [_function(b, second + n, 1 + n % 2, _plain_results) for n in range(3)]
    branches, effects = [ref for ref, _ in made], any(each for _, each in made)
    _take(b, _call(b, "Case", effects, lambda op: op(ops.floor_mod(index, 4), args, Tout=_RESULTS, branches=branches)))


def _handed_on(inner: Builder, first: Any, x: Any) -> list[Any]:
    """The loop variables again: the counter or list, what was computed, the rest of the arguments."""
    rest = [inner.pools[kind][0] for kind in ("int", "bool", "text")]
    return [first, x, inner.pools["float"][1], *rest, *inner.cells, inner.table]


@maker
def _functional_while(b: Builder, first: int, second: int, how: int) -> None:
    if b.depth > 1:
        return
    limit = how % 4
    args = _arguments(b, first)

    def step(inner: Builder) -> list[Any]:
        x = ops.tanh(inner.pick("float", -1)) + 0.25 * inner.pools["float"][0]
        return _handed_on(inner, inner.root["counter"] + 1, x)

    def going(inner: Builder) -> list[Any]:
        return [ops.less(inner.root["counter"], limit)]

    body, effects = _function(b, second, how // 4 % 4, step, counts=True)
    cond, _ = _function(b, second, 0, going, counts=True)
    made = _call(b, "While", effects, lambda op: op([gm.constant(0), *args], cond=cond, body=body))
    b.put("float", made[1])


@maker
def _list(b: Builder, first: int, second: int, how: int) -> None:
    """A list of tensors that a functional loop fills."""
    if b.depth > 1 or b.in_function:
        return
    size = 1 + how % 3
    x = b.pick("float", first)
    made = ops.tensor_list_reserve(gm.constant([2, 3]), size, element_dtype=dtypes.float32)
    outer = gm.get_default_graph()
    refs: list[FuncRef] = []
    for name in ("more", "fill"):
        with gm.Graph().as_default() as graph:
            graph.core.library = outer.core.library
            args = [
                gm.placeholder(dtypes.int32, []),
                gm.placeholder(dtypes.variant, []),
                gm.placeholder(*KINDS["float"]),
            ]
            i, items, state = args
            filled = [i + 1, ops.tensor_list_set_item(items, i, state), ops.tanh(state) * 1.5]
            given = [ops.less(i, size)] if name == "more" else filled
            refs.append(_written(name, graph, args, given))
    done = ops.stateless_while([gm.constant(0), made, x], cond=refs[0], body=refs[1])
    stacked = ops.tensor_list_stack(done[1], gm.constant([2, 3]), element_dtype=dtypes.float32, num_elements=size)
    b.put("float", gm.reshape(gm.reduce_sum(stacked, axis=0), [2, 3]))
