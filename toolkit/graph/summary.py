"""What is in a GraphDef: counts, likely inputs and outputs, variables, constants, devices, functions, frames.

It looks at the message, not at a `Graph`: a summary must also work on graphs that are broken, and be fast on large
ones. One pass over the nodes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from schemas.graph_pb2 import GraphDef
from schemas.node_def_pb2 import NodeDef
from schemas.saver_pb2 import SaverDef
from schemas.tensor_pb2 import TensorProto
from toolkit.errors import GraphmillError
from toolkit.graph import dtypes
from toolkit.graph.attrs import known_shape
from toolkit.graph.dtypes import DType
from toolkit.graph.metagraph import MetaGraph
from toolkit.graph.shape import UNKNOWN, Shape
from toolkit.graph.tensorref import parse_input

PLACEHOLDERS = frozenset({"Placeholder", "PlaceholderV2", "PlaceholderWithDefault", "_Arg"})
VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp"})
ENTER = frozenset({"Enter", "RefEnter"})

#: ops whose results nobody asks for: state, bookkeeping, debris of building
AUXILIARY = frozenset({
    "Const", "NoOp", "Assert", "ControlTrigger", "ReadVariableOp", "VarIsInitializedOp", "IsVariableInitialized",
    "DestroyResourceOp", "DisableCopyOnRead", "SaveV2", "RestoreV2", "Save", "Restore", "MergeV2Checkpoints",
    "ShardedFilename", "Assign", "AssignAdd", "AssignSub", "AssignVariableOp", "AssignAddVariableOp",
    "AssignSubVariableOp", "QueueEnqueueV2", "QueueEnqueueManyV2", "QueueCloseV2", "MergeSummary", "Print",
    "InitializeTable", "InitializeTableV2", "InitializeTableFromTextFileV2", "LookupTableImportV2",
}) | PLACEHOLDERS | VARIABLES  # fmt: skip
#: results of these are named only when there are no others: leftovers of loops and of shape arithmetic
_DOUBTFUL = frozenset({"Exit", "RefExit", "Shape", "ShapeN", "ZerosLike", "Switch", "Merge", "StopGradient"})
#: ops that say how large a tensor is
SHAPES = frozenset({"Shape", "ShapeN", "Size", "Rank"})
SWITCHES = frozenset({"Switch", "RefSwitch"})
#: names of what loops, branches and freezing leave behind
_LEFTOVER = re.compile(r"(?:^|[/_])(?:while|cond)(?:_\d+)?(?:/|$)|ReadVariableOp")
#: optimizers' ops, by how their names begin
_UPDATES = ("Apply", "ResourceApply", "SparseApply", "ResourceSparseApply", "Scatter", "ResourceScatter")
#: nodes that a user runs for their effect
EFFECTS = frozenset({"NoOp", "AssignAdd", "AssignAddVariableOp"})


@dataclass(frozen=True, slots=True)
class TensorSummary:
    """A named tensor; `dtype` is "" where it is not known."""

    name: str
    op: str
    dtype: str
    shape: Shape


@dataclass(frozen=True, slots=True)
class VariableSummary:
    """A variable.

    Attributes:
        trainable: None when the file does not say.
        used: whether any function of a SavedModel reads it; None when the file does not say.
    """

    name: str
    dtype: str
    shape: Shape
    trainable: bool | None = None
    used: bool | None = None

    @property
    def elements(self) -> int | None:
        return self.shape.num_elements


@dataclass(frozen=True, slots=True)
class FunctionSummary:
    """A function of the library."""

    name: str
    nodes: int
    inputs: int
    outputs: int


@dataclass(slots=True)
class GraphSummary:
    """A GraphDef in numbers.

    Attributes:
        ops, function_ops: op to how many nodes, in the graph and in all functions; most frequent first.
        inputs: placeholders that a caller feeds.
        outputs: tensors that nothing in the graph uses, and that are no bookkeeping; a guess.
        targets: nodes without consumers that are run for their effect (train, init); a guess.
        constants, constant_elements, constant_bytes: of Const nodes, those in functions included.
        float_elements: the elements of floating-point constants of more than one element: the weights of a
            frozen graph.
        devices: device to how many nodes; "" is left out.
        frames: loop frame to how many Enter nodes lead into it.
    """

    nodes: int = 0
    producer: int = 0
    min_consumer: int = 0
    bad_consumers: list[int] = field(default_factory=list[int])
    ops: dict[str, int] = field(default_factory=dict[str, int])
    function_ops: dict[str, int] = field(default_factory=dict[str, int])
    inputs: list[TensorSummary] = field(default_factory=list[TensorSummary])
    outputs: list[TensorSummary] = field(default_factory=list[TensorSummary])
    targets: list[str] = field(default_factory=list[str])
    variables: list[VariableSummary] = field(default_factory=list[VariableSummary])
    constants: int = 0
    constant_elements: int = 0
    constant_bytes: int = 0
    float_elements: int = 0
    devices: dict[str, int] = field(default_factory=dict[str, int])
    functions: list[FunctionSummary] = field(default_factory=list[FunctionSummary])
    frames: dict[str, int] = field(default_factory=dict[str, int])

    def count_constants(self, node: NodeDef, count: int = 1) -> None:
        """Count so many constants like this one."""
        self.constants += count
        if "value" not in node.attr:
            return
        tensor = node.attr["value"].tensor
        elements = _elements(tensor) * count
        self.constant_elements += elements
        dtype = _dtype(tensor.dtype)
        if dtype is None:
            return
        self.constant_bytes += elements * dtype.size if dtype.size else count * sum(map(len, tensor.string_val))
        if dtype.is_floating and elements > count:
            self.float_elements += elements


def bookkeeping(saver: SaverDef | None) -> list[str]:
    """The tensors and operations of a saver, which are no results of the graph."""
    if saver is None:
        return []
    return [saver.filename_tensor_name, saver.save_tensor_name, saver.restore_op_name]


def likely_outputs(meta: MetaGraph) -> list[str]:
    """The tensors that nothing in a graph uses, and that are no bookkeeping, most likely results first."""
    return [f"{tensor.name}:0" for tensor in summarize(meta.graph.to_proto(), bookkeeping(meta.saver)).outputs]


def summarize(graph: GraphDef, not_outputs: Iterable[str] = ()) -> GraphSummary:
    """Summarize a GraphDef.

    Args:
        not_outputs: tensors known to be bookkeeping, such as a saver's; with what is in their scope.
    """
    return _Pass(graph, not_outputs).result()


class _Pass:
    def __init__(self, graph: GraphDef, not_outputs: Iterable[str]):
        self.graph = graph
        names = {name.partition(":")[0] for name in not_outputs if name}
        self.hidden = names
        self.hidden_scopes = tuple({name.rpartition("/")[0] + "/" for name in names if "/" in name})
        self.out = GraphSummary()
        self.devices: Counter[str] = Counter()
        self.frames: Counter[str] = Counter()

    def result(self) -> GraphSummary:
        out, graph = self.out, self.graph
        out.producer = graph.versions.producer or graph.version
        out.min_consumer = graph.versions.min_consumer
        out.bad_consumers = list(graph.versions.bad_consumers)
        out.nodes = len(graph.node)
        out.ops = by_count(self._nodes(graph.node, is_main=True))
        inner: Counter[str] = Counter()
        for function in graph.library.function:
            inner += self._nodes(function.node_def, is_main=False)
            signature = function.signature
            out.functions.append(
                FunctionSummary(
                    signature.name, len(function.node_def), len(signature.input_arg), len(signature.output_arg)
                )
            )
        out.function_ops = by_count(inner)
        out.devices = by_count(self.devices)
        out.frames = dict(sorted(self.frames.items()))
        return out

    def _nodes(self, nodes: Iterable[NodeDef], is_main: bool) -> Counter[str]:
        ops: Counter[str] = Counter()
        used: set[str] = set()  # by what counts as a consumer
        used_aside: set[str] = set()  # by the rest
        candidates: list[NodeDef] = []
        variables: dict[tuple[str, str], VariableSummary] = {}
        reads: set[str] = set()  # nodes that give a variable or its value
        for node in nodes:
            op = node.op
            ops[op] += 1
            device = node.device
            if device:
                self.devices[device] += 1
            if op == "Const":
                self.out.count_constants(node)
            elif op in ENTER:
                self.frames[text_of(node, "frame_name")] += 1
            if not is_main:
                continue
            name = node.name
            is_side = self._is_side(name, op)
            (used_aside if is_side else used).update(node.input)
            if op == "ReadVariableOp":
                reads.add(name)
            if not is_side and op not in AUXILIARY:
                candidates.append(node)
            elif op in VARIABLES:
                key = (text_of(node, "container"), text_of(node, "shared_name") or name)
                variables.setdefault(key, variable(node))
                reads.add(name)
            elif op in PLACEHOLDERS and not self._is_hidden(name):
                self.out.inputs.append(placeholder(node))
            elif op in EFFECTS and not self._is_hidden(name):
                candidates.append(node)
        if is_main:
            self.out.variables = list(variables.values())
            self._ends(candidates, used, used_aside, reads)
        return ops

    def _is_hidden(self, name: str) -> bool:
        return bool(self.hidden) and (name in self.hidden or name.startswith(self.hidden_scopes))

    def _is_side(self, name: str, op: str) -> bool:
        return is_on_the_side(name, op) or self._is_hidden(name)

    def _ends(self, candidates: list[NodeDef], used: set[str], used_aside: set[str], reads: set[str]) -> None:
        by_node = {text.partition(":")[0] for text in used if text[:1] != "^"}
        touched = by_node | {text.lstrip("^").partition(":")[0] for text in used_aside}
        touched.update(text[1:] for text in used if text[:1] == "^")
        ends = Ends()
        for node in candidates:
            name = node.name
            if node.op in EFFECTS:
                ends.add_effect(node, is_touched=name in touched)
            elif name not in by_node:
                ends.add(node, reads_variable=len(node.input) > 0 and node.input[0].removesuffix(":0") in reads)
        ends.settle(self.out, self._carrying)

    def _carrying(self) -> set[str]:
        takers: dict[str, list[str]] = {}
        for node in self.graph.node:
            if node.op in SHAPES:
                continue  # how large an input is, not what is in it
            values = node.input[:1] if node.op in SWITCHES else node.input
            for text in values:
                if text[:1] != "^":
                    takers.setdefault(parse_input(text).node, []).append(node.name)
        carrying = {tensor.name for tensor in self.out.inputs}
        waiting = list(carrying)
        for name in waiting:  # grows while we walk it
            fresh = [taker for taker in takers.get(name, ()) if taker not in carrying]
            carrying.update(fresh)
            waiting += fresh
        return carrying


#: how scopes of gradients begin
GRADIENTS = "gradients"


def is_on_the_side(name: str, op: str) -> bool:
    """Whether a node works on the side: what it reads may still be a result of the graph."""
    return (GRADIENTS in name and any(part.startswith(GRADIENTS) for part in name.split("/"))) or op.endswith(
        ("Summary", "SummaryV2")
    )


class Ends:
    """Nodes without consumers, sorted into outputs and targets."""

    def __init__(self) -> None:
        self._outputs: list[TensorSummary] = []
        self._doubtful: list[TensorSummary] = []
        self._targets: list[str] = []

    def add_effect(self, node: NodeDef, *, is_touched: bool) -> None:
        """A node that is run for its effect, if nothing takes or waits for it."""
        if not is_touched and len(node.input):  # a NoOp that waits for nothing does nothing
            self._targets.append(node.name)

    def add(self, node: NodeDef, *, reads_variable: bool) -> None:
        """A node whose outputs nothing takes.

        Args:
            reads_variable: whether its first input is a variable or its value.
        """
        name, op = node.name, node.op
        if name.endswith(("/switch_t", "/switch_f")) or op.startswith(_UPDATES):
            return
        if op == "Identity" and reads_variable:
            return  # a variable's value, which a graph offers for reading
        summary = TensorSummary(name, op, _result_type(node), UNKNOWN)
        (self._doubtful if op in _DOUBTFUL else self._outputs).append(summary)

    def settle(self, out: GraphSummary, carrying: Callable[[], set[str]]) -> None:
        """Note them in a summary that has its inputs: results that carry values of an input before those that do not;
        leftovers of loops and of freezing among the latter are no results.

        Args:
            carrying: finds the names of the nodes that carry values of an input.
        """
        out.targets = self._targets
        out.outputs = self._outputs or self._doubtful
        if len(out.outputs) < 2 or not out.inputs:
            return
        names = carrying()
        first = [tensor for tensor in out.outputs if tensor.name in names]
        if first:
            others = (tensor for tensor in out.outputs if tensor.name not in names)
            out.outputs = [*first, *(tensor for tensor in others if not _LEFTOVER.search(tensor.name))]


def by_count(counts: Counter[str]) -> dict[str, int]:
    """Counts, the largest first."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _elements(tensor: TensorProto) -> int:
    count = 1
    for dim in tensor.tensor_shape.dim:
        count *= max(dim.size, 0)
    return count


def text_of(node: NodeDef, key: str) -> str:
    """A text among the attributes of a node; "" where there is none."""
    # asking a map for a key that it does not have would add it to the message
    return node.attr[key].s.decode(errors="replace") if key in node.attr else ""


def _type(node: NodeDef, key: str) -> str:
    return type_name(node.attr[key].type) if key in node.attr else ""


def _shape(node: NodeDef) -> Shape:
    return known_shape(node.attr["shape"].shape) if "shape" in node.attr else UNKNOWN


def variable(node: NodeDef) -> VariableSummary:
    """The summary of a variable's node."""
    return VariableSummary(node.name, _type(node, "dtype"), _shape(node))


def placeholder(node: NodeDef) -> TensorSummary:
    """The summary of a placeholder."""
    key = "T" if node.op == "_Arg" else "dtype"
    return TensorSummary(node.name, node.op, _type(node, key), _shape(node))


def _result_type(node: NodeDef) -> str:
    """The type of the first output as far as common attributes tell it without the OpDef."""
    for key in ("output_type", "out_type", "DstT", "dtype", "T"):
        if found := _type(node, key):
            return found
    if "Tout" in node.attr and node.attr["Tout"].list.type:
        return type_name(node.attr["Tout"].list.type[0])
    return ""


def type_name(enum: int) -> str:
    """The name of a data type number; "type N" for one that does not exist, "" for 0."""
    dtype = _dtype(enum)
    return dtype.name if dtype is not None else f"type {enum}" if enum else ""


def _dtype(enum: int) -> DType | None:
    try:
        return dtypes.from_enum(enum)
    except GraphmillError:
        return None
