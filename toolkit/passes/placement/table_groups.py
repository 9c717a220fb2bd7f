"""Which nodes of a table must share a device, and which they may have: `placement.colocation` over columns.

Only what nobody has to be told about is found here: nodes that agree, and devices that fit what they ask for. Anything
else is left to whoever looks at nodes one by one, and knows what to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import GraphError
from toolkit.formats.node_tables.columns import CONTROL, NodeColumns, ints
from toolkit.graph import dtypes
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.passes.placement.candidates import Candidates
from toolkit.passes.placement.colocation import UNBOUND_CALLS, ColocationGroup

#: what the bits of a 64-bit number tell apart, but for its sign
_MOST_TYPES = 63


@dataclass(eq=False)
class Kernels:
    """What examples of the kinds of a table say.

    Attributes:
        first: by node, the number of the kind whose example stands for it.
        examples: by that number.
        types: by that number, which device types can run such nodes, by number in `able`.
        able: a node that can run on these and no others.
        generates: by that number, whether it has no inputs, and one output that is no reference.
        binds: by that number, the positions of inputs that bind it to what made them.
    """

    first: NDArray[np.int32]
    examples: dict[int, Node]
    types: NDArray[np.int64]
    able: list[Node]
    generates: NDArray[np.bool_]
    binds: dict[int, list[int]]


def kernels(table: NodeColumns, graph: Graph, candidates: Candidates) -> Kernels | None:
    """What can run the nodes; None where there are too many answers."""
    count = len(table.kinds.all)
    found = Kernels(
        table.kinds.first[table.kind], {}, np.zeros(count, np.int64), [], np.zeros(count, np.bool_), {}
    )  # fmt: skip
    known: dict[tuple[str, ...], int] = {}
    for node in table.examples(graph):
        number = int(table.kinds.first[table.kind[node.id]])
        found.examples[number] = node
        types = candidates.types_of(node)
        if types not in known:
            known[types] = len(known)
            found.able.append(node)
        found.types[number] = known[types]
        wanted, given = node.input_types, node.output_types
        found.generates[number] = not wanted and len(given) == 1 and not given[0].is_ref
        if node.op not in UNBOUND_CALLS and node.op not in graph.library:
            binds = [at for at, each in enumerate(wanted) if each.is_ref or each is dtypes.resource]
            if binds:
                found.binds[number] = binds
    return found if len(known) <= _MOST_TYPES else None


def bonds(table: NodeColumns, known: Kernels) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of nodes that must share a device: what takes a reference or a resource and what made it, and what is named
    in `_class`."""
    owners, targets = table.companions()
    if not known.binds:
        return owners, targets
    is_bound = np.zeros(len(table.kinds.all), np.bool_)
    is_bound[list(known.binds)] = True
    takers = table.owners()
    edges = np.flatnonzero(is_bound[known.first[takers]] & (table.index != CONTROL))
    kind, position = known.first[takers[edges]].astype(np.int64), edges - table.begin[takers[edges]]
    most = int(position.max(initial=0)) + 1
    pairs = [number * most + at for number, positions in known.binds.items() for at in positions]
    edges = edges[np.isin(kind * most + position, np.array(pairs, np.int64))]
    return (
        np.concatenate((owners, takers[edges].astype(np.int64))),
        np.concatenate((targets, table.source[edges].astype(np.int64))),
    )


def components(count: int, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """By node, the lowest of those that pairs connect it with, itself among them."""
    label = np.arange(count, dtype=np.int64)
    while True:
        mine, theirs = label[a], label[b]
        differ = mine != theirs
        if not differ.any():
            return label
        a, b, mine, theirs = a[differ], b[differ], mine[differ], theirs[differ]
        np.minimum.at(label, np.maximum(mine, theirs), np.minimum(mine, theirs))
        while True:
            shorter = label[label]
            if (shorter == label).all():
                break
            label = shorter


@dataclass(eq=False)
class Allowed:
    """The devices that nodes may have.

    Attributes:
        lone: which nodes are bound to no other.
        number: by node, which of the answers is its own.
        best: by answer, the number of the first device.
        may: bool [answers, devices].
        is_asked: by answer, whether the nodes ask for something.
    """

    lone: NDArray[np.bool_]
    number: NDArray[np.int64]
    best: NDArray[np.int64]
    may: NDArray[np.bool_]
    is_asked: NDArray[np.bool_]


@dataclass
class _Answers:
    """The devices for what groups ask and what can run them.

    Attributes:
        specs: what may be asked for; the first is anything.
    """

    candidates: Candidates
    able: Sequence[Node]
    specs: list[DeviceSpec]
    found: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    devices: list[list[DeviceSpec]] = field(default_factory=list[list[DeviceSpec]])
    asked: list[bool] = field(default_factory=list[bool])

    def number(self, spec: int, types: int) -> int:
        """The number of an answer.

        Args:
            types: a bit for each that is in `able`.

        Raises:
            GraphError: there is none, or none that is asked for.
        """
        known = self.found.get((spec, types))
        if known is not None:
            return known
        members = [node for bit, node in enumerate(self.able) if types >> bit & 1]
        wanted = self.specs[spec]
        devices, _ = self.candidates.find(ColocationGroup(members[0], members, wanted))
        if not all(map(wanted.matches, devices)):
            raise GraphError("soft placement takes another device")
        self.found[spec, types] = len(self.devices)
        self.devices.append(devices)
        self.asked.append(wanted != self.specs[0])
        return len(self.devices) - 1

    def column(self, specs: NDArray[np.int64], types: NDArray[np.int64], bits: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of many answers.

        Args:
            types: by number in `bits`.
        """
        keys = specs * len(bits) + types
        numbers = np.zeros(len(self.specs) * len(bits), np.int64)
        for key in ints(np.flatnonzero(np.bincount(keys))):
            numbers[key] = self.number(key // len(bits), int(bits[key % len(bits)]))
        return numbers[keys]


def allowed(
    table: NodeColumns, known: Kernels, candidates: Candidates, devices: Sequence[str], asked: NDArray[np.int32]
) -> Allowed | None:
    """The devices that nodes may have; None where somebody has to be told why there are none, or others.

    Args:
        devices, asked: what nodes ask for, rules and all.
    """
    numbers: dict[DeviceSpec, int] = {DeviceSpec(): 0}
    spec_of = np.array([numbers.setdefault(DeviceSpec.parse(each), len(numbers)) for each in devices], np.int64)
    specs, types = spec_of[asked], known.types[known.first]
    bits = np.int64(1) << np.arange(len(known.able), dtype=np.int64)
    label = components(len(table), *bonds(table, known))
    lone = np.bincount(label, minlength=len(table))[label] == 1
    answers = _Answers(candidates, known.able, list(numbers))
    number = np.empty(len(table), np.int64)
    members = np.flatnonzero(~lone)
    members = members[np.argsort(label[members], kind="stable")]
    try:
        number[lone] = answers.column(specs[lone], types[lone], bits)
        if len(members):
            of_group = label[members]
            starts = np.flatnonzero(np.concatenate(([True], of_group[1:] != of_group[:-1])))
            wanted = _wanted(specs[members], starts, answers.specs)
            several, which = np.unique(np.bitwise_or.reduceat(bits[types[members]], starts), return_inverse=True)
            found = answers.column(wanted, which, several)
            number[members] = np.repeat(found, np.diff(np.append(starts, len(members))))
    except GraphError:
        return None
    every = candidates.set.devices
    place = {device: at for at, device in enumerate(every)}
    may = np.zeros((len(answers.devices), len(every)), np.bool_)
    for row, found in zip(may, answers.devices, strict=True):
        row[[place[device] for device in found]] = True
    best = np.array([place[found[0]] for found in answers.devices], np.int64)
    return Allowed(lone, number, best, may, np.array(answers.asked, np.bool_))


def _wanted(specs: NDArray[np.int64], starts: NDArray[np.int64], known: list[DeviceSpec]) -> NDArray[np.int64]:
    """What groups ask for together.

    Args:
        specs: of the members, group by group; 0 where one asks for nothing.
        starts: where groups begin.
        known: by number; to it is added what is met for the first time.

    Raises:
        GraphError: members ask for devices that exclude each other.
    """
    most = np.maximum.reduceat(specs, starts)
    least = np.minimum.reduceat(np.where(specs == 0, most.max(), specs), starts)
    ends = np.append(starts[1:], len(specs))
    together: dict[frozenset[int], int] = {}
    for group in ints(np.flatnonzero((most > 0) & (least != most))):
        several = frozenset(ints(specs[starts[group] : ends[group]]))
        number = together.get(several)
        if number is None:
            both = DeviceSpec()
            for each in several:
                merged = both.intersect(known[each])
                if merged is None:
                    raise GraphError("the nodes of a group ask for devices that exclude each other")
                both = merged
            number = known.index(both) if both in known else len(known)
            if number == len(known):
                known.append(both)
            together[several] = number
        most[group] = number
    return most
