"""Rows about how nodes are joined, and about their ops."""

from __future__ import annotations

from typing import Any

from tests.passes.validate_corpus.rows import both, drop, inside, main, op, put, row, wire
from tests.passes.validate_graphs import (
    F,
    I,
    add,
    calls,
    loop,
    meta,
    net,
    node,
    tensor,
)
from toolkit.graph import dtypes

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
