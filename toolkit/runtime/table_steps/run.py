"""Running a step over a table of nodes, row by row (`toolkit.runtime.table_steps.plan`).

What a node puts out is dropped behind its last reader. A branch that was not taken hands on dead values, as by tokens:
rows look for these as long as one is left. Where anything goes wrong, or the step turns out to compute more than its
size told, it is given up as if it had not been begun; whoever runs it by tokens says what is wrong, and of which node.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.compiler.importer.effects import named_functions
from toolkit.errors import CancelledError
from toolkit.formats.node_tables.columns import ints
from toolkit.graph.garbage import no_collection
from toolkit.kernels.context import DEAD, RefVariable
from toolkit.kernels.resources import variables
from toolkit.kernels.resources.variables import Variable
from toolkit.runtime.executors.once import KNOWN_BYTES, MADE_BYTES, TIMES, TooMuchError, is_pure
from toolkit.runtime.executors.switching import merge, switch
from toolkit.runtime.steps.step import DeviceStep
from toolkit.runtime.table_steps.loops import LoopExecution, Tally
from toolkit.runtime.table_steps.plan import RowAction, TablePlan

#: rows whose columns are made lists of together, and after which is looked whether the step is cancelled
_CHUNK = 1024


class _GivenUpError(Exception):
    """The step has to be run in another way."""


def run_over_table(plan: TablePlan, arguments: Sequence[Any], running: DeviceStep) -> list[Any] | None:
    """The results of a step; None where it is to be run in another way, as if nothing had been run.

    Raises:
        CancelledError: the step is over.
        TooMuchError: likewise None, and it is to be compiled.
    """
    try:
        with no_collection():
            return _TableRun(plan, arguments, running).run()
    except CancelledError:
        raise CancelledError("the step was cancelled") from None
    except TooMuchError:
        raise
    except Exception:  # told by whoever runs the step node by node
        return None


class _TableRun:
    """One execution."""

    def __init__(self, plan: TablePlan, arguments: Sequence[Any], running: DeviceStep):
        self.plan, self.arguments, self.running = plan, arguments, running
        self._require_little()
        for node in plan.calls:
            self._require_pure(node)
        self.tally = Tally(TIMES * plan.size, MADE_BYTES * plan.size)
        self.tally.nodes -= int(plan.is_needed.sum()) + len(arguments) + len(plan.results)
        self.tally.nodes += sum(len(loop.form.nodes) for loop in plan.loops.values())  # they count themselves
        constants = plan.constants
        #: by node, then by argument: of one output the tensor, else a sequence of them
        self.values: list[Any] = [constants[kind] for kind in ints(plan.table.kind)]
        self.values += arguments
        self.dead: set[int] = set()  # nodes that have not run
        self.dead_until = -1  # the last node that something dead may come to
        self._begin, self._single = plan.table.begin, plan.is_single

    def _require_little(self) -> None:
        """See `once`: whether arguments, constants and variables have few bytes for so many nodes."""
        plan = self.plan
        known = plan.known_bytes + sum(each.nbytes for each in self.arguments if isinstance(each, np.ndarray))
        for kind in (RefVariable, Variable):
            for cell in self.running.resources.all_of(kind):
                value: Any = variables.on_host(cell.value)
                if isinstance(value, np.ndarray):
                    known += value.nbytes
        if known > KNOWN_BYTES * plan.size:
            raise TooMuchError

    def _require_pure(self, node: Any) -> None:
        """Functions only compute, or read variables."""
        for ref in named_functions(node):
            program = self.running.device_functions.program(node.graph.library, ref)
            if not is_pure(program, self.running):
                raise _GivenUpError

    def run(self) -> list[Any]:
        """The results.

        Raises:
            _GivenUpError, and whatever kernels raise.
        """
        plan, values = self.plan, self.values
        computes, drops = plan.computes, ints(plan.drops)
        table = plan.table
        made, dropped = 0, 0
        array, handle = np.ndarray, int(RowAction.HANDLE)
        graph, running, of_node = plan.graph, self.running, plan.kernels.of_node
        total = len(plan.rows)
        for start in range(0, total, _CHUNK):
            self.running.check_cancelled()
            chunk = slice(start, min(start + _CHUNK, total))
            places = plan.rows[chunk]
            base, end = int(table.begin[places[0]]), int(table.begin[places[-1] + 1])
            sources = ints(plan.source[base:end])
            rows = zip(
                ints(places), ints(plan.actions[chunk]), ints(plan.compute[chunk]), ints(plan.counts[chunk]),
                ints(table.begin[places] - base), ints(plan.dropped[chunk]), strict=True,
            )  # fmt: skip
            dead_until = self.dead_until
            for number, action, which, count, at, upto in rows:
                if action or number <= dead_until:
                    if action == handle and number > dead_until:
                        compute, is_stateful = of_node(graph, table, number)
                        values[number] = compute(running) if is_stateful else compute()
                    else:
                        self._odd(number, action, which)
                        dead_until = self.dead_until
                else:
                    if count == 2:
                        result = computes[which](values[sources[at]], values[sources[at + 1]])
                    elif count == 1:
                        result = computes[which](values[sources[at]])
                    else:
                        result = computes[which](*[values[each] for each in sources[at : at + count]])
                    kind = result.__class__
                    if kind is array:
                        made += result.nbytes
                    elif kind is tuple or kind is list:
                        (result,) = result
                        made += result.nbytes if result.__class__ is array else 0
                    values[number] = result
                while dropped < upto:
                    values[drops[dropped]] = None
                    dropped += 1
            result = None
            self.tally.made -= made
            made = 0
            if self.tally.is_spent:
                raise TooMuchError
        return [self._result(node, index) for node, index in plan.results]

    def _result(self, node: int, index: int) -> Any:
        value = self.values[node]
        if node < len(self._single) and not self._single[node]:
            value = value[index]
        if isinstance(value, RefVariable) and node < len(self._single):
            value = variables.on_host(value.value)
        if value is None:
            raise _GivenUpError
        return value

    # -- what is rare ------------------------------------------------------------------------------------

    def _odd(self, number: int, action: int, which: int) -> None:
        """Run a row that is none of the usual, or to which something dead may come."""
        plan = self.plan
        begin, end = int(self._begin[number]), int(self._begin[number + 1])
        if action == RowAction.LOOP:
            self._run_loop(number)
            return
        inputs: list[Any] = []
        is_dead = False
        dead, single, values = self.dead, self._single, self.values
        for source, index in zip(ints(plan.source[begin:end]), ints(plan.table.index[begin:end]), strict=True):
            if index < 0:
                is_dead = is_dead or source in dead
                continue
            value = values[source]
            if source < len(single) and not single[source]:
                value = value[index]
            if value is DEAD:
                is_dead = True
            inputs.append(value)
        if action == RowAction.MERGE:
            self._merge(number, inputs)
        elif is_dead:
            self._die(number)
        elif action == RowAction.SWITCH:
            self._switch(number, inputs)
        elif action == RowAction.CONSTANT:
            pass  # it is there
        else:
            self._compute(number, action, which, inputs)

    def _compute(self, number: int, action: int, which: int, inputs: list[Any]) -> None:
        plan = self.plan
        if action in (RowAction.OWN, RowAction.HANDLE):
            compute, is_stateful = plan.kernels.of_node(plan.graph, plan.table, number)
            result = compute(self.running, *inputs) if is_stateful else compute(*inputs)
        else:
            result = plan.computes[which](*inputs)
        if self._single[number]:
            if result.__class__ is tuple or result.__class__ is list:
                (result,) = result
            outputs: Sequence[Any] = (result,)
        else:
            outputs = result = () if result is None else result
            if not isinstance(result, tuple | list) or len(result) != plan.outputs(number):
                raise _GivenUpError
        self.tally.made -= sum(each.nbytes for each in outputs if each.__class__ is np.ndarray)
        self.values[number] = result

    def _switch(self, number: int, inputs: list[Any]) -> None:
        data = inputs[0]
        self.tally.made -= data.nbytes if data.__class__ is np.ndarray else 0
        self.values[number] = switch(inputs)
        self._hand_on_dead(number)

    def _merge(self, number: int, inputs: list[Any]) -> None:
        live = [value for value in inputs if value is not DEAD]
        if not live:
            self._die(number)
            return
        if len(live) > 1:
            raise _GivenUpError  # the first that comes is taken: tokens know which
        self.tally.made -= live[0].nbytes if live[0].__class__ is np.ndarray else 0
        self.values[number] = merge(inputs, False)

    def _die(self, number: int) -> None:
        self.dead.add(number)
        self.values[number] = DEAD if self._single[number] else (DEAD,) * self.plan.outputs(number)
        self._hand_on_dead(number)

    def _hand_on_dead(self, number: int) -> None:
        last = int(self.plan.last[number])
        if last > self.dead_until:
            self.dead_until = last

    def _run_loop(self, number: int) -> None:
        loop = self.plan.loops[number]
        inputs: list[Any] = []
        for source, index in loop.arguments:
            value = self.values[source]
            inputs.append(value if source >= len(self._single) or self._single[source] else value[index])
        results = LoopExecution(loop.form.executor, inputs, self.running, self.tally).run()
        if self.tally.is_spent:
            raise TooMuchError
        for place, value in zip(loop.exits, results, strict=True):
            self.values[place] = value
            if value is DEAD:
                self._die(place)
