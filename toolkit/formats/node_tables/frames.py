"""The loop frames of a graph whose nodes are a table: what `toolkit.graph.frames` finds node by node.

Nearly all nodes are in no loop. So frames are followed from the nodes that enter one, and all edges are held against
what was found at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schemas.node_def_pb2 import NodeDef
from toolkit.formats.node_tables.columns import CONTROL, NodeColumns, ints
from toolkit.graph.node import ENTER_OPS, EXIT_OPS, MERGE_OPS, NEXT_ITERATION_OPS


@dataclass(frozen=True, slots=True)
class TableFrames:
    """The frames of all nodes.

    Attributes:
        of: int32, by node; 0 is the graph itself, outside of all loops.
        given: int32, likewise of what each node puts out: where it leads, or back to.
        names: by frame.
        parents: by frame; -1 of the graph itself.
    """

    of: NDArray[np.int32]
    given: NDArray[np.int32]
    names: list[str]
    parents: list[int]


def find_frames(table: NodeColumns) -> TableFrames | None:
    """The frame of every node; None where values of different frames meet, a loop is left that was not entered, or a
    frame is entered from two.

    Args:
        table: of nodes each of which stands behind what it reads, but for the back edges of loops, and whose
            attributes are sound (`toolkit.formats.node_tables.check`).
    """
    names, parents = [""], [-1]
    of = np.zeros(len(table), np.int32)
    given = np.zeros(len(table), np.int32)  # of what each puts out
    enters = ints(np.flatnonzero(table.has_op(ENTER_OPS)))
    if enters and not _Walk(table, of, given, names, parents).follow(enters):
        return None
    is_exit = table.has_op(EXIT_OPS)
    if (is_exit & (of == 0)).any() or (given[table.source] != of[table.owners()]).any():
        return None
    return TableFrames(of, given, names, parents)


class _Walk:
    """From the nodes that enter loops through all that are in them."""

    def __init__(
        self, table: NodeColumns, of: NDArray[np.int32], given: NDArray[np.int32], names: list[str], parents: list[int]
    ):
        self._table, self._of, self._given = table, of, given
        self._names, self._parents = names, parents
        self._by_name = {"": 0}
        self._by_kind: dict[int, str | None] = {}

    def follow(self, enters: list[int]) -> bool:
        """Find the frames, in order; False where a loop is left or entered as it must not be."""
        table, of, given = self._table, self._of, self._given
        is_exit = bytearray(table.has_op(EXIT_OPS).view(np.uint8))
        is_enter = bytearray(table.has_op(ENTER_OPS).view(np.uint8))
        owners = table.owners()
        order = np.argsort(table.source, kind="stable")
        takers = owners[order]
        begin = np.searchsorted(table.source[order], np.arange(len(table) + 1)).astype(np.int64)
        waiting = bytearray(len(table))
        for number in enters:
            waiting[number] = 1
        frames: dict[int, int] = {}
        at = waiting.find(1)
        while at >= 0:
            frame = frames.get(at, 0)
            of[at] = frame
            if is_enter[at]:
                out = self._entered(at, frame)
                if out is None:
                    return False
            elif is_exit[at]:
                out = self._parents[frame]
                if out < 0:
                    return False
            else:
                out = frame
            given[at] = out
            if out:
                for taker in ints(takers[int(begin[at]) : int(begin[at + 1])]):
                    if taker > at:
                        waiting[taker] = 1
                        frames.setdefault(taker, out)
            at = waiting.find(1, at + 1)
        return True

    def _entered(self, number: int, frame: int) -> int | None:
        """The frame that a node leads into; None where it is entered from another one, too."""
        kind = int(self._table.kind[number])
        if kind not in self._by_kind:
            try:
                self._by_kind[kind] = self._table.kinds.all[kind].head.attr["frame_name"].s.decode()
            except UnicodeDecodeError:
                self._by_kind[kind] = None
        name = self._by_kind[kind]
        if name is None:
            return None
        found = self._by_name.setdefault(name, len(self._names))
        if found == len(self._names):
            self._names.append(name)
            self._parents.append(frame)
        return found if self._parents[found] == frame else None


def gives_in_loop(table: NodeColumns) -> NDArray[np.bool_] | None:
    """Of which nodes the outputs are within a loop; None where frames do not fit together, or that cannot be told.

    Args:
        table: see `find_frames`.
    """
    is_enter, is_merge = table.has_op(ENTER_OPS), table.has_op(MERGE_OPS)
    if not is_enter.any():
        return np.zeros(len(table), np.bool_)
    frames = find_frames(table)
    owners = table.owners()
    comes_in = ~table.has_op(NEXT_ITERATION_OPS)[table.source]
    if frames is None or (is_merge & (np.bincount(owners[comes_in], minlength=len(table)) == 0)).any():
        return None  # a Merge that nothing but a loop leads into is in no frame yet when that loop is looked for
    is_exit = table.has_op(EXIT_OPS)
    out = np.where(is_exit, np.array(frames.parents, np.int32)[frames.of], frames.of) > 0
    return out | is_enter


def loops_fit(table: NodeColumns) -> bool:
    """Whether values meet only within a loop's frame, and loops are entered, tested, gone around and left as they have
    to be; False where that cannot be told so.

    Args:
        table: see `find_frames`.
    """
    is_next, is_merge = table.has_op(NEXT_ITERATION_OPS), table.has_op(MERGE_OPS)
    is_exit = table.has_op(EXIT_OPS)
    if not (is_next.any() or is_exit.any() or is_merge.any() or table.has_op(ENTER_OPS).any()):
        return True
    owners = table.owners()
    comes_around = is_next[table.source]
    is_data = table.index != CONTROL
    if (comes_around & is_data & ~is_merge[owners]).any():
        return False
    others = np.bincount(owners[is_data & ~comes_around], minlength=len(table))
    if (is_merge & (others == 0)).any():
        return False
    frames = find_frames(table)
    if frames is None or ((frames.of == 0) & (is_next | is_exit)).any():
        return False
    looping, tested = (np.unique(frames.of[has]) for has in (is_next, table.has_op(("LoopCond",))))
    return bool(np.isin(looping, tested).all())


def kinds_of_any_loop(table: NodeColumns) -> NDArray[np.int32]:
    """For each kind the number of the first that is like it (`Kinds.first`), and of those that enter loops the first
    that is the same but for the name of its loop."""
    alike = table.kinds.first.copy()
    known: dict[tuple[str, bytes], int] = {}
    for number in ints(np.unique(table.kind[table.has_op(ENTER_OPS)])):
        kind = table.kinds.all[number]
        message = NodeDef()
        message.CopyFrom(kind.head)
        message.attr.pop("frame_name", None)
        alike[number] = known.setdefault((kind.op, message.SerializeToString(deterministic=True)), number)
    return alike
