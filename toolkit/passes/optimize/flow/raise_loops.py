"""Loops of Enter, Merge, Switch, NextIteration and Exit made While nodes: for `raise_control_flow`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from toolkit.graph.attrs import FuncRef
from toolkit.graph.check import colocations
from toolkit.graph.frames import StaticFrame, assign_frames
from toolkit.graph.graph import Graph
from toolkit.graph.node import CONTROL_FLOW_OPS, ENTER_OPS, Node, Output
from toolkit.passes.optimize.flow.outlining import is_stateful, outline
from toolkit.passes.optimize.rewriting import Rewriting

_STACKS = frozenset({"Stack", "StackV2", "StackPush", "StackPushV2", "StackPop", "StackPopV2"})


@dataclass(slots=True)
class _Loop:
    """A frame with its nodes.

    Attributes:
        states: for each loop variable its Enter, its Merge and its NextIteration.
        constants: Enters of what is the same in each iteration.
        given: what the variables and constants are called inside.
        ends: Exit -> index of the variable that leaves.
        decision: the LoopCond.
    """

    frame: StaticFrame
    nodes: list[Node]
    enters: list[Node]
    states: list[tuple[Node, Node, Node]] = field(default_factory=list[tuple[Node, Node, Node]])
    constants: list[Node] = field(default_factory=list[Node])
    given: dict[Output, int] = field(default_factory=dict[Output, int])
    ends: dict[Node, int] = field(default_factory=dict[Node, int])
    decision: Node | None = None


def raise_loops(work: Rewriting, refused: dict[str, str]) -> int:
    """Raise the loops that have no other control flow in them; returns how many.

    Args:
        refused: gets the names of frames that stay, with the reason.
    """
    graph = work.graph
    order = graph.topological_order()
    frames, every = assign_frames(graph, order)
    nodes: dict[str, list[Node]] = {frame.name: [] for frame in every}
    enters: dict[str, list[Node]] = {frame.name: [] for frame in every}
    for node in order:
        nodes[frames[node.id].name].append(node)
        if node.op in ENTER_OPS:
            enters[node.text("frame_name")].append(node)
    count = 0
    placed = placed_with(graph)
    for frame in every[1:]:
        loop = _Loop(frame, nodes[frame.name], enters[frame.name])
        reason = _understand(work, loop)
        if reason:
            refused[frame.name] = reason
            continue
        refused.pop(frame.name, None)
        _raise(work, loop)
        part_from((node for node in loop.nodes if node not in loop.ends), placed)
        count += 1
    return count


def _understand(work: Rewriting, loop: _Loop) -> str:
    """Find the parts of a loop; returns why it cannot be raised, or ""."""
    inside = set(loop.nodes)
    if any(node.op in _STACKS for node in loop.nodes):
        return "stacks of its gradients are filled or emptied in it"
    if any(node.op.startswith("Ref") and node.op in CONTROL_FLOW_OPS for node in (*loop.nodes, *loop.enters)) or any(
        source.dtype.is_ref for enter in loop.enters for source in enter.inputs
    ):
        return "a reference to a variable goes around in it"
    for node in loop.nodes:
        if node.op != "Exit" and not may_move(work, node):
            return f"'{node.name}' is asked for by name"
    decisions = [node for node in loop.nodes if node.op == "LoopCond"]
    if len(decisions) != 1:
        return f"it has {len(decisions)} conditions"
    loop.decision = decisions[0]
    own: set[Node] = {loop.decision}
    for enter in loop.enters:
        if enter.attr("is_constant"):
            loop.constants.append(enter)
            continue
        [merge, *others] = work.users(enter) or [enter]
        if others or merge.op != "Merge" or merge not in inside or len(merge.inputs) != 2:
            return f"'{enter.name}' leads to no Merge of its own"
        [following] = [source.node for source in merge.inputs if source.node is not enter] or [enter]
        if following.op != "NextIteration" or work.takers(merge.output(1)):
            return f"'{merge.name}' is no variable of a loop"
        loop.given[merge.output()] = len(loop.states)
        loop.states.append((enter, merge, following))
        own |= {merge, following}
    if not loop.states:
        return "it has no variable"
    for index, enter in enumerate(loop.constants):
        loop.given[enter.output()] = len(loop.states) + index
    for node in loop.nodes:
        if node.op == "Switch" and node.inputs[1].node is loop.decision:
            index = loop.given.get(node.inputs[0])
            if index is None or index >= len(loop.states):
                return f"'{node.name}' switches what is no variable of the loop"
            loop.given[node.output(1)] = index
            own.add(node)
            for exit_ in work.takers(node.output(0)):
                if exit_.op != "Exit":
                    return f"'{exit_.name}' runs once, when the loop ends"
                loop.ends[exit_] = index
    for node in loop.nodes:
        if node.op == "Exit" and node not in loop.ends:
            return f"'{node.name}' leaves it with what is no variable of it"
        if node.op in CONTROL_FLOW_OPS and node not in own and node.op != "Exit":
            return f"there is other control flow in it ('{node.name}')"
    return ""


def _raise(work: Rewriting, loop: _Loop) -> None:
    assert loop.decision is not None
    inside = set(loop.nodes)
    asked = _needed([loop.decision.inputs[0]], [], loop.given, inside)
    following = [after.inputs[0] for _, _, after in loop.states]
    late = [node for after in loop.states for node in after[2].control_inputs]
    effects = _effects(work, loop, asked)
    turned = _needed(following, [*late, *effects], loop.given, inside)
    inputs = [enter.inputs[0] for enter, _, _ in loop.states] + [enter.inputs[0] for enter in loop.constants]
    types = [source.dtype.base for source in inputs]
    name = loop.frame.name.removesuffix("/while_context")
    condition = outline(work, f"{_word(name)}_cond", asked, types, loop.given, [loop.decision.inputs[0]])
    results = [*following, *(enter.output() for enter in loop.constants)]
    running = [node for node in turned if node in effects or node in late or is_stateful(node)]
    body = outline(work, f"{_word(name)}_body", turned, types, loop.given, results, running)
    waits = dict.fromkeys(source for enter in loop.enters for source in enter.control_inputs)
    shapes = [work.shape(merge.output()) for _, merge, _ in loop.states]
    shapes += [work.shape(source) for source in inputs[len(shapes) :]]
    plain = not any(is_stateful(node) for node in (*asked, *turned))
    made = work.add(
        "StatelessWhile" if plain else "While", name, inputs, control_inputs=waits,
        attrs={
            "T": types, "cond": FuncRef(condition), "body": FuncRef(body), "output_shapes": shapes,
            "parallel_iterations": loop.frame.parallel_iterations, "_lower_using_switch_merge": True,
        },
    )  # fmt: skip
    for exit_, index in loop.ends.items():
        work.turn(exit_, "Identity", [made.output(index)], {"T": types[index]}, [])
    work.remove([*(node for node in loop.nodes if node not in loop.ends), *loop.enters])


def _needed(
    results: Iterable[Output], nodes: Iterable[Node], given: Mapping[Output, int], inside: set[Node]
) -> dict[Node, None]:
    """The nodes inside that some results and nodes need, up to what is given."""
    waiting = [source.node for source in results if source not in given] + list(nodes)
    found: dict[Node, None] = {}
    while waiting:
        node = waiting.pop()
        if node in found or node not in inside or node.op in CONTROL_FLOW_OPS:
            continue
        found[node] = None
        waiting += [source.node for source in node.inputs if source not in given]
        waiting += node.control_inputs
    return found


def _effects(work: Rewriting, loop: _Loop, asked: Mapping[Node, None]) -> list[Node]:
    """In a function, where everything with an effect runs: what nothing else needs."""
    return [node for node in loop.nodes if node.name in work.kept.effects and node not in asked]


def placed_with(graph: Graph) -> dict[str, set[Node]]:
    """For each node that others are placed with (`_class`) these others."""
    found: dict[str, set[Node]] = {}
    for node in graph:
        if "_class" in node.attrs:
            for name in colocations(node):
                found.setdefault(name, set()).add(node)
    return found


def may_move(work: Rewriting, node: Node) -> bool:
    """Whether a node may go into a function: nobody asks for it by name, unless for its effect."""
    return node.name not in work.kept.names or node.name in work.kept.effects


def part_from(nodes: Iterable[Node], placed: Mapping[str, set[Node]]) -> None:
    """Let go of nodes that are in functions now whoever is placed with them: nothing can be placed with those."""
    for node in nodes:
        for other in placed.get(node.name, ()):
            wanted: list[bytes] = other.attr_or("_class", [])
            others = [each for each in wanted if each != b"loc:@" + node.name.encode()]
            if others:
                other.attrs["_class"] = others
            else:
                other.attrs.pop("_class", None)


def _word(name: str) -> str:
    return name.replace("/", "_")
