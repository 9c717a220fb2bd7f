"""Which nodes of two graphs are the same: by name, then by structure.

1. Nodes of one name and one op.
2. Nodes left over whose whole past (ops, attributes, edges) is the same and occurs once in each graph.
3. As often as it finds something: nodes of one op whose inputs are matched to each other; nodes of one op that feed
   matched nodes at the same inputs; nodes whose names follow from the renaming of the scopes matched so far.
4. Nodes of one name whose op changed.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from toolkit.errors import GraphError
from toolkit.graph.graph import Graph
from toolkit.graph.node import NEXT_ITERATION_OPS, Node

#: attributes that name other nodes, or that are remarks
NAMING_ATTRS = frozenset(
    {"_class", "shared_name", "_output_shapes", "_gradient_op_type", "config_proto", "executor_type"}
)


def match_nodes(old: Graph, new: Graph) -> dict[Node, Node]:
    """The nodes of `old` that are in `new`, with their counterparts there."""
    return _Matching(old, new).run()


class _Matching:
    def __init__(self, old: Graph, new: Graph):
        self.old = old
        self.new = new
        self.to_new: dict[Node, Node] = {}
        self.taken: set[Node] = set()

    def run(self) -> dict[Node, Node]:
        for node in self.old.nodes:
            other = self.new.get(node.name)
            if other is not None and other.op == node.op:
                self._pair(node, other)
        if self._open():
            self._by_past()
            while self._open() and (self._by_inputs() + self._by_consumers() or self._by_scope()):
                pass
            for node in self.old.nodes:
                other = self.new.get(node.name)
                if node not in self.to_new and other is not None and other not in self.taken:
                    self._pair(node, other)
        return self.to_new

    def _pair(self, a: Node, b: Node) -> None:
        self.to_new[a] = b
        self.taken.add(b)

    def _open(self) -> bool:
        return len(self.to_new) < len(self.old.nodes) and len(self.taken) < len(self.new.nodes)

    def _left(self) -> list[Node]:
        return [node for node in self.old.nodes if node not in self.to_new]

    def _unique(self, ours: Mapping[object, list[Node]], theirs: Mapping[object, list[Node]]) -> int:
        """Pair what has the same key, where one node on each side has it."""
        count = 0
        for key, nodes in ours.items():
            others = theirs.get(key, [])
            if len(nodes) == len(others) == 1 and nodes[0] not in self.to_new and others[0] not in self.taken:
                self._pair(nodes[0], others[0])
                count += 1
        return count

    def _by_past(self) -> int:
        ours: dict[object, list[Node]] = defaultdict(list)
        theirs: dict[object, list[Node]] = defaultdict(list)
        mine, other = pasts(self.old), pasts(self.new)
        for node in self._left():
            ours[mine.get(node)].append(node)
        for node in self.new.nodes:
            if node not in self.taken:
                theirs[other.get(node)].append(node)
        ours.pop(None, None)
        return self._unique(ours, theirs)

    def _by_inputs(self) -> int:
        """One pass in topological order, so that a match helps those after it."""
        theirs: dict[object, list[Node]] = defaultdict(list)
        for node in self.new.nodes:
            if node not in self.taken and node.inputs:
                theirs[self._key(node, node.inputs)].append(node)
        count = 0
        rivals: Counter[object] = Counter()
        todo: list[tuple[Node, object]] = []
        for node in _order(self.old):
            if node in self.to_new or not node.inputs:
                continue
            if all(src in self.to_new for src, _ in node.inputs):
                key = self._key(node, [(self.to_new[src], index) for src, index in node.inputs])
                rivals[key] += 1
                todo.append((node, key))
                others = [other for other in theirs.get(key, ()) if other not in self.taken]
                if len(others) == 1 and rivals[key] == 1 and not self._has_rival(node):
                    self._pair(node, others[0])
                    count += 1
        return count

    def _has_rival(self, node: Node) -> bool:
        """Whether another open node of the old graph reads the same inputs with the same op."""
        first = node.inputs[0].node
        return any(
            other is not node and other not in self.to_new and other.op == node.op and other.inputs == node.inputs
            for other in self._readers(first)
        )

    def _readers(self, node: Node) -> Iterable[Node]:
        if not hasattr(self, "_old_readers"):
            self._old_readers = _readers(self.old)
        return self._old_readers[node.id]

    def _key(self, node: Node, inputs: Iterable[tuple[Node, int]]) -> object:
        return (node.op, tuple((src.id, index) for src, index in inputs))

    def _by_consumers(self) -> int:
        ours: dict[object, list[Node]] = defaultdict(list)
        theirs: dict[object, list[Node]] = defaultdict(list)
        readers: dict[Node, list[object]] = defaultdict(list)
        for node, other in self.to_new.items():
            for position, (src, index) in enumerate(node.inputs):
                if src not in self.to_new:
                    readers[src].append((other.id, position, index))
        for src, found in readers.items():
            ours[(src.op, frozenset(found))].append(src)
        readers = defaultdict(list)
        for other in self.taken:
            for position, (src, index) in enumerate(other.inputs):
                if src not in self.taken:
                    readers[src].append((other.id, position, index))
        for src, found in readers.items():
            theirs[(src.op, frozenset(found))].append(src)
        return self._unique(ours, theirs)

    def _by_scope(self) -> int:
        """Follow scopes that were renamed as a whole."""
        votes: dict[str, Counter[str]] = defaultdict(Counter)
        for node, other in self.to_new.items():
            if node.name != other.name:
                votes[node.name.rpartition("/")[0]][other.name.rpartition("/")[0]] += 1
        count = 0
        for node in self._left():
            scope, slash, last = node.name.rpartition("/")
            rest = last
            while scope or slash:
                if scope in votes:
                    target = votes[scope].most_common(1)[0][0]
                    other = self.new.get(f"{target}/{rest}" if target else rest)
                    if other is not None and other.op == node.op and other not in self.taken:
                        self._pair(node, other)
                        count += 1
                    break
                scope, slash, part = scope.rpartition("/")
                rest = f"{part}/{rest}"
        return count


def _order(graph: Graph) -> list[Node]:
    try:
        return graph.topological_order()
    except GraphError:
        return graph.nodes


def _readers(graph: Graph) -> list[list[Node]]:
    out: list[list[Node]] = [[] for _ in graph.nodes]
    for node in graph.nodes:
        for src, _ in node.inputs:
            out[src.id].append(node)
    return out


def pasts(graph: Graph) -> dict[Node, bytes]:
    """A digest of everything each node is computed from: ops, attributes and edges, not names.

    Back edges of loops count as such, wherever they come from. Nodes on other cycles have no digest.
    """
    out: dict[Node, bytes] = {}
    for node in _order(graph):
        digest = hashlib.blake2b(node.op.encode(), digest_size=16)
        for key in sorted(node.attrs):
            if key not in NAMING_ATTRS:
                digest.update(b"\0" + key.encode() + b"\0")
                digest.update(node.attrs.proto(key).SerializeToString(deterministic=True))
        for src, index in node.inputs:
            past = b"back" if src.op in NEXT_ITERATION_OPS else out.get(src)
            if past is None:
                break
            digest.update(past + index.to_bytes(8, "little", signed=True))
        else:
            controls = [out.get(src) for src in node.control_inputs if src.op not in NEXT_ITERATION_OPS]
            if None in controls:
                continue
            for past in sorted(c for c in controls if c is not None):
                digest.update(b"^" + past)
            out[node] = digest.digest()
    return out


def stem(name: str) -> str:
    """A function's name without the number that TensorFlow gives it anew with every export."""
    head, _, tail = name.rpartition("_")
    return head if head and tail.isdigit() else name


def match_functions(old: Iterable[str], new: Iterable[str]) -> dict[str, str]:
    """Functions of the old library with their counterparts: of the same name, else of the same stem in order."""
    old, new = list(old), list(new)
    out = {name: name for name in old if name in set(new)}
    left: dict[str, list[str]] = defaultdict(list)
    for name in new:
        if name not in out:
            left[stem(name)].append(name)
    for name in old:
        if name not in out and left[stem(name)]:
            out[name] = left[stem(name)].pop(0)
    return out
