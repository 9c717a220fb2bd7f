"""Whether nothing is wrong with the nodes of a table, found for all of them together.

The rules are those of `toolkit.graph.check`. What depends on op and attributes is looked at once for each kind; types
and numbers of inputs are columns that are compared. Where anything may be wrong nodes are looked at one by one, by the
rules themselves, which say what it is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toolkit.formats.node_tables.columns import CONTROL, NodeColumns
from toolkit.graph.check import are_names, check_device, is_sound_here
from toolkit.graph.dtypes import DType
from toolkit.graph.graph import Graph
from toolkit.graph.node import MERGE_OPS, NEXT_ITERATION_OPS

#: so many names are looked at together
_CHUNK = 4096


def is_sound(table: NodeColumns, graph: Graph) -> bool:
    """Whether nothing is wrong with any node or edge; False where that cannot be told so.

    Args:
        graph: the one that has the table.
    """
    signatures = _Signatures(table, graph)
    return (
        signatures.are_sound
        and _have_good_devices(table, graph)
        and table.has_companions()
        and all(are_names(table.names[begin : begin + _CHUNK]) for begin in range(0, len(table), _CHUNK))
        and _fit(table, signatures)
        and are_in_order(table)
    )


class _Signatures:
    """The types that each kind takes and gives.

    Attributes:
        are_sound: whether nothing is wrong with the op and the attributes of any kind; else there is nothing more.
        takes, gives: numbers of types, kind after kind.
        takes_from, gives_from: by kind, where they begin; one more than there are kinds.
        base: by number of a type, that of the type without reference.
    """

    def __init__(self, table: NodeColumns, graph: Graph):
        self.are_sound = True
        numbers: dict[DType, int] = {}
        takes: list[list[int]] = [[] for _ in table.kinds.all]
        gives: list[list[int]] = [[] for _ in table.kinds.all]
        for node in table.examples(graph):
            if not is_sound_here(node):
                self.are_sound = False
                return
            number = int(table.kinds.first[table.kind[node.id]])
            takes[number], gives[number] = (
                [numbers.setdefault(each, len(numbers)) for each in types]
                for types in (node.input_types, node.output_types)
            )
        for kind in map(table.kinds.all.__getitem__, table.used_kinds()):
            if kind.like is not None and kind.judged is None:
                kind.take_verdict(kind.like)
        for dtype in list(numbers):
            numbers.setdefault(dtype.base, len(numbers))
        self.base = np.array([numbers[dtype.base] for dtype in numbers], np.int32)
        self.takes, self.takes_from = _joined(takes)
        self.gives, self.gives_from = _joined(gives)


def _joined(lists: list[list[int]]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    ends = np.cumsum([len(each) for each in lists], dtype=np.int64)
    return np.array([each for one in lists for each in one], np.int32), np.concatenate((np.zeros(1, np.int64), ends))


def _have_good_devices(table: NodeColumns, graph: Graph) -> bool:
    """Whether all devices are names of devices; "@node" is looked at node by node."""
    _, places = np.unique(table.device, return_index=True)
    for node in (table.example(graph, number) for number in places.tolist()):
        if node.device and (node.device.startswith("@") or next(check_device(node), None) is not None):
            return False
    return True


def _fit(table: NodeColumns, signatures: _Signatures) -> bool:
    """Whether all nodes have as many inputs as they take, of the types that they take."""
    kind = table.kinds.first[table.kind]
    takes_from, gives_from = signatures.takes_from, signatures.gives_from
    if (table.data_counts() != (takes_from[1:] - takes_from[:-1])[kind]).any():
        return False
    data = np.flatnonzero(table.index != CONTROL)
    owners = table.owners()[data]
    wanted = signatures.takes[takes_from[kind[owners]] + data - table.begin[owners]]
    made_by, index = kind[table.source[data]], table.index[data]
    at = gives_from[made_by] + index
    if (at >= gives_from[made_by + 1]).any():
        return False
    given = signatures.gives[at]
    return bool(((given == wanted) | (signatures.base[given] == wanted)).all())


def are_in_order(table: NodeColumns) -> bool:
    """Whether all nodes stand behind what they read, but for the back edges of loops: then there is no cycle."""
    kinds, owners = table.kinds.all, table.owners()
    for edge in np.flatnonzero(table.source >= owners).tolist():
        source, target = (kinds[table.kind[each]].op for each in (table.source[edge], owners[edge]))
        if table.index[edge] == CONTROL or target not in MERGE_OPS or source not in NEXT_ITERATION_OPS:
            return False
    return True
