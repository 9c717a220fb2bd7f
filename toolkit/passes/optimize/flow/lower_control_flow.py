"""Functional control flow as Switch, Merge, Enter, Exit and NextIteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from toolkit.errors import GraphmillError
from toolkit.graph import dtypes
from toolkit.graph.attrs import FuncRef
from toolkit.graph.bodies import FunctionBody, instantiate
from toolkit.graph.dtypes import DType
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.rewriting import Optimization, Rewriting

_BRANCHES = frozenset({"If", "StatelessIf", "Case", "StatelessCase"})
_LOOPS = frozenset({"While", "StatelessWhile"})


@dataclass(frozen=True)
class LowerControlFlow(Optimization):
    """Replace If, Case and While with the control flow of TensorFlow 1, as its runtime does before it runs them.

    Branches, conditions and bodies become calls, which `inline_functions` puts in place. The node itself stays and
    hands on the results. What a loop's body returns as it came is entered once and stays outside.

    Attributes:
        loops, branches: which of them are lowered.
    """

    name: ClassVar[str] = "lower_control_flow"
    undoes: ClassVar[tuple[str, ...]] = ("raise_control_flow",)

    loops: bool = True
    branches: bool = True

    def apply(self, graph: Graph) -> PassResult:
        """The report has `loops` and `branches`, how many were lowered."""
        work = Rewriting(graph, self.kept)
        loops = branches = 0
        for node in list(work.graph):
            if work.is_fed(node):
                continue
            if node.op in _LOOPS and self.loops and node.inputs:
                loops += _lower_loop(work, node)
            elif node.op in _BRANCHES and self.branches:
                branches += _lower_branches(work, node)
        return work.result({"loops": loops, "branches": branches})


class _Making:
    """New nodes under the name of the node that is lowered, on its device."""

    def __init__(self, work: Rewriting, node: Node):
        self.work, self.node = work, node
        self.is_stateful = not node.op.startswith("Stateless")

    def add(self, op: str, name: str, inputs: list[Output], waits: list[Node] | None = None, **attrs: Any) -> Node:
        return self.work.add(
            op, f"{self.node.name}/{name}", inputs, control_inputs=waits or (), attrs=attrs, device=self.node.device
        )

    def call(self, ref: FuncRef, name: str, inputs: list[Output], types: list[DType], waits: list[Node]) -> Node:
        op = "StatefulPartitionedCall" if self.is_stateful else "PartitionedCall"
        taken = [source.dtype.base for source in inputs]
        return self.add(op, name, inputs, waits, Tin=taken, Tout=types, f=ref)

    def truth(self, source: Output) -> Output:
        """A predicate as a boolean: it may be a number or a text, which is true where it is not 0 or empty."""
        if source.dtype.base is dtypes.bool_:
            return source
        return self.add("ToBool", "truth", [source], T=source.dtype.base).output()

    def finish(self, results: list[Output], waits: list[Node]) -> None:
        """Have the node hand on what it gave."""
        types = [source.dtype.base for source in results]
        if not results:
            self.work.turn(self.node, "NoOp", (), {}, waits)
        elif len(results) == 1:
            self.work.turn(self.node, "Identity", results, {"T": types[0]}, waits)
        else:
            self.work.turn(self.node, "IdentityN", results, {"T": types}, waits)


def _lower_branches(work: Rewriting, node: Node) -> bool:
    make = _Making(work, node)
    waits = list(node.control_inputs)
    try:
        types: list[DType] = node.attr("Tout")
        if node.op in ("If", "StatelessIf"):
            functions: list[FuncRef] = [node.attr("then_branch"), node.attr("else_branch")]
        else:
            functions = node.attr("branches")
        if any(source.dtype.is_ref for source in node.inputs) or not functions:
            return False
    except GraphmillError:
        return False
    predicate = node.inputs[0]
    if node.op in ("If", "StatelessIf"):
        decisions = [make.truth(predicate)]
    else:  # whatever is none of the first is the last
        decisions: list[Output] = []
        for position in range(len(functions) - 1):
            number = make.add("Const", f"case_{position}", [], waits_of(work, predicate), **_integer(position))
            equal = make.add("Equal", f"is_{position}", [predicate, number.output()], T=dtypes.int32)
            decisions.append(equal.output())
    rest = list(node.inputs[1:])
    ends: list[tuple[Node, Node]] = []
    after: Node | None = None  # runs where none of the branches so far was taken
    for position, function in enumerate(functions):
        taken, mine = rest, after
        if position < len(decisions):
            decision = decisions[position]
            start = waits if after is None else []
            # what the one before did not send here is dead, so that the decision itself need not be sent
            handed = decision if after is None else after.output()
            pivots = make.add("Switch", f"pivot_{position}", [handed, decision], start, T=dtypes.bool_)
            switches = [
                make.add("Switch", f"switch_{position}_{i}", [source, decision], start, T=source.dtype.base)
                for i, source in enumerate(rest)
            ]
            taken, rest = [each.output(1) for each in switches], [each.output(0) for each in switches]
            mine = make.add("Identity", f"taken_{position}", [pivots.output(1)], T=dtypes.bool_)
            after = make.add("Identity", f"other_{position}", [pivots.output(0)], T=dtypes.bool_)
        call = make.call(function, f"branch_{position}", taken, types, waits if mine is None else [mine])
        if mine is None:  # a Case of one branch
            make.finish([call.output(i) for i in range(len(types))], [call])
            return True
        ends.append((call, mine))
    merges = [_met(make, f"merge_{i}", [call.output(i) for call, _ in ends], dtype) for i, dtype in enumerate(types)]
    executed: list[Node] = []
    if make.is_stateful or not types:
        done = [
            make.add("Identity", f"done_{i}", [pivot.output()], [call], T=dtypes.bool_).output()
            for i, (call, pivot) in enumerate(ends)
        ]
        executed = [_met(make, "executed", done, dtypes.bool_).node]
    make.finish(merges, executed)
    return True


def _met(make: _Making, name: str, sides: list[Output], dtype: DType) -> Output:
    """What comes of branches each of which runs where none before it did: two meet at a time, as those of an If.

    The compiler knows Merges of two.
    """
    met = sides[-1]
    for position in range(len(sides) - 2, -1, -1):
        own = name if position == 0 else f"{name}_{position}"
        met = make.add("Merge", own, [sides[position], met], T=dtype, N=2).output()
    return met


def waits_of(work: Rewriting, source: Output) -> list[Node]:
    """What a new constant waits for, to be in the loop and branch of a tensor."""
    from toolkit.passes.optimize.flow.inline_functions import awaited

    return [] if work.is_plain(source.node) else [awaited(work, source)]


def _integer(number: int) -> dict[str, Any]:
    import numpy as np

    from toolkit.formats.arrays.tensor import from_array

    return {"dtype": dtypes.int32, "value": from_array(np.int32(number))}


def _lower_loop(work: Rewriting, node: Node) -> bool:
    make = _Making(work, node)
    try:
        condition: FuncRef = node.attr("cond")
        body: FuncRef = node.attr("body")
        same = _invariant(instantiate(node.graph.library, body))
        parallel = node.attr("parallel_iterations")
        if any(source.dtype.is_ref for source in node.inputs) or all(same):
            return False
    except GraphmillError:
        return False
    types = [source.dtype.base for source in node.inputs]
    waits = list(node.control_inputs)
    frame = node.name.encode()
    enters = [
        make.add(
            "Enter", f"enter_{i}", [source], waits,
            T=types[i], frame_name=frame, is_constant=same[i], parallel_iterations=parallel,
        )
        for i, source in enumerate(node.inputs)
    ]  # fmt: skip
    merges = {
        i: make.add("Merge", f"merge_{i}", [enter.output(), enter.output()], T=types[i], N=2)
        for i, enter in enumerate(enters)
        if not same[i]
    }
    states = [merges[i].output() if i in merges else enter.output() for i, enter in enumerate(enters)]
    asked = make.call(condition, "cond", states, _result_types(node, condition), [])
    decision = make.add("LoopCond", "loop_cond", [make.truth(asked.output())]).output()
    switches = {
        i: make.add("Switch", f"switch_{i}", [merge.output(), decision], T=types[i]) for i, merge in merges.items()
    }
    inside = [
        make.add("Identity", f"state_{i}", [switches[i].output(1)], T=types[i]).output()
        if i in switches
        else enter.output()
        for i, enter in enumerate(enters)
    ]
    pivot = inside[next(iter(switches))].node
    turned = make.call(body, "body", inside, types, [pivot])
    results: list[Output] = []
    for i, enter in enumerate(enters):
        if i not in merges:
            results.append(node.inputs[i])
            continue
        following = make.add("NextIteration", f"next_{i}", [turned.output(i)], T=types[i])
        work.set_inputs(merges[i], [enter.output(), following.output()])
        results.append(make.add("Exit", f"exit_{i}", [switches[i].output(0)], T=types[i]).output())
    ends = [result.node for i, result in enumerate(results) if i in merges]
    make.finish(results, ends[:1])
    return True


def _result_types(node: Node, ref: FuncRef) -> list[DType]:
    definition = node.graph.library.op_def(ref.name)
    assert definition is not None  # it has been built
    return definition.expand(definition.outputs, ref.attrs)


def _invariant(body: FunctionBody) -> list[bool]:
    """For each state of a loop whether the body returns it as it came."""
    return [
        result.inputs[0].node is arg and not result.control_inputs
        for arg, result in zip(body.args, body.results, strict=True)
    ]
