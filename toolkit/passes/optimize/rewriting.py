"""What optimizations are made of: a pass with what has to stay, and a graph that is being rewritten."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from schemas.tensor_pb2 import TensorProto
from toolkit.graph import dtypes
from toolkit.graph.check import colocations
from toolkit.graph.graph import Graph
from toolkit.graph.infer import HandleData, ShapeMap
from toolkit.graph.node import CONTROL_FLOW_OPS, SWITCH_OPS, Node, Output
from toolkit.graph.shape import UNKNOWN, Shape
from toolkit.graph.shapes.calls import Calls
from toolkit.graph.shapes.nested import infer_nested
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.kept import NOTHING, Kept

#: attributes that say something about a node whatever its op is
_COMMON = ("_class", "_xla_compile_id", "_tpu_replicate", "_noinline")
#: ops that have state, and whose running or not running makes no difference to anybody else
HARMLESS = frozenset({
    "Placeholder", "PlaceholderV2", "PlaceholderWithDefault", "_Arg", "VarHandleOp", "ReadVariableOp", "Variable",
    "VariableV2", "VarIsInitializedOp", "IsVariableInitialized",
})  # fmt: skip
#: ops whose static shapes hold for what is fed in their place
_GIVEN = frozenset({"Placeholder", "PlaceholderV2", "PlaceholderWithDefault", "_Arg"})
#: ops that fail where something is wrong with the tensor that they hand on
_CHECKS = frozenset({"CheckNumerics", "CheckNumericsV2", "EnsureShape"})


def is_pure(node: Node) -> bool:
    """Whether a node's outputs follow from its inputs and attributes, and computing them has no other effect.

    Calls count as impure, for what their functions do is not looked at here.
    """
    definition = node.graph.find_op_def(node.op)
    if definition is None or definition.is_stateful or node.op in _CHECKS or node.op in node.graph.library:
        return False
    if node.op in CONTROL_FLOW_OPS or node.op in HARMLESS or node.op in ("NoOp", "ControlTrigger", "_Retval"):
        return False
    if any(attr.type in ("func", "list(func)") for attr in definition.attrs.values()):
        return False
    return not any(arg.is_ref for arg in (*definition.inputs, *definition.outputs))


def _takes_state(node: Node) -> bool:
    """Whether a reference or the handle of a resource comes in."""
    return any(source.dtype.is_ref or source.dtype is dtypes.resource for source in node.inputs)


def _readers(graph: Graph) -> set[str]:
    """Nodes whose outputs follow from what a variable or another resource held."""
    reading: set[str] = set()
    for node in graph.topological_order():
        sources = [*(source for source, _ in node.inputs), *node.control_inputs]
        if _takes_state(node) or any(source.name in reading for source in sources):
            reading.add(node.name)
    return reading


def _leading_to_writes(graph: Graph) -> set[str]:
    """Nodes that may write what others read, and all that these wait for, around loops too."""
    found = [node for node in graph if _may_write(node)]
    leading = {node.name for node in found}
    while found:
        node = found.pop()
        for source in [*(source for source, _ in node.inputs), *node.control_inputs]:
            if source.name not in leading:
                leading.add(source.name)
                found.append(source)
    return leading


def _may_write(node: Node) -> bool:
    if node.op in node.graph.library:
        return True
    definition = node.graph.find_op_def(node.op)
    if definition is None or any(attr.type in ("func", "list(func)") for attr in definition.attrs.values()):
        return True
    return _takes_state(node) and node.op not in HARMLESS and not is_pure(node) and node.op not in CONTROL_FLOW_OPS


@dataclass(frozen=True)
class Optimization:
    """The base of the passes here; `apply` is as in `toolkit.passes.base`.

    Its fields are its options, but for `kept`, which whoever runs it fills in.

    Attributes:
        in_functions: whether it is sound in the body of a function too, where `_Arg` and `_Retval` nodes stand for
            arguments and results.
        once: whether it runs in the first round alone: of its own result it would make something else again.
        undoes: passes whose results it turns back. Where both are asked for, both run in the first round alone.
        kept: what has to stay.
        ignore_errors: whether a graph that the pass refuses stays as it is.
    """

    name: ClassVar[str]
    in_functions: ClassVar[bool] = True
    once: ClassVar[bool] = False
    undoes: ClassVar[tuple[str, ...]] = ()

    kept: Kept = field(default=NOTHING, kw_only=True, repr=False, metadata={"option": False})
    ignore_errors: bool = field(default=False, kw_only=True, repr=False, metadata={"option": False})

    def apply(self, graph: Graph) -> PassResult:
        raise NotImplementedError

    def in_bodies(self, graph: Graph) -> Optimization:
        """The pass as it is applied to the functions of a graph: with options for one of many."""
        return self


class Rewriting:
    """A copy of a graph that is changed, with who uses what kept up to date.

    Nodes that lose their last user go when `result` is called, and with them what only they used; so nobody may keep
    the graph in mind by positions. Nodes that nothing used to begin with stay: another pass decides about them.

    Attributes:
        graph: the copy.
        kept: what has to stay.
        changes: how many changes there were.
    """

    def __init__(self, graph: Graph, kept: Kept = NOTHING):
        self.original = graph
        self.graph = graph.copy()
        self.kept = kept
        self.changes = 0
        self._users: dict[Node, dict[Node, int]] = {node: {} for node in self.graph}
        self._placed: set[str] = set()
        self._lost: dict[Node, None] = {}
        self._plain: set[str] | None = None
        self._order: tuple[set[str], set[str]] | None = None
        self._shapes: ShapeMap | None = None
        for node in self.graph:
            for source, _ in node.inputs:
                self._use(source, node)
            for source in node.control_inputs:
                self._use(source, node)
            if "_class" in node.attrs:
                self._placed.update(colocations(node))

    # -- looking -----------------------------------------------------------------------------------------

    def is_kept(self, node: Node) -> bool:
        """Whether the node must stay under its name: somebody asks for it, or is placed with it."""
        return node.name in self.kept.names or node.name in self._placed

    def is_fed(self, node: Node) -> bool:
        """Whether its outputs may be given from outside, so that it says nothing of them."""
        return node.name in self.kept.fed

    def users(self, node: Node) -> list[Node]:
        """The nodes that take an output of this one or wait for it."""
        return list(self._users[node])

    def takers(self, output: Output) -> list[Node]:
        """The nodes that take this output."""
        return [user for user in self._users[output.node] if output in user.inputs]

    def waiting(self, node: Node) -> list[Node]:
        """The nodes that wait for this one (control edges)."""
        return [user for user in self._users[node] if node in user.control_inputs]

    def is_only_taken_by(self, output: Output, user: Node) -> bool:
        """Whether `user` is alone in using this output's node, which nobody asks for."""
        node = output.node
        users = self._users[node]  # of a constant these may be all nodes, so they are not gone through
        return len(users) == 1 and user in users and not self.is_kept(node)

    def is_plain(self, node: Node) -> bool:
        """Whether a node always runs, and nobody would miss it if it did not: neither it nor anything that it needs is
        in a loop or a branch, has an effect or looks for mistakes.

        As the graph was in the beginning; nothing is known of nodes that came since.
        """
        if self._plain is None:
            plain = bytearray(len(self.original))
            order = self.original.topological_order()
            for each in order:
                if each.op in HARMLESS or is_pure(each):
                    sources = [source for source, _ in each.inputs] + each.control_inputs
                    plain[each.id] = all(plain[source.id] for source in sources)
            self._plain = {each.name for each in order if plain[each.id]}
        return node.name in self._plain

    def is_idle_wait(self, source: Node, user: Node) -> bool:
        """Whether a node may run before another one that it has waited for so far: that one is plain, and has read
        nothing that the node, or what comes behind it, may write.

        As the graph was in the beginning; a node that came since may lead to any write that there is.
        """
        if not self.is_plain(source):
            return False
        reading, leading = self._reading_and_leading()
        return source.name not in reading or not leading or (user.name in self.original and user.name not in leading)

    def leads_to_no_write(self, node: Node) -> bool:
        """Whether neither a node of the graph as it was nor anything that comes of it may write what others read."""
        return node.name in self.original and node.name not in self._reading_and_leading()[1]

    def _reading_and_leading(self) -> tuple[set[str], set[str]]:
        if self._order is None:
            self._order = _readers(self.original), _leading_to_writes(self.original)
        return self._order

    def is_asked_for(self, output: Output) -> bool:
        """Whether somebody outside of the graph may take this output."""
        return output.name in self.kept.outputs if output.index else self.is_kept(output.node)

    def shape(self, output: Output) -> Shape:
        """The static shape of an output, as the graph was in the beginning; unknown for nodes that came since.

        Nothing is known of what is fed in the middle of the graph.
        """
        node = self.original.get(output.node.name)
        return UNKNOWN if node is None else self.shapes[Output(node, output.index)]

    def value(self, output: Output) -> Any:
        """The value of an output where it is small and follows from constants and shapes: a number, nested lists."""
        node = self.original.get(output.node.name)
        return None if node is None or node.name in self.kept.fed else self.shapes.constant(Output(node, output.index))

    @property
    def shapes(self) -> ShapeMap:
        """The shapes of the graph as it was, for nodes of `original`."""
        if self._shapes is None:
            fed = (self.original.get(name) for name in self.kept.fed)
            between = [node for node in fed if node is not None and node.op not in _GIVEN]
            arguments: dict[Output, tuple[Shape, HandleData | None]] = {
                Output(node, index): (UNKNOWN, None) for node in between for index in range(node.num_outputs)
            }
            self._shapes = infer_nested(self.original, Calls(), arguments)
        return self._shapes

    # -- changing ----------------------------------------------------------------------------------------

    def add(
        self,
        op: str,
        name: str,
        inputs: Iterable[Output | Node] = (),
        *,
        control_inputs: Iterable[Node] = (),
        attrs: Mapping[str, Any] | None = None,
        device: str = "",
    ) -> Node:
        """A new node, under `name` or one made from it."""
        node = self.graph.add(
            op, self.graph.unique_name(name), inputs, control_inputs=control_inputs, attrs=attrs, device=device
        )
        self._users[node] = {}
        for source, _ in node.inputs:
            self._use(source, node)
        for source in node.control_inputs:
            self._use(source, node)
        self.changes += 1
        return node

    def add_copy(self, node: Node, name: str, inputs: Iterable[Output], control_inputs: Iterable[Node] = ()) -> Node:
        """A new node like one of this graph or of another with the same functions."""
        copy = self.graph.add_copy(node, self.graph.unique_name(name))
        self._users[copy] = {}
        self.set_inputs(copy, inputs)
        self.set_controls(copy, control_inputs)
        return copy

    def set_inputs(self, node: Node, inputs: Iterable[Output]) -> None:
        """Give a node other data inputs."""
        new = list(inputs)
        if new == node.inputs:
            return
        for source, _ in node.inputs:
            self._unuse(source, node)
        node.inputs = new
        for source, _ in new:
            self._use(source, node)
        self.changes += 1

    def set_controls(self, node: Node, sources: Iterable[Node]) -> None:
        """Have a node wait for other nodes."""
        new = [source for source in dict.fromkeys(sources) if source is not node]
        if new == node.control_inputs:
            return
        for source in node.control_inputs:
            self._unuse(source, node)
        node.control_inputs = new
        for source in new:
            self._use(source, node)
        self.changes += 1

    def wait(self, node: Node, sources: Iterable[Node]) -> None:
        """Have a node wait for further nodes."""
        self.set_controls(node, (*node.control_inputs, *sources))

    def redirect(self, old: Output, new: Output) -> int:
        """Whoever takes `old` takes `new`; returns how many did."""
        takers = [user for user in self.takers(old) if user is not new.node]
        for user in takers:
            self.set_inputs(user, [new if source == old else source for source in user.inputs])
        return len(takers)

    def redirect_controls(self, old: Node, new: Iterable[Node]) -> int:
        """Whoever waits for `old` waits for `new` instead; returns how many did."""
        instead = list(new)
        waiting = [user for user in self.waiting(old) if user not in instead]
        for user in waiting:
            kept = [source for source in user.control_inputs if source is not old]
            self.set_controls(user, [*kept, *instead])
        return len(waiting)

    def turn(
        self,
        node: Node,
        op: str,
        inputs: Iterable[Output] = (),
        attrs: Mapping[str, Any] | None = None,
        control_inputs: Iterable[Node] | None = None,
    ) -> None:
        """Make another op of a node, in its place and under its name; where it is placed stays.

        Args:
            control_inputs: default: those that it has.
        """
        kept = {key: node.attrs.proto(key) for key in _COMMON if key in node.attrs}
        node.op = op
        node.attrs.clear()
        node.attrs.update(kept)
        node.attrs.update(attrs or {})
        node.invalidate_types()
        self.changes += 1
        self.set_inputs(node, inputs)
        if control_inputs is not None:
            self.set_controls(node, control_inputs)

    def turn_constant(self, node: Node, value: TensorProto) -> None:
        """Make a Const of a node whose value is known.

        It waits for what the node and its inputs waited for: that keeps it in the loop, in the branch and behind the
        effects where it was. An input that is no constant is waited for itself, unless that is as good as nothing.
        """
        waits = dict.fromkeys(node.control_inputs)
        for source, _ in node.inputs:
            if source.op == "Const":
                waits.update(dict.fromkeys(source.control_inputs))
            elif not self.is_idle_wait(source, node):
                waits[source] = None
        self.turn(node, "Const", (), {"dtype": dtypes.from_enum(value.dtype), "value": value}, waits)

    def turn_identity(self, node: Node, source: Output, control_inputs: Iterable[Node] | None = None) -> None:
        """Make of a node one that only hands on."""
        self.turn(node, "Identity", [source], {"T": source.dtype.base}, control_inputs)

    def hand_on(self, node: Node, source: Output) -> None:
        """Make of a node one that hands on a tensor that has its value; what else it took it waits for, if need be."""
        waits = dict.fromkeys(node.control_inputs)
        for other, _ in node.inputs:
            if other is source.node:
                continue
            if other.op == "Const":
                waits.update(dict.fromkeys(other.control_inputs))
            elif not self.is_idle_wait(other, node):
                waits[other] = None
        self.turn_identity(node, source, waits)

    def bypass(self, node: Node, source: Output) -> bool:
        """Have the users of a node that only hands on its input take that; what the node waited for they wait for.

        A node that is asked for stays, as does one that others wait for where waiting for the source would mean
        something else (a Switch runs whichever branch is taken).

        Returns:
            whether anybody was moved.
        """
        if self.is_fed(node) or source.node is node:
            return False
        waits = list(node.control_inputs)
        moved = 0
        for user in self.takers(node.output()):
            if user is source.node or (waits and user.op in CONTROL_FLOW_OPS):
                continue  # a Merge would wait for whichever branch is taken
            self.set_inputs(user, [source if old == node.output() else old for old in user.inputs])
            if waits:
                self.wait(user, waits)
            moved += 1
        if source.node.op not in SWITCH_OPS:
            moved += self.redirect_controls(node, [source.node, *waits])
        return bool(moved)

    # -- the result --------------------------------------------------------------------------------------

    def sweep(self) -> int:
        """Remove the nodes that have lost their users and that nobody asks for; returns how many."""
        gone: dict[Node, None] = {}
        waiting = [node for node in self._lost if not self._users[node]]
        while waiting:
            node = waiting.pop()
            if node in gone or self._users[node] or self.is_kept(node):
                continue
            gone[node] = None
            for source in [source for source, _ in node.inputs] + node.control_inputs:
                self._unuse(source, node)
                if not self._users[source]:
                    waiting.append(source)
        if gone:
            for node in gone:
                node.inputs, node.control_inputs = [], []
            self.graph.remove(list(gone))
            for node in gone:
                del self._users[node]
        self._lost = {}
        return len(gone)

    def remove(self, nodes: Iterable[Node]) -> None:
        """Take out nodes that only each other use; what they used goes at the sweep if nobody else uses it."""
        out = list(dict.fromkeys(nodes))
        for node in out:
            for source in [source for source, _ in node.inputs] + node.control_inputs:
                self._unuse(source, node)
            node.inputs, node.control_inputs = [], []
        self.graph.remove(out)
        for node in out:
            del self._users[node]
            self._lost.pop(node, None)
        self.changes += len(out)

    def result(self, report: Mapping[str, Any] | None = None) -> PassResult:
        """The graph without what lost its users; the graph that came in where nothing changed."""
        if not self.changes:
            return PassResult(self.original, False, dict(report or {}))
        self.sweep()
        return PassResult(self.graph, True, dict(report or {}))

    def _use(self, source: Node, user: Node) -> None:
        users = self._users[source]
        users[user] = users.get(user, 0) + 1

    def _unuse(self, source: Node, user: Node) -> None:
        users = self._users.get(source)
        if users is None:
            return
        count = users.get(user, 0) - 1
        if count > 0:
            users[user] = count
            return
        users.pop(user, None)
        if not users:
            self._lost[source] = None
