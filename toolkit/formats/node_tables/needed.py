"""What a step needs of a graph whose nodes are a table: which nodes, and which edges once some tensors are fed.

The rules are those of `toolkit.passes.pruning.client_graph`, over columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolkit.formats.node_tables.columns import CONTROL, NodeColumns

#: ops that cannot run: who waits for one that is fed waits for nothing
_PLACEHOLDERS = ("Placeholder", "PlaceholderV2")


@dataclass(frozen=True, slots=True)
class Needed:
    """A part of a table.

    Attributes:
        chosen: which nodes.
        source: int32, by edge of the table: the node that it comes from; the number of nodes and k where it is the k-th
            tensor that is fed.
    """

    chosen: NDArray[np.bool_]
    source: NDArray[np.int32]


def needed(table: NodeColumns, fed: Sequence[tuple[int, int]], roots: Iterable[int]) -> Needed:
    """What some nodes need.

    Args:
        fed: tensors that come from outside, as node and output, each once.
        roots: nodes by place.
    """
    count = len(table)
    source = table.source
    if fed:
        source = source.copy()
        for number, (node, output) in enumerate(fed):
            from_it = table.source == node
            is_fed = from_it & (table.index == output)
            if not output and table.kinds.all[int(table.kind[node])].op in _PLACEHOLDERS:
                is_fed |= from_it & (table.index == CONTROL)
            source[is_fed] = count + number
    return Needed(table.upstream(roots, source, len(fed)), source)
