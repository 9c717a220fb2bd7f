"""Branches of Switch and Merge made If nodes: for `raise_control_flow`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from toolkit.graph import dtypes
from toolkit.graph.attrs import FuncRef
from toolkit.graph.frames import assign_frames
from toolkit.graph.node import CONTROL_FLOW_OPS, MERGE_OPS, NEXT_ITERATION_OPS, SWITCH_OPS, Node, Output
from toolkit.passes.optimize.flow.outlining import is_stateful, outline
from toolkit.passes.optimize.flow.raise_loops import may_move, part_from, placed_with
from toolkit.passes.optimize.rewriting import Rewriting

#: when a node runs: predicates with the side that is taken, the outermost first
Context = tuple[tuple[Output, int], ...]
#: a node, inside of what it belongs to (0) or at the edge of what it begins or ends (1)
_Place = tuple[Node, int]


@dataclass(slots=True)
class _Branches:
    """What one predicate decides: the Switches in front, the nodes of both sides, the Merges behind."""

    predicate: Output
    switches: list[Node] = field(default_factory=list[Node])
    merges: list[Node] = field(default_factory=list[Node])
    sides: tuple[list[Node], list[Node]] = field(default_factory=lambda: ([], []))
    reason: str = ""

    def nodes(self) -> Iterator[Node]:
        yield from (*self.switches, *self.sides[0], *self.sides[1], *self.merges)


def raise_branches(work: Rewriting, refused: dict[str, str]) -> int:
    """Raise the branches that have no other control flow in them; returns how many.

    Args:
        refused: gets the names of Merges whose branches stay, with the reason.
    """
    found = _Contexts(work).branches()
    _refuse_cycles(work, found)
    count = 0
    placed = placed_with(work.graph)
    for each in found:
        reason = each.reason or _why_not(work, each)
        for merge in each.merges:
            refused.pop(merge.name, None)
        if reason:
            name = (each.merges or each.switches or [*each.nodes()])[0].name
            refused[name] = reason
            continue
        _raise(work, each)
        part_from((*each.switches, *each.sides[0], *each.sides[1]), placed)
        count += 1
    return count


class _Contexts:
    """When each node of a graph runs."""

    def __init__(self, work: Rewriting):
        self.work = work
        self.order = work.graph.topological_order()
        self.of: dict[Node, Context] = {}
        self.broken: dict[Output, str] = {}
        self.closing: dict[Node, Context] = {}
        self._parent: dict[_Place, _Place] = {}
        frames, _ = assign_frames(work.graph, self.order)
        self.in_loop = {node for node in self.order if frames[node.id].name}
        for node in self.order:
            self.of[node] = self._context(node)

    def branches(self) -> list[_Branches]:
        """What belongs together, as far as it has no other control flow in it."""
        deeper: list[_Place] = []
        for node in self.order:
            for source in node.inputs:
                self._join(source, node, deeper)
            for source in node.control_inputs:
                if self.of.get(source):
                    self._join_places((source, 0), self.of[source], node, False, deeper)
        groups: dict[_Place, _Branches] = {}
        nested = {self._root(place) for place in deeper}
        for node in self.order:
            context = self.of[node]
            if context and (node, 0) in self._parent:
                root = self._root((node, 0))
                if node.op in CONTROL_FLOW_OPS:
                    nested.add(root)
                group = groups.setdefault(root, _Branches(context[-1][0]))
                group.sides[context[-1][1]].append(node)
            if (node, 1) in self._parent:
                root = self._root((node, 1))
                if node.op in SWITCH_OPS:
                    groups.setdefault(root, _Branches(self._predicate(node))).switches.append(node)
                else:
                    group = groups.setdefault(root, _Branches(self.closing[node][-1][0]))
                    group.merges.append(node)
        for root, group in groups.items():
            if group.predicate in self.broken:
                group.reason = self.broken[group.predicate]
            if root in nested:
                group.reason = group.reason or "there is control flow in it that stays"
        return list(groups.values())

    def _join(self, source: Output, node: Node, deeper: list[_Place]) -> None:
        start = source.node
        context = self._output(source)
        if not context or start not in self.of:
            return
        place = (start, 1) if self._is_branching(start) else (start, 0)
        self._join_places(place, context, node, node in self.closing, deeper)

    def _join_places(self, place: _Place, context: Context, node: Node, closes: bool, deeper: list[_Place]) -> None:
        self._parent.setdefault(place, place)
        if closes:
            self._unite(place, (node, 1))
        elif self.of[node] == context:
            self._unite(place, (node, 0))
        else:
            deeper.append(place)

    def _context(self, node: Node) -> Context:
        if node.op in MERGE_OPS and node.inputs and not any(n.op in NEXT_ITERATION_OPS for n, _ in node.inputs):
            known = [self._output(source) for source in node.inputs]
            ends = [each[-1] for each in known if each]
            is_pair = len(known) == len(ends) == 2 and known[0][:-1] == known[1][:-1] and ends[0][0] == ends[1][0]
            if is_pair and {ends[0][1], ends[1][1]} == {0, 1}:
                self.closing[node] = known[0]
                return self._longest(node, [known[0][:-1], *map(self._control, node.control_inputs)])
            for each in known:
                for predicate, _ in each:
                    self.broken[predicate] = f"'{node.name}' joins what belongs to different branches"
            return ()
        data = [self._output(source) for source in node.inputs if source.node in self.of]
        return self._longest(node, [*data, *(self._control(each) for each in node.control_inputs)])

    def _longest(self, node: Node, known: list[Context]) -> Context:
        longest = max(known, key=len, default=())
        for each in known:
            if longest[: len(each)] != each:
                for predicate, _ in (*each, *longest):
                    self.broken[predicate] = f"'{node.name}' takes what belongs to different branches"
        return longest

    def _control(self, node: Node) -> Context:
        return self.of.get(node, ())

    def _output(self, source: Output) -> Context:
        context = self.of.get(source.node, ())
        if self._is_branching(source.node):
            return (*context, (self._predicate(source.node), source.index))
        return context

    def _is_branching(self, node: Node) -> bool:
        return node.op in SWITCH_OPS and node.inputs[1].node.op != "LoopCond"

    def _predicate(self, switch: Node) -> Output:
        source = switch.inputs[1]
        while source.node.op == "Identity" and not self.work.is_fed(source.node):
            source = source.node.inputs[0]
        return source

    def _root(self, place: _Place) -> _Place:
        parent = self._parent.setdefault(place, place)
        while parent != place:
            self._parent[place] = self._parent[parent]
            place, parent = parent, self._parent[parent]
        return place

    def _unite(self, a: _Place, b: _Place) -> None:
        self._parent[self._root(a)] = self._root(b)


def _refuse_cycles(work: Rewriting, found: list[_Branches]) -> None:
    """Give a reason to branches that would need what comes out of them: a gradient of what is inside, for one."""
    whole: dict[Node, int] = {}
    for number, each in enumerate(found):
        if not each.reason:
            for node in each.nodes():
                whole[node] = number
    users: dict[int, list[int]] = {}
    counts: dict[int, int] = {}

    def vertex(node: Node) -> int:
        return whole.get(node, len(found) + node.id)

    for node in work.graph:
        mine = vertex(node)
        counts.setdefault(mine, 0)
        for source in [source for source, _ in node.inputs] + node.control_inputs:
            theirs = vertex(source)
            if theirs != mine and source.op not in NEXT_ITERATION_OPS:
                users.setdefault(theirs, []).append(mine)
                counts[mine] = counts.get(mine, 0) + 1
    ready = [each for each, count in counts.items() if not count]
    while ready:
        each = ready.pop()
        del counts[each]
        for user in users.get(each, ()):
            counts[user] -= 1
            if not counts[user]:
                ready.append(user)
    for left in counts:
        if left < len(found):
            found[left].reason = "something outside, a gradient perhaps, lies between two parts of it"


def _why_not(work: Rewriting, each: _Branches) -> str:
    if not each.merges:
        return "nothing comes out of it"
    for node in each.nodes():
        if any(dtype.is_ref for dtype in node.output_types) and node.op in CONTROL_FLOW_OPS:
            return "a reference to a variable goes through it"
    for node in (*each.switches, *each.sides[0], *each.sides[1]):
        if not may_move(work, node):
            return f"'{node.name}' is asked for by name"
    for merge in each.merges:
        if work.is_fed(merge) or work.takers(merge.output(1)) or work.is_asked_for(merge.output(1)):
            return f"it matters at '{merge.name}' which side was taken"
    return ""


def _raise(work: Rewriting, each: _Branches) -> None:
    inside = {node for side in each.sides for node in side}
    edge = set(each.switches)
    args: dict[Output, int] = {}
    given: tuple[dict[Output, int], dict[Output, int]] = ({}, {})
    waits: dict[Node, None] = {}
    for switch in each.switches:
        index = args.setdefault(switch.inputs[0], len(args))
        for side in (0, 1):
            given[side][switch.output(side)] = index
        waits.update(dict.fromkeys(switch.control_inputs))
    for side, nodes in enumerate(each.sides):
        for node in nodes:
            for source in node.inputs:
                if source.node not in inside and source.node not in edge:
                    given[side][source] = args.setdefault(source, len(args))
            outside = (source for source in node.control_inputs if source not in inside and source not in edge)
            waits.update(dict.fromkeys(outside))
    types = [source.dtype.base for source in args]
    merges = each.merges
    name = merges[0].name
    functions: list[str] = []
    for side, nodes in enumerate(each.sides):
        results = [_side(merge, side, given[side], nodes) for merge in merges]
        running = [node for node in nodes if is_stateful(node)]
        word = f"{name.replace('/', '_')}_{('false', 'true')[side]}"
        functions.append(outline(work, word, nodes, types, given[side], results, running))
    predicate = each.switches[0].inputs[1] if each.switches else each.predicate
    attrs = {
        "Tcond": dtypes.bool_, "Tin": types, "Tout": [merge.output().dtype.base for merge in merges],
        "then_branch": FuncRef(functions[1]), "else_branch": FuncRef(functions[0]),
        "output_shapes": [work.shape(merge.output()) for merge in merges], "_lower_using_switch_merge": True,
    }  # fmt: skip
    op = "If" if any(is_stateful(node) for node in inside) else "StatelessIf"
    made = work.add(op, f"{name}/if", [predicate, *args], control_inputs=waits, attrs=attrs, device=merges[0].device)
    for index, merge in enumerate(merges):
        work.turn(merge, "Identity", [made.output(index)], {"T": merge.output().dtype.base})
    work.remove([*each.switches, *inside])


def _side(merge: Node, side: int, given: dict[Output, int], nodes: list[Node]) -> Output:
    """What a Merge takes from one side."""
    first, second = merge.inputs
    is_first = first in given or first.node in set(nodes)
    return first if is_first else second
