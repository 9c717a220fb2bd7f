"""What runs once in each iteration of a loop, and what waits for no more than that.

Inlined bodies of loops begin and end with nodes that do nothing and wait for all that comes in: what they say, that the
iteration is there and that its body runs, their readers mostly know from their own inputs.
"""

from __future__ import annotations

from enum import IntEnum

from toolkit.graph.graph import Graph
from toolkit.graph.node import ENTER_OPS, MERGE_OPS, NEXT_ITERATION_OPS, SWITCH_OPS, Node, Output

#: nodes looked at for one node
_MOST_STEPS = 500


class Part(IntEnum):
    """Of which iterations something is: of all, or of those that the condition lets into the body."""

    ITERATION = 1
    BODY = 2


class Iterations:
    """The loops of a graph, by their frames, and which nodes say that an iteration runs.

    Args:
        fed: nodes whose outputs may be given from outside, of which nothing is known.
    """

    def __init__(self, graph: Graph, fed: frozenset[str]):
        self._fed = fed
        self._frames: dict[Node, str] = {}
        for node in graph:
            if node.op in MERGE_OPS:
                frames = {source.attr("frame_name") for source, _ in node.inputs if source.op in ENTER_OPS}
                if len(frames) == 1:
                    self._frames[node] = frames.pop()
        for node in graph:
            if node.op in SWITCH_OPS and node.inputs[1].node.op == "LoopCond":
                frame = self._frames.get(node.inputs[0].node)
                if frame is not None:
                    self._frames[node] = frame
            elif node.op in ENTER_OPS and node.attr("is_constant"):
                self._frames[node] = node.attr("frame_name")
        self._marks: dict[Node, tuple[str, Part] | None] = {}

    @property
    def any(self) -> bool:
        return bool(self._frames)

    def mark(self, node: Node) -> tuple[str, Part] | None:
        """The frame whose iterations a node says to run by having run itself, where that is all that it says."""
        if node not in self._marks:
            self._marks[node] = None  # of a circle nothing is said
            self._marks[node] = self._mark(node)
        return self._marks[node]

    def _mark(self, node: Node) -> tuple[str, Part] | None:
        if node.name in self._fed:
            return None
        if node in self._frames:
            return (self._frames[node], Part.ITERATION) if not node.control_inputs else None
        if node.op == "Identity":
            found = {self._of(node.inputs[0]), *map(self.mark, node.control_inputs)}
        elif node.op == "NoOp" and node.control_inputs:
            found = set(map(self.mark, node.control_inputs))
        else:
            return None
        if None in found:
            return None
        known = [each for each in found if each is not None]
        frames = {frame for frame, _ in known}
        return (frames.pop(), max(part for _, part in known)) if len(frames) == 1 else None

    def _of(self, output: Output) -> tuple[str, Part] | None:
        """What it says that an output is there."""
        node, index = output
        if node.op in SWITCH_OPS and node in self._frames and node.name not in self._fed:
            return (self._frames[node], Part.BODY) if index == 1 else None
        return self.mark(node)

    def says_nothing(self, edge: Node, user: Node, others: list[Node]) -> bool:
        """Whether `user` runs in the same iterations when it no longer waits for `edge`.

        Args:
            others: the control inputs that it keeps.
        """
        wanted = self.mark(edge)
        if wanted is None:
            return False
        seen: set[Node] = set()
        todo = [*user.inputs, *(Output(node, -1) for node in others)]
        while todo and len(seen) < _MOST_STEPS:
            output = todo.pop()
            node = output.node
            found = self.mark(node) if output.index < 0 else self._of(output)
            if found is not None and found[0] == wanted[0] and found[1] >= wanted[1]:
                return True
            if node in seen or node.name in self._fed or node.op in MERGE_OPS or node.op in NEXT_ITERATION_OPS:
                continue
            if node.op in ENTER_OPS or node.op in ("Exit", "RefExit") or node.op in SWITCH_OPS:
                continue
            seen.add(node)
            todo += [*node.inputs, *(Output(source, -1) for source in node.control_inputs)]
        return False
