"""Loops of a step over a table of nodes: each is a program of its own, shared by all loops that are alike.

What is in a loop runs by tokens, as ever (`runtime.executors.tokens`). In large graphs the same loop comes again and
again with other names; so nodes are made for the first of them alone, between arguments for what enters and results for
what leaves.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.compiler.program import Program
from toolkit.compiler.program_kernels import ProgramKernels
from toolkit.compiler.steps import Role, Step
from toolkit.formats.node_tables.columns import CONTROL, NodeColumns, ints
from toolkit.formats.node_tables.frames import TableFrames, kinds_of_any_loop
from toolkit.formats.node_tables.needed import Needed
from toolkit.graph.bodies import ENDS
from toolkit.graph.graph import Graph
from toolkit.graph.node import ENTER_OPS, EXIT_OPS, Node, Output
from toolkit.kernels.registry import Kind
from toolkit.runtime.executors.dataflow import FrameState, IterationState, NodeItem
from toolkit.runtime.executors.tokens import TokenExecution, TokenExecutor
from toolkit.runtime.steps.step import DeviceStep

#: what nodes of loops may be
_ROLES = frozenset(
    {Role.KERNEL, Role.CONSTANT, Role.SWITCH, Role.MERGE, Role.ENTER, Role.EXIT, Role.NEXT_ITERATION, Role.LOOP_COND,
     Role.ARG, Role.RETVAL}
)  # fmt: skip

Endpoint = tuple[int, int]


@dataclass(frozen=True, slots=True)
class LoopForm:
    """What loops that are alike have in common.

    Attributes:
        executor: of arguments and results.
        nodes: one of each node in them.
        known_bytes: of constants.
    """

    executor: TokenExecutor
    nodes: list[Node]
    known_bytes: int


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop, with all that are in it.

    Attributes:
        arguments: what enters, as node and output.
        exits: the nodes through which results leave, in the form's order.
    """

    form: LoopForm
    arguments: list[Endpoint]
    exits: list[int]


@dataclass(frozen=True, slots=True)
class Loops:
    """All loops of a step.

    Attributes:
        of: int32, by node: the loop it is in, or leads into; -1 outside.
        place: int32, by node: where it runs; its own place outside of loops.
        by_place: the loop that runs in the place of a node, the last that leads into it.
        exits: the nodes through which results leave, of all.
        nodes: one of each kind of node that is in loops.
    """

    of: NDArray[np.int32]
    place: NDArray[np.int32]
    by_place: dict[int, Loop]
    exits: set[int]
    nodes: list[Node]


class Tally:
    """What a step may do yet before it is worth compiling.

    Attributes:
        nodes: how often a node may run.
        made: how many bytes nodes may put out.
    """

    __slots__ = ("made", "nodes")

    def __init__(self, nodes: int, made: int):
        self.nodes = nodes
        self.made = made

    @property
    def is_spent(self) -> bool:
        return self.nodes < 0 or self.made < 0


class LoopExecution(TokenExecution):
    """One execution of a loop, which ends early where the tally is spent."""

    def __init__(self, executor: TokenExecutor, arguments: Sequence[Any], running: DeviceStep, tally: Tally):
        super().__init__(executor, arguments, running)
        self._tally = tally
        # arguments and results of its own are none of the step's nodes
        tally.nodes += len(arguments) + len(self.results)
        tally.made += sum(each.nbytes for each in arguments if each.__class__ is np.ndarray)

    def _activate(
        self, node: NodeItem, outputs: Sequence[Any], is_dead: bool, frame: FrameState, iteration: IterationState
    ) -> None:
        tally = self._tally
        tally.nodes -= 1
        for output in outputs:
            if output.__class__ is np.ndarray:
                tally.made -= output.nbytes
        if tally.nodes < 0 or tally.made < 0:
            self.ready.clear()
            return
        TokenExecution._activate(self, node, outputs, is_dead, frame, iteration)

    def _fail(self, error: BaseException, step: Step, inputs: Sequence[Any] | None = None) -> None:
        """The step goes on in another way, where it is told which node it was."""
        if self.error is None:
            self.error = error
            self.ready.clear()

    def _check_complete(self) -> None:
        if not self._tally.is_spent:
            super()._check_complete()


def find_loops(
    table: NodeColumns, frames: TableFrames, needed: Needed, fetched: Sequence[int], kernels: ProgramKernels,
    graph: Graph,
) -> Loops | None:  # fmt: skip
    """The loops of what is needed; None where there is something unusual about one.

    Args:
        fetched: nodes of which something is asked for.
    """
    total = len(table)
    place = np.arange(total, dtype=np.int32)
    top = _outermost(frames.parents)
    of = np.where(frames.of != 0, top[frames.of], np.where(table.has_op(ENTER_OPS), top[frames.given], 0)) - 1
    of = np.where(needed.chosen, of, -1).astype(np.int32)
    members = np.flatnonzero(of >= 0)
    if not len(members):
        return Loops(of, place, {}, set(), [])
    owners = table.owners()
    leaves = np.zeros(total, np.bool_)  # whose values are wanted outside of loops
    outward = needed.chosen[owners] & (of[owners] < 0)
    sources = needed.source[outward]
    leaves[sources[sources < total]] = True
    leaves[[node for node in fetched if node < total]] = True
    members = members[np.argsort(of[members], kind="stable")]
    numbers = of[members]
    ends = [*ints(np.flatnonzero(np.diff(numbers)) + 1), len(members)]
    maker = _LoopMaker(table, frames, needed, kernels, graph, leaves)
    by_place: dict[int, Loop] = {}
    exits: set[int] = set()
    begin = 0
    for end in ends:
        inside = ints(members[begin:end])
        found = maker.loop(inside)
        if found is None:
            return None
        at, loop = found
        if any(number <= at for number in loop.exits):
            return None
        by_place[at] = loop
        place[inside] = at
        exits.update(loop.exits)
        begin = end
    return Loops(of, place, by_place, exits, maker.nodes)


def _outermost(parents: Sequence[int]) -> NDArray[np.int32]:
    """Of each frame the one around it that no other is around; a frame stands behind the one around it."""
    top = np.arange(len(parents), dtype=np.int32)
    for frame, parent in enumerate(parents):
        if parent > 0:
            top[frame] = top[parent]
    return top


class _LoopMaker:
    """Makes loops, and nodes for one of each form.

    Attributes:
        nodes: one of each node in loops of each form.
    """

    def __init__(
        self, table: NodeColumns, frames: TableFrames, needed: Needed, kernels: ProgramKernels, graph: Graph,
        leaves: NDArray[np.bool_],
    ):  # fmt: skip
        self._table, self._kernels, self._graph = table, kernels, graph
        self._begin = table.begin
        self._source, self._index = needed.source, table.index
        self._frame, self._given = frames.of, frames.given
        self._is_enter = bytearray(table.has_op(ENTER_OPS).view(np.uint8))
        self._is_exit = bytearray(table.has_op(EXIT_OPS).view(np.uint8))
        self._leaves = leaves
        self._alike = kinds_of_any_loop(table)[table.kind]
        self._forms: dict[tuple[Any, ...], LoopForm | None] = {}
        self.nodes: list[Node] = []

    def loop(self, members: list[int]) -> tuple[int, Loop] | None:
        """Where a loop runs, and the loop; None where there is something unusual about it.

        Args:
            members: its nodes, in order.
        """
        alike = self._alike
        local = {number: at for at, number in enumerate(members)}
        frames: dict[int, int] = {}
        arguments: dict[Endpoint, int] = {}
        rows: list[tuple[Any, ...]] = []
        exits: list[int] = []
        place = -1
        for number in members:
            begin, end = int(self._begin[number]), int(self._begin[number + 1])
            frame = int(self._frame[number])
            where = frames.setdefault(frame, len(frames))
            is_enter = self._is_enter[number]
            sources, indices = ints(self._source[begin:end]), ints(self._index[begin:end])
            edges: list[int] = []
            for source, index in zip(sources, indices, strict=True):
                at = local.get(source)
                if at is None:
                    if not is_enter or frame or index == CONTROL:
                        return None
                    at = -1 - arguments.setdefault((source, index), len(arguments))
                    index = 0
                edges += (at, index)
            if is_enter:
                into = int(self._given[number])
                what = (int(alike[number]), frames.setdefault(into, len(frames)))
                if not frame:
                    place = number
            else:
                what = (int(alike[number]),)
                if self._is_exit[number] and not self._given[number] and self._leaves[number]:
                    exits.append(number)
            rows.append((what, where, *edges))
        if place < 0:
            return None
        key = (*rows, tuple(local[number] for number in exits))
        if key not in self._forms:
            self._forms[key] = self._form(members, local, list(arguments), exits)
        form = self._forms[key]
        return None if form is None else (place, Loop(form, list(arguments), exits))

    def _form(
        self, members: list[int], local: dict[int, int], arguments: list[Endpoint], exits: list[int]
    ) -> LoopForm | None:
        """The program of a loop; None where it may not be run twice, or has other values than tensors."""
        table = self._table
        graph = Graph()
        graph.versions.CopyFrom(self._graph.versions)
        graph.library = self._graph.library
        nodes = [table.example(self._graph, number) for number in members]
        if any(node.op in table.functions or node.op in ENDS for node in nodes):
            return None
        copies = [graph.add_copy(node) for node in nodes]
        given: dict[Endpoint, Node] = {}
        for number, copy in zip(members, copies, strict=True):
            for edge in range(int(self._begin[number]), int(self._begin[number + 1])):
                source, index = int(self._source[edge]), int(self._index[edge])
                at = local.get(source)
                if at is None:
                    if source < len(table) and table.example(self._graph, source).output_types[index].is_ref:
                        return None
                    argument = given.get((source, index))
                    if argument is None:
                        place = arguments.index((source, index))
                        argument = graph.add(
                            "_Arg", f"_arg_{place}", attrs={"T": copy.input_types[0].base, "index": place}
                        )
                        given[source, index] = argument
                    copy.inputs.append(Output(argument, 0))
                elif index == CONTROL:
                    copy.control_inputs.append(copies[at])
                else:
                    copy.inputs.append(Output(copies[at], index))
        for place, number in enumerate(exits):
            leaving = copies[local[number]]
            graph.add(
                "_Retval", f"_retval_{place}", [leaving.output()],
                attrs={"T": leaving.output_types[0].base, "index": place},
            )  # fmt: skip
        program = Program.like(self._kernels, graph)
        for step in program.steps:
            types = [*step.node.input_types, *step.node.output_types]
            is_odd = step.role not in _ROLES or any(dtype.is_ref for dtype in types)
            if is_odd or (step.role is Role.KERNEL and step.kind is not Kind.PURE):
                return None
        self.nodes += nodes
        known = sum(step.constant.nbytes for step in program.steps if isinstance(step.constant, np.ndarray))
        return LoopForm(TokenExecutor(program), nodes, known)
