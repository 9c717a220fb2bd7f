"""Place over the table of a graph's nodes, none of which is made for it: the default strategy, column by column.

What rules and `variables` say, groups, and TensorFlow's exceptions are those of `placement.place`; nodes differ by
kind, by the device that they ask for, and by what they are bound to. Where a node goes elsewhere than it asks for, or
where somebody wants to know why, nodes are made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from toolkit.formats.bundle.patterns import matcher
from toolkit.formats.node_tables.columns import NodeColumns, ints
from toolkit.formats.node_tables.table import NodeTable
from toolkit.formats.settings.placement_rules import PlacementRule
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.passes.base import PassResult
from toolkit.passes.placement.candidates import Candidates
from toolkit.passes.placement.default import METADATA
from toolkit.passes.placement.devices import DeviceSet
from toolkit.passes.placement.rules import PARAMETER_OPS, SpreadVariables, device_under
from toolkit.passes.placement.table_groups import Allowed, Kernels, allowed, kernels

if TYPE_CHECKING:
    from toolkit.passes.placement.place import Place


def place_table(options: Place, graph: Graph, devices: DeviceSet) -> PassResult | None:
    """Give the nodes of a graph their devices; None, with nothing done, where nodes have to be made for it.

    Raises:
        UsageError: no task is as `variables` wants it.
    """
    table = graph.unmade
    if not isinstance(table, NodeTable) or not _is_plain(options) or not table.is_sound(graph):
        return None
    wishes = _Wishes(table)
    rules = wishes.apply_rules(options.rules)
    if options.variables:
        wishes.spread(graph, SpreadVariables(options.variables, options.balance), devices)
    candidates = Candidates(
        devices, soft=options.allow_soft_placement, supports=options.supports, leaves=options.leaves_tasks
    )
    known = kernels(table, graph, candidates)
    may = None if known is None else allowed(table, known, candidates, wishes.devices, wishes.device)
    if known is None or may is None:
        return None
    chosen = _choose(table, known, may, wishes.device)
    if not _fit(wishes, chosen, devices):
        return None
    names = [str(device) for device in devices.devices]
    device = np.array([wishes.number(name) for name in names], np.int32)[chosen]
    is_modified = bool((device != table.device).any())
    counts = ints(np.bincount(chosen, minlength=len(names)))
    graph.leave_unmade(table.with_devices(wishes.devices, device))
    report: dict[str, Any] = {
        "strategy": options.strategy, "rules": rules, "devices": dict(zip(names, counts, strict=True)), "moved": [],
    }  # fmt: skip
    return PassResult(graph, is_modified, report, ())


def _is_plain(options: Place) -> bool:
    """Whether nothing is asked for that takes nodes: a strategy that thinks, a simulated step, what is said of each."""
    return (
        options.strategy == "default"
        and not options.details
        and not options.timeline
        and options.measured is None
        and not options.speeds.bounds_memory
        and not any(rule.is_query or rule.device.startswith("@") for rule in options.rules)
    )


class _Wishes:
    """What nodes ask for, and what they are told to ask for.

    Attributes:
        devices: the names.
        device: int32, by node, by number among these.
    """

    def __init__(self, table: NodeTable):
        self._table = table
        self.devices = list(table.devices)
        self._numbers = {name: number for number, name in enumerate(self.devices)}
        self.device = table.device

    def number(self, device: str) -> int:
        """The number of a device, which may be a new one."""
        found = self._numbers.setdefault(device, len(self.devices))
        if found == len(self.devices):
            self.devices.append(device)
        return found

    def apply_rules(self, rules: tuple[PlacementRule, ...]) -> dict[str, int]:
        """Note the devices of rules; returns how many nodes each pattern decided, the first that fits a node."""
        counts: dict[str, int] = {}
        is_open = np.ones(len(self._table), np.bool_)
        before, self.device = self.device, self.device.copy()
        for rule in rules:
            fits = np.fromiter(map(matcher([rule.pattern]), self._table.names), np.bool_, len(self._table))
            fits &= is_open
            is_open &= ~fits
            counts[rule.pattern] = int(np.count_nonzero(fits))
            asked = before[fits]
            new = np.zeros(len(self.devices), np.int32)
            for number in ints(np.unique(asked)):
                new[number] = self.number(device_under(rule, self.devices[number]))
            self.device[fits] = new[asked]
        return counts

    def spread(self, graph: Graph, how: SpreadVariables, devices: DeviceSet) -> None:
        """Note the tasks of variables.

        Raises:
            UsageError: no task is as it should be.
        """
        turns = how.turns(devices)
        self.device = self.device.copy()
        for number in ints(np.flatnonzero(self._table.has_op(PARAMETER_OPS))):
            node = self._table.example(graph, number)
            node.device = self.devices[int(self.device[number])]
            self.device[number] = self.number(turns(node))


def _choose(table: NodeColumns, known: Kernels, may: Allowed, asked: NDArray[np.int32]) -> NDArray[np.int64]:
    """The device of each node, by number in the set (`toolkit.passes.placement.default`)."""
    chosen = may.best[may.number]
    is_late = known.generates[known.first]
    data = table.data_counts()
    degrees = np.diff(table.begin)
    owners = table.owners()
    # identities that ask for nothing, between two nodes that ask for the same
    is_link = table.has_op({"Identity"}) & may.lone & (asked == 0) & (data == 1) & (degrees == 1)
    readers = np.bincount(table.source, minlength=len(table))
    is_link &= readers < 2
    reader_asks = np.zeros(len(table), np.int32)
    reader_asks[table.source] = asked[owners]  # of those that have one reader it is that one's
    links = np.flatnonzero(is_link)
    is_link[links] = asked[table.source[table.begin[links]]] == reader_asks[links]
    is_metadata = table.has_op(METADATA) & may.lone & ~may.is_asked[may.number] & (data > 0)
    _beside_inputs(table, np.flatnonzero(is_link | is_metadata), may, chosen, is_late)
    # generators next to their consumers, where these are on one device; none is known of another generator
    edges = np.flatnonzero((is_late & may.lone)[table.source])
    edges = edges[np.argsort(table.source[edges], kind="stable")]
    if len(edges):
        sources, where = table.source[edges], np.where(is_late[owners[edges]], -1, chosen[owners[edges]])
        starts = np.flatnonzero(np.concatenate(([True], sources[1:] != sources[:-1])))
        least, most = np.minimum.reduceat(where, starts), np.maximum.reduceat(where, starts)
        generators = sources[starts]
        is_beside = (least == most) & (least >= 0)
        is_beside[is_beside] = may.may[may.number[generators[is_beside]], least[is_beside]]
        chosen[generators[is_beside]] = least[is_beside]
    return chosen


def _beside_inputs(
    table: NodeColumns, nodes: NDArray[np.int64], may: Allowed, chosen: NDArray[np.int64], is_late: NDArray[np.bool_]
) -> None:
    """Put nodes, in order, where their first inputs are, if they may be there and it is known."""
    sources = ints(table.source[table.begin[nodes]])
    numbers = ints(may.number[nodes])
    for node, source, number in zip(ints(nodes), sources, numbers, strict=True):
        if not is_late[source] and may.may[number, chosen[source]]:
            chosen[node] = chosen[source]


def _fit(wishes: _Wishes, chosen: NDArray[np.int64], devices: DeviceSet) -> bool:
    """Whether all nodes are where they ask to be."""
    count = len(devices.devices)
    return all(
        DeviceSpec.parse(wishes.devices[pair // count]).matches(devices.devices[pair % count])
        for pair in ints(np.unique(wishes.device.astype(np.int64) * count + chosen))
    )
