"""What nodes and transfers cost, for placement: from shapes and the speeds of devices, or as it was measured (white
paper, section 3.2.1).

Times are seconds. A node takes its device's overhead and the larger of its operations over the device's FLOP/s and the
bytes it reads and writes over the bandwidth; what it calls is included, as often as it calls it. Bodies of loops count
once where nothing was measured. A measured node takes what it took, on devices of the type it ran on; one that was not
takes what nodes of its signature took. Nodes are measured one by one and run compiled, in segments where devices wait
for each other: each takes its share of the compiled step that was measured beside. What a loop does that is spread over
devices runs one by one (`placement/simulation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.errors import GraphmillError
from toolkit.formats.settings.cluster_speeds import Speed, Speeds
from toolkit.formats.settings.cost_file import MeasuredCosts, device_type_of, signature_text
from toolkit.graph.device import DeviceSpec
from toolkit.graph.dtypes import resource, variant
from toolkit.graph.graph import Graph
from toolkit.graph.infer import ShapeMap
from toolkit.graph.node import Node, Output
from toolkit.graph.shape import Shape
from toolkit.graph.shapes.calls import Calls
from toolkit.graph.shapes.nested import infer_nested
from toolkit.passes.measuring.measure import call_costs
from toolkit.passes.measuring.operations import FREE, VIEWS, operations, size
from toolkit.passes.partitioning.transfers import Partitioned, Transfer

#: what an unknown first size counts as, where nobody says
BATCH = 32
#: what a tensor of unknown rank counts as
_UNKNOWN_ELEMENTS = 1024
#: bytes of a string, a handle
_OPAQUE = 64
VARIABLE_OPS = frozenset({"Variable", "VariableV2", "AutoReloadVariable", "VarHandleOp", "_VarHandlesOp"})


#: what no probe sees run
_UNSEEN = frozenset({"Const", "Placeholder", "PlaceholderWithDefault", "PlaceholderV2", "_Arg", "_Retval"})


@dataclass(frozen=True, slots=True)
class Host:
    """What the devices of a task share.

    Attributes:
        cores: how many kernels run at once.
        slowdown: how much longer each of so many takes than one alone.
        contention: what a node takes longer, besides its kernel, while another device is at work.
        is_serial: what nodes take besides their kernels is taken by one after another.
    """

    cores: float = float("inf")
    slowdown: float = 1.0
    contention: float = 0.0
    is_serial: bool = False


class NodeCosts:
    """The costs of one graph.

    Attributes:
        flops: by node id, the operations of one run.
        moved: by node id, the bytes of its inputs and outputs.
        sizes: by node id, the bytes of each of its outputs.
        held: by node id, the bytes that each of its outputs takes up; none for a view or a reference.
        resident: by node id, the bytes that stay on its device: constants and variables.
        takes_part: by node id, whether it runs in the step. All do where no step of this graph was measured; of a
            measured one, the nodes that ran, with the constants, inputs and control flow that lead to them.
        is_measured: a step of this graph was measured.
        compiled_share: how much of what nodes take one by one they take where they are compiled; 1 where no compiled
            step was measured.
    """

    def __init__(
        self, graph: Graph, speeds: Speeds | None = None, measured: MeasuredCosts | None = None, batch: int = BATCH
    ):
        self.graph = graph
        self.speeds = speeds or Speeds()
        self.measured = measured or MeasuredCosts()
        self._times: dict[tuple[Speed, str], list[float]] = {}
        self.is_measured = False
        self.compiled_share = _compiled_share(self.measured)
        self.takes_part = self._find_part(graph)
        calls = Calls()
        shapes = infer_nested(graph, calls)
        self._shapes = shapes
        inside = call_costs(graph, shapes, batch=batch, calls=calls)
        self.flops: list[int] = []
        self.moved: list[int] = []
        self.sizes: list[list[int]] = []
        self.held: list[list[int]] = []
        self.resident: list[int] = []
        for node in graph.nodes:
            self.sizes.append(
                [
                    elements(shape, batch) * (dtype.size or _OPAQUE)
                    for shape, dtype in zip(shapes.of(node), node.output_types, strict=False)
                ]
            )
        for node in graph.nodes:
            is_view = node.op in VIEWS
            self.held.append(
                [
                    0 if is_view or dtype.is_ref else count
                    for count, dtype in zip(self.sizes[node.id], node.output_types, strict=False)
                ]
            )
            moved = sum(self.sizes[node.id])
            for src, index in node.inputs:
                if index < len(self.sizes[src.id]):
                    moved += self.sizes[src.id][index]
            called = inside.get(node)
            self.flops.append(operations(node, shapes, batch) + (called.flops if called else 0))
            self.moved.append(moved + (2 * called.bytes if called else 0))
            self.resident.append(self._resident(node))

    def _find_part(self, graph: Graph) -> list[bool]:
        measured = self.measured
        ran = [node for node in graph.nodes if (known := measured.nodes.get(node.name)) and known.op == node.op]
        if measured.step is None or not ran or len(ran) < len(measured.nodes):
            return [True] * len(graph)
        self.is_measured = True
        found = [False] * len(graph)
        waiting = list(ran)
        for node in ran:
            found[node.id] = True
        while waiting:
            node = waiting.pop()
            for source in (*(src for src, _ in node.inputs), *node.control_inputs):
                if not found[source.id] and (source.op in _UNSEEN or source.is_control_flow):
                    found[source.id] = True
                    waiting.append(source)
        return found

    def _resident(self, node: Node) -> int:
        if node.op == "Const":
            return sum(self.sizes[node.id])
        if node.op not in VARIABLE_OPS:
            return 0
        shape, dtype = node.attr_or("shape", None), node.attr_or("dtype", None)
        return elements(shape, 1) * (dtype.size or _OPAQUE) if isinstance(shape, Shape) and dtype is not None else 0

    def bytes_of(self, output: Output) -> int:
        """The size of a tensor; of a control edge 0."""
        found = self.sizes[output.node.id]
        return found[output.index] if 0 <= output.index < len(found) else 0

    def times(self, device: DeviceSpec) -> Sequence[float]:
        """What each node takes on a device, by node id; do not change it."""
        kind = device.device_type or "CPU"
        speed = self.speeds.of(device)
        found = self._times.get((speed, kind))
        if found is None:
            found = self._times[speed, kind] = [self._seconds(node, speed, kind) for node in self.graph.nodes]
        return found

    def _seconds(self, node: Node, speed: Speed, kind: str) -> float:
        if not self.takes_part[node.id]:
            return 0.0
        measured = self.measured
        known = measured.nodes.get(node.name)
        overhead = speed.overhead if measured.overhead is None else measured.overhead
        if known is None and measured.overhead is not None and node.op in _UNSEEN:
            return 0.0  # what its like takes is in the overhead of the nodes that were seen
        if known is not None and known.op == node.op and device_type_of(known.device) == kind:
            return (known.seconds + overhead * known.count) * self.compiled_share
        if measured.signatures:
            seconds = measured.signatures.get(f"{kind} {self.signature(node)}")
            if seconds is not None:
                return (seconds + overhead) * self.compiled_share
        if node.op in FREE:
            return overhead
        return overhead + max(self.flops[node.id] / speed.flops, self.moved[node.id] / speed.bandwidth)

    def overhead_of(self, number: int) -> float:
        """The seconds of a node's time that its device spends besides its kernel, where that was measured."""
        overhead = (self.measured.overhead or 0.0) * self.compiled_share
        known = self.measured.nodes.get((node := self.graph.nodes[number]).name)
        return overhead * (known.count if known is not None and known.op == node.op else 1)

    def host(self, device: DeviceSpec) -> Host:
        """What a device shares with others of its task."""
        measured = self.measured
        if measured.overhead is None:
            return Host(self.speeds.of(device).cores)
        cores = measured.cores or self.speeds.of(device).cores
        side_by_side = max(1.0, cores // (measured.threads or 1))
        return Host(side_by_side, measured.slowdown, measured.contention, is_serial=True)

    def startup(self, device: DeviceSpec) -> float:
        """What it costs a step to use one more device, this one."""
        known = self.measured.startup
        return self.speeds.of(device).startup if known is None else known

    def signature(self, node: Node) -> str:
        """A node's op with the types and shapes of its inputs, as far as these are known before it runs."""
        texts: list[str] = []
        for source in node.inputs:
            dtype = source.dtype.base
            if dtype in (resource, variant):
                texts.append(str(dtype))
                continue
            dims = self._shapes[source].dims
            texts.append(f"{dtype}[{'?' if dims is None else ','.join('?' if d is None else str(d) for d in dims)}]")
        return signature_text(node.op, texts)

    def link(self, source: DeviceSpec, target: DeviceSpec) -> tuple[float, float]:
        """What a transfer takes from a device to another: seconds besides its bytes, and bytes per second."""
        measured = self.measured
        if measured.latency is not None and measured.bandwidth is not None and source.task_name == target.task_name:
            return measured.latency, measured.bandwidth
        link = self.speeds.link(source, target)
        return link.latency, link.bandwidth


def _compiled_share(measured: MeasuredCosts) -> float:
    if measured.compiled is None:
        return 1.0
    overhead = measured.overhead or 0.0
    one_by_one = sum(cost.seconds + overhead * cost.count for cost in measured.nodes.values())
    return min(1.0, measured.compiled / one_by_one) if one_by_one else 1.0


def elements(shape: Shape, batch: int) -> int:
    """The number of elements, unknown sizes guessed; 0 for what makes no sense."""
    try:
        return size(shape, batch, _UNKNOWN_ELEMENTS)
    except GraphmillError:
        return 0


class CrossingBytes:
    """The bytes of what crosses between the partitions of a graph; to be made before the graph is split."""

    def __init__(self, graph: Graph, order: list[Node] | None = None):
        """Args:
        order: the graph's topological order, where it is known.
        """
        self._graph = graph
        self._shapes: ShapeMap | GraphmillError
        try:
            self._shapes = infer_nested(graph, Calls(), order=order)
        except GraphmillError as error:  # what is wrong with the split is told first
            self._shapes = error

    def of(self, parts: Partitioned) -> list[int]:
        """The bytes of each transfer with a batch of 1; none of a control edge.

        Raises:
            GraphmillError: the graph's shapes cannot be found.
        """
        if isinstance(self._shapes, GraphmillError):
            raise self._shapes
        found: list[int] = []
        for transfer in parts.transfers:
            if transfer.tensor.startswith("^"):
                found.append(0)
                continue
            # a graph that was not kept has its nodes in the parts
            graph = self._graph if len(self._graph) else parts.graphs[transfer.source]
            found.append(bytes_sent(transfer, self._shapes[graph.output(transfer.tensor)]))
        return found


def bytes_sent(transfer: Transfer, shape: Shape) -> int:
    """The bytes of a tensor of this shape on its way, with a batch of 1."""
    return elements(shape, 1) * (transfer.dtype.size or _OPAQUE)
