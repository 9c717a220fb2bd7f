"""The corpus of broken files: each row is a good model with one defect, and the rule that must find it.

It is long because it is a table; a row stands with its neighbours of the same family.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from schemas.variable_pb2 import VariableDef
from tests.passes.validate_graphs import (
    B,
    F,
    I,
    R,
    S,
    add,
    calls,
    const,
    function,
    info,
    loop,
    meta,
    net,
    node,
    saved,
    tensor,
    weights,
    write_checkpoint,
)
from toolkit.graph import dtypes
from toolkit.graph.attrs import FuncRef, encode
from toolkit.graph.shape import Shape

Make = Callable[[Path], list[str]]


@dataclass(frozen=True)
class Row:
    """A broken file.

    Attributes:
        name: of the row.
        rule: the id that must be among the findings.
        node: the node it must be reported for; "" not to ask.
        make: writes the file into a folder, and gives the command's arguments.
    """

    name: str
    rule: str
    node: str
    make: Make


ROWS: list[Row] = []


def row(
    name: str, rule: str, base: Callable[[], Any], defect: Callable[[Any], object], at: str = "", args: Any = ()
) -> None:
    """A row whose file is a message: made good, broken by `defect`, written."""

    def make(folder: Path) -> list[str]:
        message = base()
        defect(message)
        path = folder / "model.pb"
        path.write_bytes(message.SerializeToString())
        return [str(path), *(args(folder) if callable(args) else args)]

    ROWS.append(Row(name, rule, at, make))


def put(name: str, key: str, value: Any) -> Callable[[Any], None]:
    """Set an attribute of a node."""

    def defect(graph: Any) -> None:
        node(graph, name).attr[key].CopyFrom(encode(value))

    return defect


def drop(name: str, key: str) -> Callable[[Any], None]:
    """Remove an attribute of a node."""
    return lambda graph: node(graph, name).attr.pop(key)


def wire(name: str, *inputs: str) -> Callable[[Any], None]:
    """Replace a node's inputs."""

    def defect(graph: Any) -> None:
        found = node(graph, name)
        del found.input[:]
        found.input.extend(inputs)

    return defect


def on(device: str, *names: str) -> Callable[[Any], None]:
    def defect(graph: Any) -> None:
        for name in names:
            node(graph, name).device = device

    return defect


def op(name: str, new: str) -> Callable[[Any], None]:
    def defect(graph: Any) -> None:
        node(graph, name).op = new

    return defect


def both(*defects: Callable[[Any], object]) -> Callable[[Any], None]:
    def defect(message: Any) -> None:
        for one in defects:
            one(message)

    return defect


def inside(name: str, defect: Callable[[Any], object]) -> Callable[[Any], object]:
    """Break a function's body."""
    return lambda graph: defect(next(f for f in graph.library.function if f.signature.name == name))


def main(defect: Callable[[Any], object]) -> Callable[[Any], object]:
    """Break the graph of a MetaGraphDef."""
    return lambda message: defect(message.graph_def)


# -- structure -------------------------------------------------------------------------------------------

for first, second in (("relu", "prob"), ("x", "logits"), ("conv/kernel", "dense/kernel")):

    def same(g: Any, a: str = first, b: str = second) -> None:
        node(g, b).name = a

    row(f"the name {first} twice", "structure/duplicate-name", net, same, first)
for broken, text in (
    ("relu", "nowhere"),
    ("prob", "logit"),
    ("logits", "flat/shap"),
    ("flat", "relu/"),
    ("conv/out", "conv/kernel/read"),
):

    def dangle(g: Any, broken: str = broken, text: str = text) -> None:
        node(g, broken).input[0] = text

    row(f"{broken} without {text}", "structure/dangling-input", net, dangle, broken)
row("a node removed", "structure/dangling-input", net, lambda g: g.node.remove(node(g, "relu")), "flat")
row("a placeholder removed", "structure/dangling-input", net, lambda g: g.node.remove(node(g, "x")), "conv/out")
row("a dangling input in a loop", "structure/dangling-input", loop, lambda g: g.node.remove(node(g, "less")), "cond")
row("a dangling input of a function", "structure/dangling-input", calls, inside("double", wire("sum", "a", "b")), "sum")
row("an output of a function's node that is not", "structure/dangling-input", calls,
    inside("four", wire("twice", "once:y:0")), "twice")  # fmt: skip
row("a dangling control", "structure/dangling-control", net, lambda g: node(g, "relu").input.append("^gone"), "relu")
row(
    "a dangling control of init",
    "structure/dangling-control",
    meta,
    main(wire("init", "^w/assign", "^c/assign")),
    "init",
)
row("a dangling control of a function", "structure/dangling-control", calls,
    inside("double", wire("sum", "a", "a", "^gone")), "sum")  # fmt: skip
row("data after control", "structure/input-order", net, wire("logits", "flat", "^x", "dense/kernel"), "logits")
for target, text in (("relu", "conv/biased:1"), ("flat", "relu:2"), ("prob", "logits:7")):

    def index(g: Any, target: str = target, text: str = text) -> None:
        node(g, target).input[0] = text

    row(f"output {text}", "structure/output-index", net, index, target)
row("a third output of a Switch", "structure/output-index", loop, wire("exit", "switch:2"), "exit")
for bad in ("", "re lu", "_relu", "relu:0", "^relu", "relu#1", "näher"):

    def rename(g: Any, bad: str = bad) -> None:
        node(g, "prob").name = bad

    row(f"the name '{bad}'", "structure/bad-name", net, rename)
row("a cycle of two", "structure/cycle", net, wire("conv/biased", "relu", "conv/bias"))
row("a cycle of many", "structure/cycle", net, lambda g: node(g, "conv/out").input.__setitem__(0, "prob"))
row("a cycle of one", "structure/cycle", net, wire("relu", "relu"), "relu")
row("a cycle through control", "structure/cycle", net, lambda g: node(g, "conv/out").input.append("^prob"))
row("a cycle in a function", "structure/cycle", calls, inside("four", wire("once", "twice:output:0")), "once")
row("a cycle beside a loop", "structure/cycle", loop, wire("body", "plus"))
row(
    "a node that waits for itself",
    "structure/self-control",
    net,
    lambda g: node(g, "relu").input.append("^relu"),
    "relu",
)
row("a collection of what is not", "structure/collection", meta,
    lambda m: m.collection_def["train_op"].node_list.value.append("train"))  # fmt: skip
row("a collection with a wrong name", "structure/collection", meta,
    lambda m: m.collection_def["losses"].node_list.value.append("yy:0"))  # fmt: skip

# -- ops -------------------------------------------------------------------------------------------------

for name in ("Reluu", "relu", "TotallyUnknown", "Relu7", ""):
    row(f"the op '{name}'", "opdef/unknown-op", net, op("relu", name), "relu")
row("an unknown op in a function", "opdef/unknown-op", calls, inside("negative", op("neg", "Negg")), "neg")
row("a deprecated op", "opdef/deprecated", net, op("prob", "BatchNormWithGlobalNormalization"), "prob")
row(
    "an op that goes away",
    "opdef/deprecated-soon",
    net,
    both(lambda g: setattr(g.versions, "producer", 5), lambda g: add(g, "TensorArray", "old", ["flat/shape"], dtype=F)),
    "old",
)
for name, key in (
    ("x", "dtype"),
    ("conv/kernel", "value"),
    ("conv/kernel", "dtype"),
    ("conv/out", "strides"),
    ("conv/out", "padding"),
    ("conv/out", "T"),
    ("relu", "T"),
    ("logits", "T"),
):
    # T of Relu has a default, as some others: these are legal without it
    if (name, key) != ("relu", "T"):
        row(f"{name} without {key}", "opdef/missing-attr", net, drop(name, key), name)
row("a function's node without T", "opdef/missing-attr", calls, inside("double", drop("sum", "T")), "sum")
for name, key, value in (
    ("conv/out", "padding", b"MAYBE"), ("conv/out", "padding", 3), ("conv/out", "strides", b"1"),
    ("conv/out", "data_format", b"CHWN"), ("conv/out", "T", dtypes.from_name("string")), ("conv/out", "T", 1),
    ("conv/out", "use_cudnn_on_gpu", 1), ("conv/out", "dilations", 2.0), ("x", "shape", [1, 2]), ("x", "dtype", b"f"),
    ("logits", "transpose_a", 1), ("prob", "T", I), ("prob", "T", F.ref), ("conv/kernel", "value", 1.0),
    ("conv/biased", "data_format", b"ABCD"), ("flat", "Tshape", F),
):  # fmt: skip
    row(f"{name}.{key} = {value}", "opdef/attr", net, put(name, key, value), name)
row("Merge of none", "opdef/attr", loop, both(put("merge", "N", 0), wire("merge")), "merge")
for name, key in (("relu", "alfa"), ("conv/out", "stride"), ("x", "shap")):
    row(f"{name} with {key}", "opdef/unknown-attr", net, put(name, key, 1), name)
row(
    "an unknown attribute in a function", "opdef/unknown-attr", calls, inside("negative", put("neg", "speed", 1)), "neg"
)
for name, inputs in (
    ("relu", ()), ("relu", ("conv/biased", "x")), ("logits", ("flat",)), ("prob", ("logits", "logits")),
    ("conv/out", ("x", "conv/kernel", "conv/bias")), ("x", ("relu",)), ("conv/kernel", ("x",)), ("flat", ("relu",)),
):  # fmt: skip
    row(f"{name} of {len(inputs)} inputs", "opdef/arity", net, wire(name, *inputs), name)
row("a Merge of one", "opdef/arity", loop, wire("merge", "enter_i"), "merge")
row("arity in a function", "opdef/arity", calls, inside("negative", wire("neg", "a", "a")), "neg")
for name, inputs in (
    ("relu", ("flat/shape",)), ("logits", ("flat/shape", "dense/kernel")), ("flat", ("relu", "relu")),
    ("conv/biased", ("conv/out", "flat/shape")),
):  # fmt: skip
    row(f"{name} of {inputs[-1]}", "opdef/dtype", net, wire(name, *inputs), name)
row("a changed T", "opdef/dtype", net, put("relu", "T", dtypes.float64), "relu")
row("a changed dtype", "opdef/dtype", net, put("x", "dtype", dtypes.float16), "conv/out")
row("a number as condition", "opdef/dtype", loop, wire("cond", "merge"), "cond")
row("a value where a reference is wanted", "opdef/dtype", meta, main(wire("w/assign", "w/read", "w/init")), "w/assign")
row("types in a function", "opdef/dtype", calls, inside("double", put("sum", "T", I)), "sum")
row("a constant of another type", "opdef/const-value", net,
    put("conv/bias", "value", tensor([1], [4], I)), "conv/bias")  # fmt: skip
row("a constant without a shape", "opdef/const-value", net, put("conv/bias", "value", tensor([1.0], [-1])), "conv/bias")


def cut(g: Any) -> None:
    value = node(g, "dense/kernel").attr["value"].tensor
    value.tensor_content = value.tensor_content[:-4]


row("a constant cut short", "opdef/const-value", net, cut, "dense/kernel")
row("a reader of the future", "opdef/versions", net, lambda g: setattr(g.versions, "min_consumer", 99999))
row("a bad consumer", "opdef/versions", net, lambda g: g.versions.bad_consumers.append(2474))
row("a negative producer", "opdef/versions", net, lambda g: setattr(g.versions, "producer", -1))

# -- shapes ----------------------------------------------------------------------------------------------

for name, size in (("x", [None, 8, 8, 4]), ("x", [None, 8, 8]), ("x", [None, 9, 9, 3])):
    # 9 x 9 pixels make 324 features; the last layers take 256
    where = "conv/out" if size != [None, 9, 9, 3] else ""
    if where:
        row(f"x of shape {size}", "shapes/contradiction", net, put(name, "shape", Shape(size)), where)
row("x of a fixed wrong size", "shapes/contradiction", net, put("x", "shape", Shape([1, 9, 9, 3])), "flat")


def replace_const(name: str, values: Any, shape: list[int], dtype: Any = F) -> Callable[[Any], None]:
    return put(name, "value", tensor(values, shape, dtype))


row("a bias of five", "shapes/contradiction", net, replace_const("conv/bias", [0.0], [5]), "conv/biased")
row("a bias that is a matrix", "shapes/contradiction", net, replace_const("conv/bias", [0.0], [2, 2]), "conv/biased")
row(
    "a kernel of three dimensions",
    "shapes/contradiction",
    net,
    replace_const("conv/kernel", [0.0], [3, 3, 3]),
    "conv/out",
)
row(
    "a kernel for four channels",
    "shapes/contradiction",
    net,
    replace_const("conv/kernel", [0.0], [3, 3, 4, 4]),
    "conv/out",
)
row("a dense layer of 255", "shapes/contradiction", net, replace_const("dense/kernel", [0.0], [255, 10]), "logits")
row(
    "a dense layer that is a vector", "shapes/contradiction", net, replace_const("dense/kernel", [0.0], [256]), "logits"
)
row("a transposed dense layer", "shapes/contradiction", net, put("logits", "transpose_b", True), "logits")
row("strides of three", "shapes/contradiction", net, put("conv/out", "strides", [1, 1, 1]), "conv/out")
row("a reshape to seven columns", "shapes/contradiction", net, replace_const("flat/shape", [-1, 7], [2], I), "logits")
row("a reshape by a matrix", "shapes/contradiction", net, replace_const("flat/shape", [1], [1, 2], I), "flat")
row("a matrix as condition's bound", "shapes/contradiction", loop,
    both(lambda g: add(g, "Placeholder", "a", dtype=F, shape=Shape([2, 3])),
         lambda g: add(g, "MatMul", "m", ["a", "a"], T=F)), "m")  # fmt: skip
row(
    "shapes in a function",
    "shapes/contradiction",
    calls,
    inside(
        "negative",
        both(
            lambda f: const(f, "two", [1.0], [2]),
            lambda f: const(f, "three", [1.0], [3]),
            lambda f: add(f, "AddV2", "bad", ["two:output:0", "three:output:0"], T=F),
        ),
    ),
    "bad",
)
row("a noted shape that is wrong", "shapes/noted", net, put("relu", "_output_shapes", [Shape([None, 8, 8, 5])]), "relu")
row("a noted rank that is wrong", "shapes/noted", net, put("logits", "_output_shapes", [Shape([10])]), "logits")

# -- functions -------------------------------------------------------------------------------------------

row("a call of nothing", "functions/missing", calls, put("call", "f", FuncRef("fuor")), "call")
row("a branch of nothing", "functions/missing", calls, put("if", "else_branch", FuncRef("positive")), "if")
row("a body of nothing", "functions/missing", calls, put("while", "body", FuncRef("triple")), "while")
row(
    "a call of nothing in a function",
    "functions/missing",
    calls,
    inside("four", put("twice", "f", FuncRef("dbl"))),
    "twice",
)
row("two functions of one name", "functions/duplicate", calls,
    lambda g: setattr(g.library.function[2].signature, "name", "double"))  # fmt: skip
row("a result that is not returned", "functions/return", calls, inside("double", lambda f: f.ret.pop("y")))
row("a result from nowhere", "functions/return", calls, inside("double", lambda f: f.ret.__setitem__("y", "summ:z:0")))
row("a control result from nowhere", "functions/return", calls,
    inside("double", lambda f: f.control_ret.__setitem__("done", "gone")))  # fmt: skip
row("an output name that the op lacks", "functions/return", calls,
    inside("double", lambda f: f.ret.__setitem__("y", "sum:out:0")))  # fmt: skip
row("a call with too many types", "functions/signature", calls,
    both(put("call", "Tin", [F, F]), wire("call", "x", "x")), "call")  # fmt: skip
row("a call that takes back integers", "functions/signature", calls, put("call", "Tout", [I]), "call")
row("a branch with another type", "functions/signature", calls,
    inside("negative", lambda f: f.signature.output_arg.__getitem__(0).__setattr__("type", I.enum)), "if")  # fmt: skip
row("a loop whose body returns two", "functions/signature", calls,
    inside("double", both(lambda f: f.signature.output_arg.add(name="z", type=F.enum),
                          lambda f: f.ret.__setitem__("z", "sum:z:0"))), "while")  # fmt: skip
row("a loop condition of two", "functions/signature", calls,
    inside("test", both(lambda f: f.signature.output_arg.add(name="z", type=B.enum),
                        lambda f: f.ret.__setitem__("z", "less:z:0"))), "while")  # fmt: skip
row("a result of another type", "functions/result-type", calls,
    inside("test", lambda f: f.signature.output_arg.__getitem__(0).__setattr__("type", F.enum)))  # fmt: skip


def generic(g: Any) -> None:
    f = function(g, "same", {}, {})
    f.signature.attr.add(name="T", type="type")
    f.signature.input_arg.add(name="a", type_attr="T")
    f.signature.output_arg.add(name="y", type_attr="T")
    add(f, "Identity", "i", ["a"]).attr["T"].placeholder = "T"
    f.ret["y"] = "i:output:0"
    add(g, "PartitionedCall", "generic", ["x"], Tin=[F], Tout=[F], f=FuncRef("same"))


row("a generic function called without its type", "functions/body", calls, generic)
row("a function that calls itself", "functions/recursion", calls, inside("four", put("once", "f", FuncRef("four"))))


def mutual(g: Any) -> None:
    for one, other in (("ping", "pong"), ("pong", "ping")):
        f = function(g, one, {"a": F}, {"y": F})
        add(f, "PartitionedCall", "c", ["a"], Tin=[F], Tout=[F], f=FuncRef(other))
        f.ret["y"] = "c:output:0"
    add(g, "PartitionedCall", "game", ["x"], Tin=[F], Tout=[F], f=FuncRef("ping"))


row("two functions that call each other", "functions/recursion", calls, mutual)
row("a gradient of nothing", "functions/gradient", calls,
    lambda g: g.library.gradient.add(function_name="double", gradient_func="double_grad"))  # fmt: skip
row("a gradient for nothing", "functions/gradient", calls,
    lambda g: g.library.gradient.add(function_name="triple", gradient_func="double"))  # fmt: skip
row("a function that nothing calls", "functions/unused", calls, put("if", "else_branch", FuncRef("double")))

# -- control flow ----------------------------------------------------------------------------------------

row("an Exit out of nothing", "control_flow/frame", net, lambda g: add(g, "Exit", "out", ["relu"], T=F), "out")
row("a value that did not enter", "control_flow/frame", loop, wire("less", "merge", "n"))
row("a value that did not leave", "control_flow/frame", loop,
    lambda g: add(g, "AddV2", "mixed", ["body", "n"], T=I), "mixed")  # fmt: skip
row("two loops that meet", "control_flow/frame", loop, put("enter_n", "frame_name", b"other"))
row("a constant of another frame", "control_flow/frame", loop, wire("one", "^n", "^body"))
row("a back edge into an Identity", "control_flow/back-edge", loop,
    lambda g: add(g, "Identity", "stray", ["next"], T=I), "next")  # fmt: skip
row("a back edge into an addition", "control_flow/back-edge", loop, wire("plus", "body", "next"), "next")
row("a loop that nothing enters", "control_flow/merge-entry", loop, wire("merge", "next", "next"), "merge")
row("a loop without LoopCond", "control_flow/no-condition", loop,
    both(wire("switch", "merge", "less"), lambda g: g.node.remove(node(g, "cond"))))  # fmt: skip

# -- devices ---------------------------------------------------------------------------------------------

for device in (
    "gpu",
    "/gpu",
    "/device:GPU:x",
    "/job:1worker",
    "/job:worker/task:one",
    "CPU:0",
    "/job:a/job:b",
    "/devise:CPU:0",
):
    row(f"the device {device}", "devices/name", net, on(device, "relu"), "relu")
row("a device in a function", "devices/name", calls, inside("negative", on("nowhere", "neg")), "neg")
row("placed with nothing", "devices/colocation", net, put("relu", "_class", [b"loc:@gone"]), "relu")
row("a variable's partner gone", "devices/colocation", meta, main(put("w/assign", "_class", [b"loc:@v"])), "w/assign")
row("variables of two tasks for one node", "devices/conflict", meta,
    main(both(lambda g: add(g, "RefMerge", "either", ["w", "b"], T=F, N=2), on("/job:ps/task:0", "w"),
              on("/job:worker/task:0", "b"))))  # fmt: skip
row("two jobs for one variable", "devices/soft-conflict", meta,
    main(both(on("/job:ps/task:0", "w"), on("/job:worker/task:0", "w/assign"))))  # fmt: skip
row("two tasks for one variable", "devices/soft-conflict", meta,
    main(both(on("/job:ps/task:0", "w"), on("/job:ps/task:1", "w/assign"))))  # fmt: skip
row("two tasks by colocation", "devices/soft-conflict", net,
    both(put("relu", "_class", [b"loc:@prob"]), on("/job:a/task:0", "relu"), on("/job:a/task:1", "prob")))  # fmt: skip
row("two types for one variable", "devices/soft-conflict", meta,
    main(both(on("/device:CPU:0", "w"), on("/device:GPU:0", "w/assign"))))  # fmt: skip
row("a file read on a GPU", "devices/no-kernel", net,
    both(lambda g: const(g, "name", [b"a"], [], S), lambda g: add(g, "StringLength", "length", ["name"]),
         on("/device:GPU:0", "length")), "length")  # fmt: skip
row("text joined on a GPU", "devices/no-kernel", net,
    both(lambda g: const(g, "name", [b"a"], [], S), lambda g: add(g, "StringJoin", "join", ["name", "name"], N=2),
         on("/job:w/task:0/device:GPU:1", "join")), "join")  # fmt: skip

# -- variables -------------------------------------------------------------------------------------------


def no_assign(m: Any) -> None:
    for name in ("w/assign", "save/assign_w"):
        node(m.graph_def, name).input[0] = "b"
        node(m.graph_def, name).input[1] = "b/init"


row("a variable that is never assigned", "variables/uninitialized", meta, no_assign, "w")
row("a further variable", "variables/uninitialized", meta,
    main(lambda g: add(g, "VariableV2", "v", dtype=F, shape=Shape([2]))), "v")  # fmt: skip
row("a resource that is never assigned", "variables/uninitialized", net,
    lambda g: add(g, "VarHandleOp", "v", dtype=F, shape=Shape([2]), shared_name=b"v"), "v")  # fmt: skip


def unsaved(m: Any) -> None:
    g = m.graph_def
    wire("save/save", "save/file", "save/names", "save/slices", "b", "b")(g)


row("a variable that is not saved", "variables/unsaved", meta, unsaved, "w")


def entry(m: Any, **fields: str) -> None:
    values = {"variable_name": "w:0", "initializer_name": "w/assign", "snapshot_name": "w/read:0"} | fields
    m.collection_def["variables"].bytes_list.value.append(VariableDef(**values).SerializeToString())


row("a variable that is gone", "variables/collection", meta, lambda m: entry(m, variable_name="v:0"))
row("an initialiser that is gone", "variables/collection", meta, lambda m: entry(m, initializer_name="w/Assign"))
row("a snapshot that is gone", "variables/collection", meta, lambda m: entry(m, snapshot_name="w/value:0"))
row("an entry of garbage", "variables/collection", meta,
    lambda m: m.collection_def["variables"].bytes_list.value.append(b"\xff\xff"))  # fmt: skip
row("no file name of the saver", "variables/saver", meta,
    lambda m: setattr(m.saver_def, "filename_tensor_name", "save/Const:0"))  # fmt: skip
row("no saving of the saver", "variables/saver", meta, lambda m: setattr(m.saver_def, "save_tensor_name", "gone:0"))
row("no restoring of the saver", "variables/saver", meta, lambda m: setattr(m.saver_def, "restore_op_name", "restore"))


def sharing(g: Any) -> None:
    for name, shape in (("v1", [2]), ("v2", [3])):
        add(g, "VarHandleOp", name, dtype=F, shape=Shape(shape), shared_name=b"v")


row("one name for two variables", "variables/shared", net, sharing, "v2")

# -- checkpoints -----------------------------------------------------------------------------------------


def with_checkpoint(**changes: Any) -> Callable[[Path], list[str]]:
    return lambda folder: ["--checkpoint", str(write_checkpoint(folder / "ckpt", **changes))]


def intact(message: Any) -> None:
    """The file itself is good."""


row("a tensor missing", "checkpoint/missing", meta, intact, args=with_checkpoint(w=None))
row(
    "a tensor renamed",
    "checkpoint/missing",
    meta,
    intact,
    args=with_checkpoint(w=None, weight=np.zeros((4, 2), np.float32)),
)
row("a tensor of another type", "checkpoint/dtype", meta, intact, args=with_checkpoint(b=np.zeros(2, np.float64)))
row("a tensor of another shape", "checkpoint/shape", meta, intact, args=with_checkpoint(w=np.zeros((2, 4), np.float32)))
row("a tensor of another rank", "checkpoint/shape", meta, intact, args=with_checkpoint(b=np.zeros((1, 2), np.float32)))
row("a tensor more", "checkpoint/extra", meta, intact, args=with_checkpoint(z=np.zeros(1, np.float32)))


def damaged(folder: Path) -> list[str]:
    prefix = write_checkpoint(folder / "ckpt")
    index = prefix.with_name("ckpt.index")
    index.write_bytes(index.read_bytes()[:40])
    return ["--checkpoint", str(prefix)]


row("a damaged checkpoint", "checkpoint/unreadable", meta, intact, args=damaged)


def without_data(folder: Path) -> list[str]:
    prefix = write_checkpoint(folder / "ckpt")
    prefix.with_name("ckpt.data-00000-of-00001").unlink()
    return ["--checkpoint", str(prefix)]


def cut_data(folder: Path) -> list[str]:
    prefix = write_checkpoint(folder / "ckpt")
    data = prefix.with_name("ckpt.data-00000-of-00001")
    data.write_bytes(data.read_bytes()[:-1])
    return ["--checkpoint", str(prefix)]


row("a checkpoint without its data", "checkpoint/unreadable", meta, intact, args=without_data)
row("a checkpoint whose data end early", "checkpoint/unreadable", meta, intact, args=cut_data)


def folder_with_other_variables(folder: Path) -> list[str]:
    (folder / "model" / "variables").mkdir(parents=True)
    (folder / "model" / "saved_model.pb").write_bytes(saved().SerializeToString())
    write_checkpoint(folder / "model" / "variables" / "variables", w=np.zeros((3, 2), np.float32))
    return [str(folder / "model")]


ROWS.append(Row("a SavedModel with other variables", "checkpoint/shape", "", folder_with_other_variables))

# -- signatures ------------------------------------------------------------------------------------------


def signature(message: Any) -> Any:
    owner = message.meta_graphs[0] if hasattr(message, "meta_graphs") else message
    return owner.signature_def["serving_default"]


def say(side: str, key: str, name: str, dtype: Any = F, shape: Shape = Shape(None)) -> Callable[[Any], None]:
    return lambda m: info(getattr(signature(m), side), key, name, dtype, shape)


row("an input that is gone", "signatures/tensor", saved, say("inputs", "x", "input:0"))
row("an output that is gone", "signatures/tensor", meta, say("outputs", "y", "yy:0"))
row("an output of no index", "signatures/tensor", meta, say("outputs", "y", "y:3"), "y")
row("an input without a tensor", "signatures/tensor", saved, lambda m: say("inputs", "x", "")(m))
row("an input of another type", "signatures/dtype", meta, say("inputs", "x", "x:0", I), "x")
row("an output of another type", "signatures/dtype", saved, say("outputs", "y", "y:0", dtypes.float64), "y")
row("an input of another shape", "signatures/shape", meta, say("inputs", "x", "x:0", F, Shape([None, 5])), "x")
row("an output of another rank", "signatures/shape", saved, say("outputs", "y", "y:0", F, Shape([None])), "y")
row("no outputs", "signatures/no-outputs", saved, lambda m: signature(m).outputs.pop("y"))
row("no signatures", "signatures/none", saved, lambda m: m.meta_graphs[0].signature_def.pop("serving_default"))
row("a signature of garbage", "signatures/malformed", meta, lambda m: setattr(signature(m).inputs["x"], "dtype", 77))


def earlier(change: Callable[[Any], object] = intact) -> Callable[[Path], list[str]]:
    def args(folder: Path) -> list[str]:
        message = meta()
        change(message)
        (folder / "earlier.pb").write_bytes(message.SerializeToString())
        return ["--compatible-with", str(folder / "earlier.pb")]

    return args


row("a signature renamed", "signatures/removed", meta, intact,
    args=earlier(lambda m: m.signature_def["predict"].CopyFrom(signature(m))))  # fmt: skip
row(
    "an input renamed",
    "signatures/input",
    meta,
    intact,
    args=earlier(both(say("inputs", "features", "x:0", F, Shape([None, 4])), lambda m: signature(m).inputs.pop("x"))),
)
row("an input more", "signatures/input", meta, say("inputs", "p", "w/read:0", F, Shape([4, 2])), args=earlier())
row("an input with another type", "signatures/input", meta, intact,
    args=earlier(say("inputs", "x", "x:0", I, Shape([None, 4]))))  # fmt: skip
row("an input that takes less", "signatures/input", meta, say("inputs", "x", "x:0", F, Shape([1, 4])), args=earlier())
row("an output less", "signatures/output", meta, intact, args=earlier(say("outputs", "z", "y:0", F)))
row("an output with another type", "signatures/output", meta, intact, args=earlier(say("outputs", "y", "y:0", I)))
row("an output of more shapes", "signatures/output", meta, intact,
    args=earlier(say("outputs", "y", "y:0", F, Shape([7, 2]))))  # fmt: skip

# -- numerics --------------------------------------------------------------------------------------------

for rule, number in (
    ("nan", float("nan")),
    ("infinity", float("inf")),
    ("infinity", float("-inf")),
    ("denormal", 1e-40),
):
    row(f"a bias of {number}", f"numerics/{rule}", net, replace_const("conv/bias", [number], [4]), "conv/bias")

    def large(g: Any, number: float = number) -> None:
        value = node(g, "dense/kernel").attr["value"].tensor
        array = np.frombuffer(value.tensor_content, np.float32).copy()
        array[1234] = number
        value.tensor_content = array.tobytes()

    row(f"a weight of {number}", f"numerics/{rule}", net, large, "dense/kernel")
row("NaN in a function", "numerics/nan", calls,
    inside("test", put("limit", "value", tensor([float("nan")], []))), "limit")  # fmt: skip


def half(g: Any) -> None:
    proto = tensor([], [2])
    proto.dtype = dtypes.float16.enum
    proto.half_val.extend([0x7E00, 0x3C00])
    add(g, "Const", "half", dtype=dtypes.float16, value=proto)


row("NaN in half precision", "numerics/nan", net, half, "half")

# -- size, budgets, coverage -----------------------------------------------------------------------------

row(
    "the same weights twice",
    "size/duplicate-constants",
    net,
    lambda g: weights(g, "copy", [256, 10], 0.5),
    "dense/kernel",
)


def huge(folder: Path) -> list[str]:
    path = folder / "huge.pb"
    path.write_bytes(net().SerializeToString())
    with path.open("r+b") as file:
        file.truncate(2**31)  # sparse: it takes no room
    return [str(path)]


ROWS.append(Row("a file of 2 GiB", "size/limit", "", huge))
row("too many nodes", "budgets/nodes", net, intact, args=["--max-nodes", "10"])
row("too many nodes in functions", "budgets/nodes", calls, intact, args=["--max-nodes", "8"])
row("too many parameters", "budgets/params", net, intact, args=["--max-params", "2k"])
row("too many parameters in variables", "budgets/params", saved, intact, args=["--max-params", "9"])
row("too many operations", "budgets/flops", net, intact, args=["--max-flops", "1e4"])
row("operations that cannot be counted", "budgets/flops-unknown", net,
    lambda g: (add(g, "Placeholder", "any", dtype=dtypes.float32), add(g, "Neg", "neg", ["any"], T=dtypes.float32)),
    args=["--max-flops", "1e15"])  # fmt: skip
row("too many bytes", "budgets/bytes", net, intact, args=["--max-bytes", "1000"])
row("an op without a kernel", "coverage/no-kernel", net,
    lambda g: add(g, "TPUReplicateMetadata", "tpu", num_replicas=1), "tpu", ["--runs-on", "CPU"])  # fmt: skip
row(
    "no kernel in a function",
    "coverage/no-kernel",
    calls,
    inside("negative", lambda f: add(f, "TPUReplicateMetadata", "tpu", num_replicas=1)),
    "tpu",
    ["--runs-on", "CPU"],
)

# -- security --------------------------------------------------------------------------------------------


def unsafe(name: str, inputs: int = 1, **attrs: Any) -> Callable[[Any], None]:
    def defect(g: Any) -> None:
        const(g, "text", [b"/etc/passwd"], [], S)
        add(g, name, "unsafe", ["text"] * inputs, **attrs)

    return defect


def unsafe_inside(name: str, inputs: int = 1, **attrs: Any) -> Callable[[Any], object]:
    def defect(f: Any) -> None:
        const(f, "text", [b"/etc/passwd"], [], S)
        add(f, name, "unsafe", ["text:output:0"] * inputs, **attrs)

    return inside("negative", defect)


for name, inputs, rule in (
    ("ReadFile", 1, "file-read"), ("MatchingFiles", 1, "file-read"), ("WriteFile", 2, "file-write"),
):  # fmt: skip
    row(f"{name}", f"security/{rule}", net, unsafe(name, inputs), "unsafe")
    row(f"{name} in a function", f"security/{rule}", calls, unsafe_inside(name, inputs), "unsafe")


def generic_inside(g: Any) -> None:
    """An op in a function that is generic and called only by another function, and by none at all."""
    for name in ("inner", "orphan"):
        generic = function(g, name, {}, {})
        generic.signature.attr.add(name="T", type="type")
        const(generic, "path", [b"/etc/passwd"], [], S)
        add(generic, "ReadFile", f"read_{name}", ["path:output:0"])
    outer = next(f for f in g.library.function if f.signature.name == "four")
    add(outer, "PartitionedCall", "generic", [], Tin=[], Tout=[], f=FuncRef("inner", {"T": F}))


row("a generic function that a function calls", "security/file-read", calls, generic_inside, "read_inner")
row("a generic function that nothing calls", "security/file-read", calls, generic_inside, "read_orphan")
row("a reader", "security/file-read", net, lambda g: add(g, "TextLineReaderV2", "unsafe"), "unsafe")
row(
    "a mapped file",
    "security/file-read",
    net,
    lambda g: add(g, "ImmutableConst", "unsafe", dtype=F, shape=Shape([1]), memory_region_name=b"/etc/passwd"),
    "unsafe",
)
for name in ("PyFunc", "PyFuncStateless"):
    row(
        name,
        "security/python",
        net,
        lambda g, name=name: add(g, name, "unsafe", ["x"], token=b"t", Tin=[F], Tout=[F]),
        "unsafe",
    )
row(
    "EagerPyFunc in a function",
    "security/python",
    calls,
    inside("negative", lambda f: add(f, "EagerPyFunc", "unsafe", ["a"], token=b"t", Tin=[F], Tout=[F])),
    "unsafe",
)
row("a table from a file", "security/file-read", net,
    both(lambda g: add(g, "HashTableV2", "table", key_dtype=S, value_dtype=dtypes.int64),
         lambda g: const(g, "text", [b"/etc/passwd"], [], S),
         lambda g: add(g, "InitializeTableFromTextFileV2", "unsafe", ["table", "text"], key_index=-2, value_index=-1)),
    "unsafe")  # fmt: skip
row("RpcClient", "security/network", net,
    both(lambda g: const(g, "text", [b"host:80"], [], S),
         lambda g: add(g, "RpcClient", "unsafe", ["text", "later"], shared_name=b""),
         lambda g: const(g, "later", [1], [], I)), "unsafe")  # fmt: skip
row("saving without a saver", "security/checkpoint-io", net,
    both(lambda g: const(g, "text", [b"/tmp/a"], [], S), lambda g: const(g, "names", [b"x"], [1], S),
         lambda g: const(g, "slices", [b""], [1], S),
         lambda g: add(g, "SaveV2", "unsafe", ["text", "names", "slices", "x"], dtypes=[F])), "unsafe")  # fmt: skip
row("saving where its user says", "security/own-files", net,
    both(lambda g: const(g, "text", [b"model"], [], S), lambda g: const(g, "names", [b"x"], [1], S),
         lambda g: const(g, "slices", [b""], [1], S),
         lambda g: add(g, "SaveV2", "unsafe", ["text", "names", "slices", "x"], dtypes=[F])), "unsafe")  # fmt: skip


def named_by_saver(g: Any) -> None:
    """As TensorFlow's savers of 2017 to 2019 made it: the name that is fed stands in a constant."""
    for name, text in (("default", b"model"), ("part", b"_temp_0a/part")):
        const(g, name, [text], [], S)
    for name, text in (("names", b"x"), ("slices", b"")):
        const(g, name, [text], [1], S)
    add(g, "StringJoin", "joined", ["default", "part"], N=2)
    add(g, "SaveV2", "unsafe", ["joined", "names", "slices", "x"], dtypes=[F])


def computed(*parts: bytes) -> Callable[[Any], None]:
    """A checkpoint whose name is put together of texts and of what is fed (an empty part)."""

    def defect(m: Any) -> None:
        meta = m.meta_graphs[0]
        meta.saver_def.filename_tensor_name, meta.saver_def.save_tensor_name = "fed:0", "joined:0"
        meta.saver_def.restore_op_name = "unsafe"
        g = meta.graph_def
        const(g, "names", [b"x"], [1], S)
        const(g, "slices", [b""], [1], S)
        add(g, "Placeholder", "fed", dtype=S, shape=Shape([]))
        for at, part in enumerate(parts):
            const(g, f"part{at}", [part], [], S)
        inputs = [f"part{at}" if part else "fed" for at, part in enumerate(parts)]
        add(g, "StringJoin", "joined", inputs, N=len(inputs))
        add(g, "SaveV2", "unsafe", ["joined", "names", "slices", "x"], dtypes=[F])

    return defect


row("saving where only constants say", "security/checkpoint-io", saved, computed(b"a", b"b"), "unsafe")
row("saving where a saver says", "security/own-files", net, named_by_saver, "unsafe")
row("saving where a constant says", "security/checkpoint-io", saved, computed(b"/tmp/", b""), "unsafe")
row("saving above what its user says", "security/checkpoint-io", saved, computed(b"", b"/../a"), "unsafe")


def cached_computed(g: Any) -> None:
    const(g, "texts", [b"/tmp"], [], S)
    add(g, "Placeholder", "n", dtype=dtypes.int64, shape=Shape([]))
    add(g, "StringJoin", "joined", ["texts", "texts"], N=2)
    kinds: dict[str, Any] = {"output_types": [dtypes.int64], "output_shapes": [Shape([])]}
    add(g, "RangeDataset", "range", ["n", "n", "n"], **kinds)
    add(g, "CacheDataset", "unsafe", ["range", "joined"], **kinds)


row("a dataset that is cached in a file of a computed name", "security/file-write", net, cached_computed, "unsafe")


def two_handles(g: Any) -> None:
    """One variable by two handles: through one it is given a harmless path, through the other one that is not."""
    for at, text in enumerate((b"own", b"/etc/passwd")):
        const(g, f"text{at}", [text], [], S)
        add(g, "VarHandleOp", f"path{at}", dtype=S, shape=Shape([]), shared_name=b"path", container=b"")
        add(g, "AssignVariableOp", f"set{at}", [f"path{at}", f"text{at}"], dtype=S)
    add(g, "ReadVariableOp", "get", ["path0"], dtype=S)
    add(g, "ReadFile", "unsafe", ["get"])


row("a path from a variable with two handles", "security/file-read", net, two_handles, "unsafe")
row("reading a file above its own", "security/file-read", net,
    both(lambda g: const(g, "text", [b"a/../../b"], [], S), lambda g: add(g, "ReadFile", "unsafe", ["text"])),
    "unsafe")  # fmt: skip
row("an op that ends the process", "security/process", net,
    lambda g: add(g, "Abort", "unsafe", exit_without_error=True), "unsafe")  # fmt: skip


def foreign_asset(m: Any) -> None:
    asset = m.meta_graphs[0].asset_file_def.add(filename="../../secret")
    asset.tensor_info.name = "x:0"


row("an asset above the model", "security/asset", saved, foreign_asset, "x")
row("printing into a file", "security/output-file", net,
    unsafe("PrintV2", 1, output_stream=b"file:///tmp/log"), "unsafe")  # fmt: skip
row("debugging over the network", "security/debug-url", net,
    lambda g: add(g, "DebugIdentity", "unsafe", ["x"], T=F, debug_urls=[b"grpc://elsewhere:1"]), "unsafe")  # fmt: skip

# -- reproducibility -------------------------------------------------------------------------------------

for name in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
    row(f"{name} without a seed", "reproducibility/unseeded", net,
        lambda g, name=name: add(g, name, "random", ["flat/shape"], T=I, dtype=F), "random")  # fmt: skip
row(
    "no seed in a function",
    "reproducibility/unseeded",
    calls,
    inside(
        "negative",
        both(
            lambda f: const(f, "two", [2], [1], I),
            lambda f: add(f, "RandomUniform", "random", ["two:output:0"], T=I, dtype=F),
        ),
    ),
    "random",
)
row("the time", "reproducibility/clock", net, lambda g: add(g, "Timestamp", "now"), "now")

# -- files -----------------------------------------------------------------------------------------------


def folder_without_asset(folder: Path) -> list[str]:
    model = saved()
    asset = model.meta_graphs[0].asset_file_def.add(filename="words.txt")
    asset.tensor_info.name = "x:0"
    (folder / "model").mkdir()
    (folder / "model" / "saved_model.pb").write_bytes(model.SerializeToString())
    return [str(folder / "model")]


ROWS.append(Row("a folder that lost an asset", "file/no-asset", "x", folder_without_asset))


def content(name: str, data: Callable[[], bytes], rule: str = "file/unreadable") -> None:
    def make(folder: Path) -> list[str]:
        path = folder / "model.pb"
        path.write_bytes(data())
        return [str(path)]

    ROWS.append(Row(name, rule, "", make))


content("an empty file", lambda: b"")
content("a truncated file", lambda: net().SerializeToString()[:-50])
content("a file that begins in the middle", lambda: net().SerializeToString()[1:])
content("random bytes", lambda: bytes(range(256)) * 9)
content("text that is no graph", lambda: b"Hello, world.\n")
content("text format with a typing error", lambda: b'node { name: "x" opp: "Relu" }\n')
content("text format cut short", lambda: b'node { name: "x" op: "Relu"\n')
content("JSON cut short", lambda: b'{"node": [{"name": "x", "op": "Re')
content("an HTML page", lambda: b"<!doctype html><html>404</html>")
content("a zip archive", lambda: b"PK\x03\x04" + bytes(50))
content("a pickle", lambda: b"\x80\x04]\x94.")


def no_graphs() -> bytes:
    model = saved()
    del model.meta_graphs[:]
    return model.SerializeToString()


def same_tags() -> bytes:
    model = saved()
    model.meta_graphs.add().CopyFrom(meta())
    return model.SerializeToString()


def empty_graph() -> bytes:
    model = saved()
    model.meta_graphs[0].graph_def.ClearField("node")
    model.meta_graphs[0].signature_def.clear()
    return model.SerializeToString()


def damaged_earlier(folder: Path) -> list[str]:
    """An earlier version that begins as a MetaGraphDef and is cut off later."""
    now, before = folder / "model.pb", folder / "before.meta"
    data = meta().SerializeToString()
    now.write_bytes(data)
    before.write_bytes(data[: len(data) * 2 // 3])
    return [str(now), "--compatible-with", str(before)]


ROWS.append(Row("a damaged earlier version", "signatures/earlier-version", "", damaged_earlier))
content("a SavedModel of no graphs", no_graphs, "file/no-graph")
content("a SavedModel with the same tags twice", same_tags, "file/same-tags")
content("a graph without nodes", empty_graph, "file/empty")

__all__ = ["ROWS", "R", "Row"]
