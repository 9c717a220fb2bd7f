"""Graphs of any size with what real ones have: layers, variables, batches reshaped, conditionals, loops, functions.

They are bytes of one block of layers again and again, under names of one length, so that a million nodes are written in
a second. Each block takes the one before; all of them run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from schemas.graph_pb2 import GraphDef

#: how wide a layer is, and how many layers stand between two blocks
WIDTH, LAYERS = 8, 8
_BLOCK, _BEFORE = "block_0000000", "block_feeding"
_FLOAT, _INT32 = 1, 3


class _Block:
    """The nodes of one block, as a GraphDef."""

    def __init__(self) -> None:
        self.graph = GraphDef()
        self.assigned: list[str] = []

    def add(self, op: str, name: str, inputs: list[str] | None = None, **attrs: Any) -> str:
        """A node; attributes are types by number, bools, ints, texts or lists of texts."""
        full = f"{_BLOCK}/{name}"
        node = self.graph.node.add(name=full, op=op, input=inputs or [])
        for key, value in attrs.items():
            attr = node.attr[key]
            if key in ("dtype", "out_type", "Index") or key.startswith("T"):
                attr.type = value
            elif isinstance(value, bool):
                attr.b = value
            elif isinstance(value, int):
                attr.i = value
            elif isinstance(value, str):
                attr.s = value.encode()
            else:
                attr.list.s.extend(text.encode() for text in value)
        return full

    def constant(self, name: str, dtype: int, sizes: list[int], value: float, after: str = "") -> str:
        """A constant: elements that are all the same, but in matrices."""
        full = self.add("Const", name, [f"^{after}"] if after else [], dtype=dtype)
        tensor = self.graph.node[-1].attr["value"].tensor
        tensor.dtype = dtype  # type: ignore[assignment]
        tensor.tensor_shape.SetInParent()
        for size in sizes:
            tensor.tensor_shape.dim.add(size=size)
        if dtype == _FLOAT and len(sizes) == 2:
            tensor.float_val.extend(value * (1 + number * 37 % 19 - 9) for number in range(sizes[0] * sizes[1]))
        elif dtype == _FLOAT:
            tensor.float_val.append(value)
        else:
            tensor.int_val.append(int(value))
        return full

    def variable(self, name: str, sizes: list[int], value: float) -> str:
        """A variable with its initial value and its read."""
        full = self.add("VariableV2", name, dtype=_FLOAT, container="", shared_name="")
        shape = self.graph.node[-1].attr["shape"].shape
        for size in sizes:
            shape.dim.add(size=size)
        initial = self.constant(f"{name}/initial_value", _FLOAT, sizes, value)
        here = [f"loc:@{full}"]
        self.assigned.append(
            self.add(
                "Assign", f"{name}/Assign", [full, initial], T=_FLOAT, _class=here, use_locking=True,
                validate_shape=True,
            )
        )  # fmt: skip
        return self.add("Identity", f"{name}/read", [full], T=_FLOAT, _class=here)

    def layer(self, x: str, scope: str) -> str:
        """Dense, normalized, reshaped there and back, gated."""
        weights = self.variable(f"{scope}/kernel", [WIDTH, WIDTH], 0.03125)
        bias = self.variable(f"{scope}/bias", [WIDTH], 0.5)
        y = self.add("MatMul", f"{scope}/MatMul", [x, weights], T=_FLOAT, transpose_a=False, transpose_b=False)
        y = self.add("BiasAdd", f"{scope}/BiasAdd", [y, bias], T=_FLOAT, data_format="NHWC")
        y = self.add("Relu", f"{scope}/Relu", [y], T=_FLOAT)
        axes = self.constant(f"{scope}/moments/axes", _INT32, [1], 1)
        mean = self.add("Mean", f"{scope}/moments/mean", [y, axes], T=_FLOAT, Tidx=_INT32, keep_dims=True)
        y = self.add("Sub", f"{scope}/sub", [y, mean], T=_FLOAT)
        shape = self.add("Shape", f"{scope}/Shape", [y], T=_FLOAT, out_type=_INT32)
        begin, end, step = (
            self.constant(f"{scope}/strided_slice/{part}", _INT32, [1], value)
            for part, value in (("stack", 0), ("stack_1", 1), ("stack_2", 1))
        )
        batch = self.add(
            "StridedSlice", f"{scope}/strided_slice", [shape, begin, end, step], T=_INT32, Index=_INT32,
            begin_mask=0, ellipsis_mask=0, end_mask=0, new_axis_mask=0, shrink_axis_mask=1,
        )  # fmt: skip
        two = self.constant(f"{scope}/Reshape/shape/1", _INT32, [], 2)
        half = self.constant(f"{scope}/Reshape/shape/2", _INT32, [], WIDTH // 2)
        sizes = self.add("Pack", f"{scope}/Reshape/shape", [batch, two, half], T=_INT32, N=3, axis=0)
        y = self.add("Reshape", f"{scope}/Reshape", [y, sizes], T=_FLOAT, Tshape=_INT32)
        axis = self.constant(f"{scope}/concat/axis", _INT32, [], 2)
        y = self.add("ConcatV2", f"{scope}/concat", [y, y, axis], T=_FLOAT, N=2, Tidx=_INT32)
        last = self.constant(f"{scope}/Max/axes", _INT32, [1], 1)
        y = self.add("Max", f"{scope}/Max", [y, last], T=_FLOAT, Tidx=_INT32, keep_dims=False)
        gate = self.add("Sigmoid", f"{scope}/Sigmoid", [x], T=_FLOAT)
        y = self.add("Mul", f"{scope}/mul", [y, gate], T=_FLOAT)
        return self.add("AddV2", f"{scope}/add", [y, x], T=_FLOAT)

    def conditional(self, x: str) -> str:
        """A branch that doubles and one that negates, by the sum of what comes in."""
        axes = self.constant("cond/axes", _INT32, [2], 0)
        axes_value = self.graph.node[-1].attr["value"].tensor
        axes_value.int_val.append(1)
        total = self.add("Sum", "cond/Sum", [x, axes], T=_FLOAT, Tidx=_INT32, keep_dims=False)
        limit = self.constant("cond/limit", _FLOAT, [], 0.0)
        wanted = self.add("Less", "cond/Less", [total, limit], T=_FLOAT)
        switch = self.add("Switch", "cond/Switch", [x, wanted], T=_FLOAT)
        double = self.add("AddV2", "cond/double", [f"{switch}:1", f"{switch}:1"], T=_FLOAT)
        negative = self.add("Neg", "cond/Neg", [switch], T=_FLOAT)
        return self.add("Merge", "cond/Merge", [negative, double], T=_FLOAT, N=2)

    def loop(self, x: str) -> str:
        """Two iterations that halve what comes in."""
        start = self.constant("while/start", _INT32, [], 0)
        frame: dict[str, Any] = {"frame_name": f"{_BLOCK}/while", "parallel_iterations": 10, "is_constant": False}
        count = self.add("Enter", "while/Enter", [start], T=_INT32, **frame)
        value = self.add("Enter", "while/Enter_1", [x], T=_FLOAT, **frame)
        merges = [
            self.add("Merge", f"while/Merge{tail}", [enter, f"{_BLOCK}/while/NextIteration{tail}"], T=kind, N=2)
            for tail, enter, kind in (("", count, _INT32), ("_1", value, _FLOAT))
        ]
        limit = self.constant("while/limit", _INT32, [], 2, after=merges[0])
        wanted = self.add("Less", "while/Less", [merges[0], limit], T=_INT32)
        going = self.add("LoopCond", "while/LoopCond", [wanted])
        switches = [
            self.add("Switch", f"while/Switch{tail}", [merge, going], T=kind)
            for tail, merge, kind in (("", merges[0], _INT32), ("_1", merges[1], _FLOAT))
        ]
        body = self.add("Identity", "while/Identity", [f"{switches[0]}:1"], T=_INT32)
        one = self.constant("while/one", _INT32, [], 1, after=body)
        half = self.constant("while/half", _FLOAT, [], 0.5, after=body)
        following = self.add("AddV2", "while/add", [body, one], T=_INT32)
        halved = self.add("Mul", "while/mul", [f"{switches[1]}:1", half], T=_FLOAT)
        self.add("NextIteration", "while/NextIteration", [following], T=_INT32)
        self.add("NextIteration", "while/NextIteration_1", [halved], T=_FLOAT)
        self.add("Exit", "while/Exit", [switches[0]], T=_INT32)
        return self.add("Exit", "while/Exit_1", [switches[1]], T=_FLOAT)

    def call(self, x: str) -> str:
        """A call of the one function there is."""
        full = self.add("PartitionedCall", "call", [x])
        node = self.graph.node[-1]
        node.attr["f"].func.name = "squared"
        for key in ("Tin", "Tout"):
            node.attr[key].list.type.append(_FLOAT)  # type: ignore[arg-type]
        return full


def _block() -> tuple[bytes, int, str, str]:
    """The bytes of a block, how many nodes it has, and the names of its result and of what initialises it."""
    block = _Block()
    x = f"{_BEFORE}/y"
    for number in range(LAYERS):
        x = block.layer(x, f"dense_{number}")
    x = block.call(block.loop(block.conditional(x)))
    result = block.add("Identity", "y", [x], T=_FLOAT)
    init = block.add("NoOp", "init", [f"^{name}" for name in block.assigned])
    return block.graph.SerializeToString(deterministic=True), len(block.graph.node), result, init


def write_graph(path: str | Path, nodes: int) -> int:
    """Write a graph of about so many nodes: from "x" ([?, 8] floats) to "y"; "init" gives variables their values.

    Returns:
        how many nodes it has.
    """
    data, count, result, init = _block()
    blocks = max(1, round(nodes / count))
    first, last = GraphDef(), GraphDef()
    x = first.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = _FLOAT  # type: ignore[assignment]
    for size in (-1, WIDTH):
        x.attr["shape"].shape.dim.add(size=size)
    for graph, name, source in ((first, f"{_BEFORE}/y", "x"), (last, "y", result.replace(_BLOCK, _name(blocks - 1)))):
        graph.node.add(name=name, op="Identity", input=[source]).attr["T"].type = _FLOAT  # type: ignore[assignment]
    last.node.add(name="init", op="NoOp", input=[f"^{init.replace(_BLOCK, _name(each))}" for each in range(blocks)])
    last.versions.producer = 1395
    _add_function(last)
    with Path(path).open("wb") as file:
        file.write(first.SerializeToString())
        for number in range(blocks):
            before = _name(number - 1) if number else _BEFORE
            made = data.replace(_BLOCK.encode(), _name(number).encode()).replace(_BEFORE.encode(), before.encode())
            file.write(made)
        file.write(last.SerializeToString())
    return blocks * count + 4


def _name(number: int) -> str:
    """Of a block: all are of one length, so the bytes around them stay as they are."""
    return f"block_{number:07}"


def _add_function(graph: GraphDef) -> None:
    function = graph.library.function.add()
    function.signature.name = "squared"
    function.signature.input_arg.add(name="x", type=_FLOAT)
    function.signature.output_arg.add(name="y", type=_FLOAT)
    node = function.node_def.add(name="Square", op="Square", input=["x"])
    node.attr["T"].type = _FLOAT  # type: ignore[assignment]
    function.ret["y"] = "Square:y:0"
