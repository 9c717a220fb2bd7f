"""Makes plans of steps over tables of nodes, or finds that nodes have to be made (`runtime.table_steps.plan`)."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.compiler.importer.effects import ASSIGNS, HANDLES, READERS
from toolkit.compiler.steps import Role, Step
from toolkit.errors import GraphmillError
from toolkit.formats.node_tables.columns import CONTROL, ints
from toolkit.formats.node_tables.needed import Needed, needed
from toolkit.formats.node_tables.shapes import needed_shapes_fit
from toolkit.formats.node_tables.table import NodeTable
from toolkit.graph.bodies import CALLS
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.graph.shapes.calls import Calls
from toolkit.kernels import registry
from toolkit.kernels.registry import Kind
from toolkit.policy import outside
from toolkit.policy.access import Access
from toolkit.policy.check import check_graph
from toolkit.runtime.executors.once import KNOWN_BYTES
from toolkit.runtime.executors.planned import LARGE
from toolkit.runtime.sessions.feeds import placeholder_shape
from toolkit.runtime.table_steps.kernels import Compute, TableKernels, reading
from toolkit.runtime.table_steps.loops import find_loops
from toolkit.runtime.table_steps.plan import RowAction, TablePlan


class _UnusualError(Exception):
    """Nodes have to be looked at one by one."""


def plan_over_table(
    graph: Graph,
    feeds: Sequence[Output],
    fetches: Sequence[Output],
    targets: Sequence[Node],
    access: Access | None,
    kernels: TableKernels,
) -> TablePlan | None:
    """The step that computes `fetches` and runs `targets` from `feeds`; None where the graph's nodes have to be made.

    Args:
        graph: of which `feeds`, `fetches` and `targets` were glanced at.
        access: what the graph may touch outside of the process.
    """
    found = graph.unmade
    if not isinstance(found, NodeTable) or not found.are_unchanged():
        return None
    table = kernels.sound_table(graph, found)
    if table is None:
        return None
    try:
        return _Maker(graph, table, feeds, fetches, targets, access, kernels).plan()
    except (_UnusualError, GraphmillError):
        return None


class _Maker:
    """Makes one plan."""

    def __init__(
        self,
        graph: Graph,
        table: NodeTable,
        feeds: Sequence[Output],
        fetches: Sequence[Output],
        targets: Sequence[Node],
        access: Access | None,
        kernels: TableKernels,
    ):
        self.graph, self.table, self.access, self.kernels = graph, table, access, kernels
        self.feeds = feeds
        places = table.numbers
        self.fed = {(places[node.name], index): number for number, (node, index) in enumerate(feeds)}
        if len(self.fed) < len(feeds):
            raise _UnusualError
        self.fetches = [(places[node.name], index) for node, index in fetches]
        roots = [each[0] for each in self.fetches if each not in self.fed]
        self.needed: Needed = needed(table, list(self.fed), [*roots, *(places[node.name] for node in targets)])
        self.kind = table.kinds.first[table.kind]
        self.size = int(self.needed.chosen.sum()) + len(feeds) + len(fetches)
        if self.size < LARGE:
            raise _UnusualError  # compiling it takes a moment
        if self._packed_bytes() > KNOWN_BYTES * self.size:
            raise _UnusualError  # it will be compiled: see `toolkit.runtime.executors.once`

    def plan(self) -> TablePlan:
        """The plan.

        Raises:
            _UnusualError, GraphmillError: there is none.
        """
        table, chosen, source = self.table, self.needed.chosen, self.needed.source
        total = len(table)
        frames = self.kernels.frames_of(table)
        if frames is None:
            raise _UnusualError
        arguments = self._arguments()
        if not needed_shapes_fit(table, self.graph, Calls(), self.needed, arguments):
            raise _UnusualError
        loops = find_loops(
            table, frames, self.needed, [node for node, _ in self.fetches], self.kernels.of_kinds, self.graph
        )
        if loops is None:
            raise _UnusualError
        in_loop = loops.of >= 0
        is_row = chosen & ~in_loop
        steps = self._steps(is_row)
        self._check_reach(is_row, loops.nodes)
        owners = table.owners()
        edges = np.flatnonzero(is_row[owners])
        is_data = table.index[edges] != CONTROL
        compute, computes = self._computes(steps, edges[is_data], owners)
        counts = table.data_counts().astype(np.int32)
        takes = np.diff(table.begin)
        # what each puts out
        outputs = np.ones(len(table.kinds.all), np.int32)
        role = np.zeros(len(table.kinds.all), np.int8)
        shared = np.zeros(len(table.kinds.all), np.bool_)
        for number, (step, is_shared) in steps.items():
            outputs[number] = step.num_outputs
            role[number] = _ACTIONS[step.role]
            shared[number] = is_shared
        is_single = outputs[self.kind] == 1
        actions = role[self.kind]
        is_kernel = actions == RowAction.SHARED
        actions[is_kernel & ~shared[self.kind]] = RowAction.OWN
        actions[(actions == RowAction.OWN) & table.has_op(HANDLES) & (counts == 0)] = RowAction.HANDLE
        from_single = np.append(is_single, np.ones(len(self.fed), np.bool_))
        odd = np.zeros(total, np.bool_)
        data = edges[is_data]
        odd[owners[data[(table.index[data] > 0) & (source[data] < total) | ~from_single[source[data]]]]] = True
        actions[(actions == RowAction.SHARED) & is_single & ~odd] = RowAction.PLAIN
        # constants that wait for nothing are there from the start
        is_row &= ~((actions == RowAction.CONSTANT) & (takes == 0))
        at = list(loops.by_place)
        is_row[at] = True
        actions[at] = RowAction.LOOP
        rows = np.flatnonzero(is_row).astype(np.int32)
        last = self._last(loops.place, owners)
        drops, dropped = _drops(rows, last, chosen, loops.exits)
        constants, known = self._constants(steps, chosen & ~in_loop)
        known += sum(loop.form.known_bytes for loop in loops.by_place.values())
        self._check_assigned(steps, compute, edges, is_data, bool(loops.by_place), owners)
        results = [(total + self.fed[each], 0) if each in self.fed else each for each in self.fetches]
        for node, _ in results:
            if node < total and in_loop[node] and node not in loops.exits:
                raise _UnusualError
        return TablePlan(
            self.graph, table, source, chosen, rows, actions[rows], computes, compute[rows], counts[rows], is_single,
            ints(outputs), drops, dropped, last, constants, loops.by_place, results, len(self.fed), self.size, known,
            [step.node for step, _ in steps.values() if step.node.op in CALLS], self.kernels,
        )  # fmt: skip

    def _packed_bytes(self) -> int:
        """The bytes of large constants that are still those of the file."""
        counts = np.bincount(self.table.kind[self.needed.chosen], minlength=len(self.table.kinds.all))
        return sum(
            int(counts[number]) * len(kind.packed.content)
            for number, kind in enumerate(self.table.kinds.all)
            if kind.packed is not None
        )

    def _arguments(self) -> list[tuple[Node, Any]]:
        """Nodes that stand for what is fed, and the shapes of that."""
        beside = Graph()
        found: list[tuple[Node, Any]] = []
        for number, feed in enumerate(self.feeds):
            node = beside.add("_Arg", f"_arg_{number}", attrs={"T": feed.dtype.base, "index": number})
            found.append((node, placeholder_shape(feed)))
        return found

    def _steps(self, is_row: NDArray[np.bool_]) -> dict[int, tuple[Step, bool]]:
        """The step of one node of each kind, and whether it is that of all of them."""
        table, places = self.table, np.flatnonzero(is_row)
        numbers, firsts = np.unique(self.kind[places], return_index=True)
        found: dict[int, tuple[Step, bool]] = {}
        for number, at in zip(ints(numbers), ints(places[firsts]), strict=True):
            node = table.example(self.graph, at)
            if node.op in table.functions:
                raise _UnusualError
            step, is_shared = self.kernels.of_kinds.example(node)
            if step.role not in _ACTIONS or node.op in _OTHERWISE:
                raise _UnusualError
            if step.role is Role.KERNEL and not _is_repeatable(step):
                raise _UnusualError
            if not is_shared:
                self.kernels.add(number, step)
            found[number] = step, is_shared
        return found

    def _check_reach(self, is_row: NDArray[np.bool_], in_loops: Sequence[Node]) -> None:
        """Look whether what runs may run, by kinds."""
        places = np.flatnonzero(is_row)
        _, firsts = np.unique(self.kind[places], return_index=True)
        nodes = [self.table.example(self.graph, at) for at in ints(places[np.sort(firsts)])]
        nodes += in_loops
        if any(outside.rows(node.op) for node in nodes):
            raise _UnusualError  # what it does depends on what it is given
        if self.access is not None:
            check_graph(self.graph, self.access, registry.lacking, nodes)

    def _computes(
        self, steps: dict[int, tuple[Step, bool]], data: NDArray[np.int64], owners: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], list[Compute]]:
        """What runs each node, by number: its kind's kernel, behind reads of the variables that it is given.

        Args:
            data: the data edges into rows.
        """
        table, source = self.table, self.needed.source
        gives = np.zeros(len(table.kinds.all), np.bool_)
        takes: dict[int, list[bool]] = {}
        for number, (step, _) in steps.items():
            refs = [dtype.is_ref for dtype in step.node.output_types]
            if any(refs):
                if len(refs) > 1:
                    raise _UnusualError
                gives[number] = True
            wanted = [dtype.is_ref for dtype in step.node.input_types]
            if any(wanted):
                takes[number] = wanted
        computes: list[Compute] = [_nothing] * len(table.kinds.all)
        for number, (step, is_shared) in steps.items():
            if is_shared and step.role is Role.KERNEL:
                computes[number] = step.compute
        compute = self.kind.copy()
        inside = source[data] < len(table)
        of_node = np.zeros(len(data), np.bool_)
        of_node[inside] = gives[self.kind[source[data[inside]]]]
        wants = np.zeros(len(data), np.bool_)
        position = data - table.begin[owners[data]]
        for number, wanted in takes.items():
            mine = self.kind[owners[data]] == number
            wants[mine] = np.array(wanted)[position[mine]]
        if (wants & ~of_node).any():
            raise _UnusualError  # a variable is fed
        reads = of_node & ~wants
        variants: dict[tuple[int, tuple[int, ...]], int] = {}
        places: dict[int, list[int]] = {}
        for node, at in zip(ints(owners[data[reads]]), ints(position[reads]), strict=True):
            places.setdefault(node, []).append(at)
        for node, positions in places.items():
            key = (int(self.kind[node]), tuple(positions))
            found = variants.get(key)
            if found is None:
                step, is_shared = steps[key[0]]
                if not is_shared or step.role is not Role.KERNEL or step.kind is not Kind.PURE:
                    raise _UnusualError
                found = variants[key] = len(computes)
                computes.append(reading(step.compute, positions, len(step.node.input_types)))
            compute[node] = found
        return compute, computes

    def _last(self, place: NDArray[np.int32], owners: NDArray[np.int32]) -> NDArray[np.int32]:
        """By node, and argument, the last that reads something of it; nodes of loops stand where these run.

        Args:
            place: where each node runs.
        """
        total = len(self.table)
        last = np.arange(total + len(self.fed), dtype=np.int32)
        edges = np.flatnonzero(self.needed.chosen[owners])
        np.maximum.at(last, self.needed.source[edges], place[owners[edges]])
        for node, _ in self.fetches:
            last[node] = _NEVER
        return last

    def _constants(self, steps: dict[int, tuple[Step, bool]], outside: NDArray[np.bool_]) -> tuple[list[Any], int]:
        """The values of constants by kind, and how many bytes all have that are outside of loops."""
        constants: list[Any] = [None] * len(self.table.kinds.all)
        known = 0
        counts = np.bincount(self.kind[outside], minlength=len(constants))
        for number, (step, _) in steps.items():
            if step.role is Role.CONSTANT:
                constants[number] = step.constant
                known += int(counts[number]) * (step.constant.nbytes if isinstance(step.constant, np.ndarray) else 0)
        first = ints(self.table.kinds.first)
        return [constants[number] for number in first], known

    def _check_assigned(
        self,
        steps: dict[int, tuple[Step, bool]],
        compute: NDArray[np.int32],
        edges: NDArray[np.int64],
        is_data: NDArray[np.bool_],
        has_loops: bool,
        owners: NDArray[np.int32],
    ) -> None:
        """Where variables are given values, look whether that is all that is done: each once, of what depends on
        nothing. Then it may be done twice, in any order.

        Raises:
            _UnusualError: something else is done.
        """
        if not any(step.node.op in ASSIGNS for step, _ in steps.values()):
            return
        table, source = self.table, self.needed.source
        for step, _ in steps.values():
            op = step.node.op
            if step.role is Role.CONSTANT or op in ASSIGNS or op in HANDLES:
                continue
            if step.role is not Role.KERNEL or step.kind is not Kind.PURE or op in READERS:
                raise _UnusualError
        data = edges[is_data]
        if has_loops or self.fetches or (compute != self.kind).any() or (source[edges] >= len(table)).any():
            raise _UnusualError
        is_handle, assigns = table.has_op(HANDLES), table.has_op(ASSIGNS)
        from_handle = is_handle[source[data]]
        if (from_handle & ~assigns[owners[data]]).any():
            raise _UnusualError
        first = data[assigns[owners[data]] & (data == table.begin[owners[data]])]
        if not is_handle[source[first]].all() or len(np.unique(source[first])) < len(first):
            raise _UnusualError
        names: set[tuple[Any, ...]] = set()
        handles = ints(np.flatnonzero(is_handle & self.needed.chosen))
        for number in handles:
            kind = table.kinds.all[int(table.kind[number])]
            shared = kind.values.get("shared_name")
            if shared is None:
                shared = table.example(self.graph, number).attr("shared_name", b"")
            names.add((shared,) if shared else (table.names[number].encode(),))
        if len(names) < len(handles):
            raise _UnusualError


#: behind all nodes
_NEVER = np.iinfo(np.int32).max
_ACTIONS = {
    Role.KERNEL: RowAction.SHARED,
    Role.CONSTANT: RowAction.CONSTANT,
    Role.SWITCH: RowAction.SWITCH,
    Role.MERGE: RowAction.MERGE,
}
#: ops that share a role with others and are rare
_OTHERWISE = frozenset({"_SwitchN", "RefSwitch", "RefMerge"})


def _is_repeatable(step: Step) -> bool:
    """Whether a kernel may run twice, as far as its node tells; see `toolkit.runtime.executors.once`."""
    op = step.node.op
    if op in READERS or op in HANDLES or op in ASSIGNS or op in CALLS:
        return step.kind is not Kind.ASYNC
    return step.kind is Kind.PURE and not any(dtype.is_ref for dtype in step.node.input_types)


def _nothing(*_: Any) -> Any:
    raise AssertionError("a row without a kernel of its kind was run by one")


def _drops(
    rows: NDArray[np.int32], last: NDArray[np.int32], chosen: NDArray[np.bool_], exits: Collection[int]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Which values are needed no more behind each row, in order, and how many in all."""
    holds = np.zeros(len(last), np.bool_)
    holds[rows] = True
    holds[list(exits)] = True
    holds[len(chosen) :] = True  # arguments
    values = np.flatnonzero(holds & (last < _NEVER)).astype(np.int32)
    order = np.argsort(last[values], kind="stable")
    values = values[order]
    return values, np.searchsorted(last[values], rows, side="right")
