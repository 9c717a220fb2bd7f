"""What is noted in nodes before they are placed: rules by pattern, and variables spread over parameter servers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolkit.errors import GraphmillError, UsageError, did_you_mean
from toolkit.formats.bundle.patterns import matcher
from toolkit.formats.settings.placement_rules import PlacementRule
from toolkit.graph.device import DeviceSpec
from toolkit.graph.dtypes import DType
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.graph.query import SearchContext, parse
from toolkit.graph.shape import Shape
from toolkit.passes.placement.devices import DeviceSet

#: what TensorFlow's replica_device_setter puts on parameter servers
PARAMETER_OPS = frozenset({
    "Variable", "VariableV2", "AutoReloadVariable", "VarHandleOp", "MutableHashTable", "MutableHashTableV2",
    "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2", "MutableDenseHashTable", "MutableDenseHashTableV2",
    "BoostedTreesEnsembleResourceHandleOp", "BoostedTreesQuantileStreamResourceHandleOp",
    "ResourceConditionalAccumulator", "DecisionTreeResource",
})  # fmt: skip
BALANCES = ("round-robin", "bytes")


def apply_rules(graph: Graph, rules: Sequence[PlacementRule]) -> dict[str, int]:
    """Note the devices of the rules in a graph's nodes; returns how many nodes each pattern decided.

    Raises:
        GraphmillError: a rule names a node that does not exist.
    """
    scene = SearchContext(graph)
    tests = [(rule, _test(rule, scene)) for rule in rules]
    for rule in rules:
        named = [rule.device[1:]] if rule.device.startswith("@") else []
        for name in (*named, *(parse(rule.pattern).nodes if rule.is_query else ())):
            if name not in graph:
                hint = did_you_mean(name, (node.name for node in graph))
                raise GraphmillError(f"there is no node '{name}' in the graph{hint}", file=rule.where)
    counts = dict.fromkeys((rule.pattern for rule in rules), 0)
    decided: list[tuple[Node, PlacementRule]] = []
    for node in graph.nodes:
        for rule, fits in tests:
            if fits(node):
                decided.append((node, rule))
                break
    devices: dict[tuple[str, str], str] = {}  # what becomes of a device under that of a rule
    for node, rule in decided:  # afterwards, so that queries see what the nodes asked for
        counts[rule.pattern] += 1
        if rule.device.startswith("@"):
            node.device = "" if rule.device[1:] == node.name else rule.device
        elif not rule.device:
            node.device = ""
        else:
            key = (rule.device, node.device)
            device = devices.get(key)
            if device is None:
                device = devices[key] = device_under(rule, node.device)
            node.device = device
    return counts


def device_under(rule: PlacementRule, device: str) -> str:
    """What becomes of a node's device under that of a rule, which is none of a node's."""
    if not rule.device:
        return ""
    own = DeviceSpec() if device.startswith("@") else DeviceSpec.parse(device)
    return str(rule.spec.override(own))


def _test(rule: PlacementRule, scene: SearchContext) -> Callable[[Node], bool]:
    if rule.is_query:
        test = parse(rule.pattern).test
        return lambda node: test(node, scene)
    match = matcher([rule.pattern])
    return lambda node: match(node.name)


@dataclass(frozen=True)
class SpreadVariables:
    """Variables, tables and accumulators on the tasks of a job, as TensorFlow's replica_device_setter puts them.

    Attributes:
        where: what the tasks fit: /job:ps.
        balance: "round-robin", or "bytes": always the task that has the fewest.
    """

    where: str
    balance: str = "round-robin"

    def tasks(self, devices: DeviceSet) -> list[str]:
        """The tasks.

        Raises:
            UsageError: no task is like that, or there is no such balance.
        """
        if self.balance not in BALANCES:
            hint = did_you_mean(self.balance, BALANCES, then=f"by {' or '.join(BALANCES)}")
            raise UsageError(f"variables are not spread by '{self.balance}'{hint}")
        wanted = DeviceSpec.parse(self.where)
        tasks = list(dict.fromkeys(device.task_name for device in devices.matching(wanted)))
        if not tasks:
            raise UsageError(f"no task fits {wanted}, where variables should go; the cluster has {devices.listed()}")
        return tasks

    def apply(self, graph: Graph, devices: DeviceSet) -> None:
        """Note the tasks in the nodes; a node's own device wins where it says something, and is left where it names
        another job.

        Raises:
            UsageError: as `tasks`.
        """
        turns = self.turns(devices)
        for node in graph.nodes:
            if node.op in PARAMETER_OPS:
                node.device = turns(node)

    def turns(self, devices: DeviceSet) -> Callable[[Node], str]:
        """What gives such nodes their devices, one after the other.

        Raises:
            UsageError: as `tasks`.
        """
        wanted, tasks = DeviceSpec.parse(self.where), self.tasks(devices)
        job = DeviceSpec.parse(tasks[0]).job
        loads = [0] * len(tasks)

        def device(node: Node) -> str:
            if node.device.startswith("@"):
                return node.device
            own = DeviceSpec.parse(node.device)
            if own.job is not None and own.job != job:
                return node.device
            chosen = loads.index(min(loads))
            loads[chosen] += _bytes(node) if self.balance == "bytes" else 1
            return str(own.override(wanted).override(DeviceSpec.parse(tasks[chosen])))

        return device


def _bytes(node: Node) -> int:
    shape, dtype = node.attr_or("shape", None), node.attr_or("dtype", None)
    count = shape.num_elements if isinstance(shape, Shape) else None
    return (count or 0) * (dtype.size if isinstance(dtype, DType) else 0)
