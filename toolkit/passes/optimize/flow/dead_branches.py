"""Remove branches that are never taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from toolkit.errors import GraphmillError
from toolkit.graph import dtypes
from toolkit.graph.attrs import FuncRef
from toolkit.graph.graph import Graph
from toolkit.graph.node import MERGE_OPS, NEXT_ITERATION_OPS, Node, Output
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.arithmetic.constants import array_of
from toolkit.passes.optimize.rewriting import Optimization, Rewriting

_CALLS = {"If": "StatefulPartitionedCall", "StatelessIf": "PartitionedCall",
          "Case": "StatefulPartitionedCall", "StatelessCase": "PartitionedCall"}  # fmt: skip


@dataclass(frozen=True)
class DeadBranches(Optimization):
    """Take the branch that a constant predicate decides for.

    A Switch whose predicate is known hands on its input, what its other output leads to goes, up to the Merge, which
    becomes an Identity of what is left. An If or Case becomes a call of the function that is taken. What is fetched
    although it can never have a value keeps its branch.
    """

    name: ClassVar[str] = "dead_branches"

    def apply(self, graph: Graph) -> PassResult:
        """The report has `switches`, `merges`, `calls`, and `removed`, how many dead nodes."""
        work = Rewriting(graph, self.kept)
        taken = {node: side for node in work.graph if (side := _taken(work, node)) is not None}
        calls = sum(_call(work, node) for node in work.graph if node.op in _CALLS)
        switches, removed = 0, list[Node]()
        merges: dict[Node, int] = {}
        if taken:
            dead = _dead(work.graph, taken)
            merges = {
                node: position
                for node in work.graph
                if node.op == "Merge"
                and node not in dead
                and (position := _decided(work, node, dead, taken)) is not None
            }
            staying = _staying(work, dead, taken, merges)
            for node, position in merges.items():
                _settle(work, node, position)
            for node, side in taken.items():
                if node not in dead:
                    switches += _hand_on(work, node, side, staying)
            removed = [node for node in dead if node not in staying]
            work.remove(removed)
        counts = {"switches": switches, "merges": len(merges), "calls": calls, "removed": len(removed)}
        return work.result(counts)


def _taken(work: Rewriting, node: Node) -> int | None:
    """Which output of a Switch is alive, where that is known."""
    if node.op != "Switch" or work.is_fed(node) or node.output_types[0].is_ref:
        return None
    array = array_of(work, node.inputs[1])
    return None if array is None or array.size != 1 else int(bool(array.reshape(-1)[0]))


def _is_dead(source: Output, dead: set[Node], taken: dict[Node, int]) -> bool:
    return source.node in dead or (source.node in taken and source.index != taken[source.node])


def _dead(graph: Graph, taken: dict[Node, int]) -> set[Node]:
    """The nodes that never run: a data or control input of theirs never comes, or none of a Merge's."""
    dead: set[Node] = set()
    for node in graph.topological_order():
        if any(source in dead for source in node.control_inputs):
            dead.add(node)
        elif node.op in MERGE_OPS:
            first = [source for source in node.inputs if source.node.op not in NEXT_ITERATION_OPS]
            if first and all(_is_dead(source, dead, taken) for source in first):
                dead.add(node)
        elif any(_is_dead(source, dead, taken) for source in node.inputs):
            dead.add(node)
    return dead


def _decided(work: Rewriting, node: Node, dead: set[Node], taken: dict[Node, int]) -> int | None:
    """Which of its inputs a Merge always gets; None where that is open."""
    alive = [position for position, source in enumerate(node.inputs) if not _is_dead(source, dead, taken)]
    if len(alive) != 1 or len(node.inputs) == 1 or work.is_fed(node) or work.is_asked_for(node.output(1)):
        return None
    return None if node.inputs[alive[0]].node.op in NEXT_ITERATION_OPS else alive[0]


def _staying(work: Rewriting, dead: set[Node], taken: dict[Node, int], decided: dict[Node, int]) -> set[Node]:
    """What has to stay of dead branches, with all that it is made of: what somebody asks for, which fails as it did,
    and what leads to a Merge that has several inputs left."""
    stack = [node for node in dead if work.is_kept(node)]
    for node in work.graph:
        if node.op in MERGE_OPS and node not in dead and node not in decided:
            stack += [source.node for source in node.inputs if _is_dead(source, dead, taken)]
    staying = set(stack)
    while stack:
        node = stack.pop()
        for source in [src for src, _ in node.inputs] + node.control_inputs:
            if source not in staying:
                staying.add(source)
                stack.append(source)
    return staying


def _settle(work: Rewriting, node: Node, position: int) -> None:
    """Make an Identity of a Merge that always gets the same input."""
    index = node.output(1)
    if work.takers(index):
        import numpy as np

        from toolkit.formats.arrays.tensor import from_array

        attrs = {"dtype": dtypes.int32, "value": from_array(np.int32(position))}
        made = work.add("Const", f"{node.name}/index", control_inputs=[node], attrs=attrs, device=node.device)
        work.redirect(index, made.output())
    work.turn_identity(node, node.inputs[position])


def _hand_on(work: Rewriting, node: Node, side: int, staying: set[Node]) -> bool:
    """Have those behind a Switch take its input: from an Identity in its place, or beside it where it stays."""
    data, predicate = node.inputs
    waits = [*node.control_inputs, *predicate.node.control_inputs]
    alive = node.output(side)
    if node in staying or work.is_kept(node):
        users = [user for user in work.takers(alive) if user not in staying]
        if work.is_kept(node) or not users:
            return False
        made = work.add(
            "Identity", f"{node.name}/taken", [data],
            control_inputs=waits, attrs={"T": data.dtype.base}, device=node.device,
        )  # fmt: skip
        for user in users:
            work.set_inputs(user, [made.output() if source == alive else source for source in user.inputs])
        return True
    if side:  # what takes the other output is dead and goes
        work.redirect(alive, node.output(0))
    work.turn_identity(node, data, waits)
    return True


def _call(work: Rewriting, node: Node) -> bool:
    """Make a call of an If or Case whose branch is known."""
    if work.is_fed(node):
        return False
    array = array_of(work, node.inputs[0])
    if array is None or array.size != 1 or array.dtype.kind not in "biuf":
        return False
    value: Any = array.reshape(-1)[0]
    try:
        if node.op in ("If", "StatelessIf"):
            branch: FuncRef = node.attr("then_branch" if value else "else_branch")
        else:
            branches: list[FuncRef] = node.attr("branches")
            branch = branches[int(value) if 0 <= value < len(branches) else -1]
        attrs = {"Tin": node.attr("Tin"), "Tout": node.attr("Tout"), "f": branch}
    except GraphmillError:
        return False
    work.turn(
        node, _CALLS[node.op], node.inputs[1:], attrs, [*node.control_inputs, *node.inputs[0].node.control_inputs]
    )
    return True
