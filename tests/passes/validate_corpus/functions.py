"""Rows about functions and control flow."""

from __future__ import annotations

from typing import Any

from tests.passes.validate_corpus.rows import both, inside, put, row, wire
from tests.passes.validate_graphs import (
    B,
    F,
    I,
    add,
    calls,
    function,
    loop,
    net,
    node,
)
from toolkit.graph.attrs import FuncRef

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
