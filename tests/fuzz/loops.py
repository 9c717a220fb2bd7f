"""Loops of both kinds with states of several types, arrays, lists and variables; half of them damaged."""

# functions over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from schemas.graph_pb2 import GraphDef
from tests.fuzz import feeds, graphs_mutate
from tests.fuzz.case import Case
from tests.fuzz.executors import LIMITS
from tests.passes import validate_graphs as make
from toolkit import client as gm
from toolkit.errors import GraphmillError
from toolkit.graph import dtypes
from toolkit.graph.attrs import FuncRef
from toolkit.graph.shape import Shape

ops = gm.ops
F, I, B, R, V = make.F, make.I, make.B, make.R, dtypes.from_name("variant")
_SHAPES = ((), (3,), (4, 6), (1, 6), (0, 2))


def case(rng: random.Random) -> Case | None:
    """A loop with its feeds."""
    values: dict[str, Any] = {"n": np.int32(rng.choice((0, 1, 2, 5, 5, 9)))}
    build = rng.choice((_frames, _functional))
    with contextlib.suppress(GraphmillError):  # what the client refuses to build
        graph, fetches = build(rng, values)
        damaged = rng.random() < 0.5
        if damaged:
            graphs_mutate.mutate(rng, graph)
        file = io.BytesIO()
        np.savez_compressed(file, **values)
        line = [
            "run",
            "model.pb",
            "--feeds",
            "feeds.npz",
            *(f"--fetch={name}" for name in fetches),
            *(LIMITS if damaged else ()),
        ]
        files = {"model.pb": graph.SerializeToString(deterministic=True), "feeds.npz": file.getvalue()}
        label = f"{build.__name__[1:]}{', damaged' if damaged else ''}"
        return Case("loops", label, files, [line], executors=True, exact=not damaged, tensorflow=not damaged)
    return None


def _frames(rng: random.Random, values: dict[str, Any]) -> tuple[GraphDef, list[str]]:
    """A loop of Enter, Switch and NextIteration, with an array that is written or read."""
    with gm.Graph().as_default() as graph:
        n = gm.placeholder(gm.int32, [], name="n")
        states: list[Any] = []
        for at in range(rng.choice((1, 1, 2, 3))):
            dtype, shape = rng.choice(("float32", "float32", "int32", "float64")), rng.choice(_SHAPES)
            values[f"s{at}"] = feeds.numbers(rng, shape, dtype)
            states.append(gm.placeholder(getattr(gm, dtype), list(shape), name=f"s{at}"))
        array = rng.random() < 0.6
        handle = flow = None
        if array:
            handle, flow = ops.tensor_array_v3(
                rng.choice((n, n, 3)), dtype=states[0].dtype, dynamic_size=rng.random() < 0.3,
                clear_after_read=rng.random() < 0.5, element_shape=states[0].shape.as_list(),
            )  # fmt: skip
        bodies = [rng.randrange(1000) for _ in states]

        def body(i: Any, *loop: Any) -> Any:
            after = [_next(state, i, how) for state, how in zip(loop, bodies, strict=False)]
            if array:
                index = i if rng.random() < 0.9 else i * rng.choice((-1, 2))
                after.append(ops.tensor_array_write_v3(handle, index, after[0], loop[-1]))
            return [i + rng.choice((1, 1, 1, 2)), *after]

        start = [gm.constant(0), *states, *([flow] if array else [])]
        final = gm.while_loop(lambda i, *_: ops.less(i, n), body, start)
        fetches = [ops.identity(state, name=f"out{at}") for at, state in enumerate(final[: 1 + len(states)])]
        if array:
            size = ops.tensor_array_size_v3(handle, final[-1])
            at = gm.range(0, size) if rng.random() < 0.8 else gm.constant([0, 1])
            rows = ops.tensor_array_gather_v3(handle, at, final[-1], dtype=states[0].dtype)
            fetches.append(ops.identity(rows, name="rows"))
        floats = [(x, y) for x, y in zip(states, fetches[1:], strict=False) if x.dtype.is_floating]
        if floats and rng.random() < 0.4:
            made = gm.grad(gm.reduce_sum(floats[0][1]), [floats[0][0]])
            fetches += [tensor for tensor in made if tensor is not None]
        return graph.core.to_proto(), [tensor.name for tensor in fetches]


def _next(state: Any, i: Any, how: int) -> Any:
    """The next value of a state."""
    if not state.dtype.is_floating:
        return (lambda: state + 1, lambda: state * 3 - i, lambda: state)[how % 3]()
    return (
        lambda: ops.tanh(state) * 0.9, lambda: state * 0.5 + ops.cast(i, DstT=state.dtype), lambda: ops.exp(state),
        lambda: ops.sqrt(state), lambda: state / ops.cast(i, DstT=state.dtype), lambda: state * state,
        lambda: ops.maximum(state, ops.neg(state)), lambda: state,
    )[how % 8]()  # fmt: skip


def _functional(rng: random.Random, values: dict[str, Any]) -> tuple[GraphDef, list[str]]:
    """A While over states, a list that grows, and a variable; its condition and body are functions."""
    graph = make.versions(GraphDef())
    make.add(graph, "Placeholder", "n", dtype=I, shape=Shape([]))
    make.const(graph, "zero", [0], [], I)
    arguments: dict[str, Any] = {"i": I, "n": I}
    inputs = ["zero", "n"]
    for at in range(rng.choice((1, 2, 3))):
        dtype, shape = rng.choice(((F, "float32"), (F, "float32"), (I, "int32"))), rng.choice(_SHAPES)
        values[f"s{at}"] = feeds.numbers(rng, shape, dtype[1])
        make.add(graph, "Placeholder", f"s{at}", dtype=dtype[0], shape=Shape(list(shape)))
        arguments[f"a{at}"] = dtype[0]
        inputs.append(f"s{at}")
    if rng.random() < 0.5:
        make.const(graph, "any", [-1], [], I)
        make.add(graph, "EmptyTensorList", "list", ["any", "n"], element_dtype=arguments["a0"], shape_type=I)
        arguments["list"] = V
        inputs.append("list")
    if rng.random() < 0.4:
        make.add(graph, "VarHandleOp", "variable", dtype=F, shape=Shape([3]), container=b"", shared_name=b"v")
        make.const(graph, "ones", [1.0], [3])
        make.add(graph, "AssignVariableOp", "assign", ["variable", "ones"], dtype=F)
        arguments["variable"] = R
        inputs.append("variable")
    _condition(graph, arguments)
    _body(rng, graph, arguments)
    attrs: dict[str, Any] = {
        "T": list(arguments.values()),
        "cond": FuncRef("condition", {}),
        "body": FuncRef("body", {}),
    }
    controls = ["^assign"] if "variable" in arguments else []
    op = rng.choice(("While", "StatelessWhile")) if not controls else "While"
    make.add(graph, op, "loop", [*inputs, *controls], **attrs, output_shapes=[], parallel_iterations=10)
    names = list(arguments)
    fetches = [f"loop:{at}" for at, name in enumerate(names) if name not in ("list", "variable")]
    if "list" in arguments:
        make.const(graph, "shape", [-1], [1], I)
        stack = [f"loop:{names.index('list')}", "any"]
        make.add(graph, "TensorListStack", "rows", stack, element_dtype=arguments["a0"], num_elements=-1)
        fetches.append("rows:0")
    if controls:
        make.add(graph, "ReadVariableOp", "read", ["variable", "^loop"], dtype=F)
        fetches.append("read:0")
    return graph, fetches


def _condition(graph: GraphDef, arguments: dict[str, Any]) -> None:
    function = make.function(graph, "condition", arguments, {"go": B})
    make.add(function, "Less", "less", ["i", "n"], T=I)
    function.ret["go"] = "less:z:0"


_FLOATS = ("Tanh", "Exp", "Sqrt", "Square", "Neg", "Log", "Relu")


def _body(rng: random.Random, graph: GraphDef, arguments: dict[str, Any]) -> None:
    function = make.function(graph, "body", arguments, {f"{name}_out": dtype for name, dtype in arguments.items()})
    make.const(function, "one", [1], [], I)
    make.add(function, "AddV2", "next", ["i", "one:output:0"], T=I)
    results: dict[str, str] = {name: name for name in arguments} | {"i": "next:z:0"}
    for name, dtype in arguments.items():
        if not name.startswith("a"):
            continue
        if dtype == F:
            make.add(function, rng.choice(_FLOATS), f"{name}_next", [name], T=F)
            results[name] = f"{name}_next:{'activations' if function.node_def[-1].op == 'Relu' else 'y'}:0"
        else:
            make.add(function, "AddV2", f"{name}_next", [name, "i"], T=I)
            results[name] = f"{name}_next:z:0"
    if "list" in arguments:
        make.add(function, "TensorListPushBack", "push", ["list", results["a0"]], element_dtype=arguments["a0"])
        results["list"] = "push:output_handle:0"
    if "variable" in arguments:
        make.const(function, "step", [0.5], [3])
        add: Callable[..., Any] = make.add
        add(function, "AssignAddVariableOp", "add", ["variable", "step:output:0"], dtype=F)
        function.control_ret["add"] = "add"
        function.signature.control_output.append("add")
    for name, result in results.items():
        function.ret[f"{name}_out"] = result
