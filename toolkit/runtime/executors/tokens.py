"""The dataflow executor: ready counts, dead tokens, frames and iterations (white paper, section 4.4).

Every node waits for its inputs; when the last arrives it is put on the ready queue. A Switch sends a dead token
down the branch not taken; a node with a dead input does not run and passes deadness on; a Merge takes the first
live input. Enter opens an instance of a loop frame, NextIteration the next iteration in it, Exit leaves it.
The rules are those of TensorFlow's executor (ExecutorState, PropagatorState).

One thread propagates. Kernels run in it, too, unless the session has threads to spread them over (`inter_op`) and
the kernel is worth the trip: its result then comes back as that of an asynchronous kernel does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from queue import SimpleQueue
from typing import Any, TypeAlias

import numpy as np

from toolkit.compiler.program import Program
from toolkit.compiler.steps import Role, Step, as_outputs, dereference, locate
from toolkit.errors import AbortedError, CancelledError, InvalidArgumentError, OpError
from toolkit.kernels.context import DEAD
from toolkit.kernels.registry import Kind
from toolkit.limits.account import charging, current
from toolkit.runtime.executors.dataflow import Action, lay_out
from toolkit.runtime.executors.inter_op import HEAVY_NS, timed
from toolkit.runtime.executors.node_by_node import NodeByNode
from toolkit.runtime.executors.propagation import Propagation, Task
from toolkit.runtime.executors.stuck import why
from toolkit.runtime.executors.switching import merge, switch, switch_n
from toolkit.runtime.probes.base import looks
from toolkit.runtime.steps.step import DeviceStep

# whose it is, the task, and its outputs or error; no task: the step is cancelled
Completion: TypeAlias = "tuple[TokenExecution, Task | None, Any]"

_PURE, _SWITCH, _MERGE = int(Action.PURE), int(Action.SWITCH), int(Action.MERGE)
_NEXT, _CONSTANT = int(Action.NEXT_ITERATION), int(Action.CONSTANT)


class TokenExecutor(NodeByNode):
    """Runs one program by tokens, as often as wanted and from several threads at once."""

    def __init__(self, program: Program):
        self.nodes, self.layouts = lay_out(program)
        self.memory = program.memory
        self.frames = program.frames
        self.num_results = program.num_results
        self.result_steps = [step for step in program.steps if step.role is Role.RETVAL]
        self.roots = [node for node in self.nodes if not node.num_inputs and not node.step.controls]

    def run(self, arguments: Sequence[Any], running: DeviceStep) -> list[Any]:
        """Execute once; see `Executor.run`."""
        return TokenExecution(self, arguments, running).run()


class TokenExecution(Propagation):
    """One execution.

    Args:
        completions: where it hears of what it waits for; by default in a queue of its own. Executions that one thread
            runs have one together (`one_thread`).
    """

    def __init__(
        self,
        executor: TokenExecutor,
        arguments: Sequence[Any],
        running: DeviceStep,
        completions: SimpleQueue[Completion] | None = None,
    ):
        super().__init__(executor.layouts)
        self.executor = executor
        self.roots = executor.roots
        self.result_steps = executor.result_steps
        self.arguments = arguments
        self.running = running
        self.results: list[Any] = [None] * executor.num_results
        self.references: list[Step] = []
        self.completions: SimpleQueue[Completion] = SimpleQueue() if completions is None else completions
        self.waiting = 0  # kernels under way elsewhere: asynchronous ones, and those in other threads
        self.error: BaseException | None = None
        self.probe = running.probe if looks(running.probe) else None
        self.pool = running.pool
        self.started: dict[int, int] = {}  # when asynchronous kernels were called, for the probe
        self._registered = -1

    # -- the loop ----------------------------------------------------------------------------------------

    def run(self) -> list[Any]:
        self.begin()
        try:
            goes_on = self.go_on()
            while goes_on:
                _, task, result = self.completions.get()
                goes_on = self.go_on_with(task, result)
        finally:
            self.end()
        return self.finish()

    def begin(self) -> None:
        """Be ready to go on. `end` must follow.

        Raises:
            CancelledError: the step is over already.
        """
        root = self.root
        iteration = root.iterations[0]
        for node in self.roots:
            iteration.outstanding += 1
            self.ready.append((node, root, iteration, False))
        self._registered = self.running.cancellation.register(lambda: self.completions.put((self, None, None)))
        if self._registered < 0:
            raise CancelledError("the step was cancelled")

    def go_on(self) -> bool:
        """Run what is ready; whether something is still waited for."""
        # With a probe or a pool every node takes the long way, which looks after them.
        if self.probe is None and self.pool is None:
            self._drain()
        else:
            self._drain_observed()
        return self.waiting > 0

    def go_on_with(self, task: Task | None, result: Any) -> bool:
        """Take what came in, and run what is ready then; whether something is still waited for."""
        self._complete(task, result)
        return self.go_on()

    def end(self) -> None:
        """Hear of a cancellation no longer."""
        if self._registered >= 0:
            self.running.cancellation.deregister(self._registered)
        if self.error is not None:
            self.completions = SimpleQueue()  # what is left in the other one would keep this alive

    def finish(self) -> list[Any]:
        """The results, when nothing is waited for any more.

        Raises:
            OpError: the first failure.
        """
        if self.error is not None:
            raise self.error
        self._check_complete()
        for step in self.references:  # of a reference the value at the end of the step is wanted
            held = [self.results[step.index]]
            try:
                dereference(step, held)
            except Exception as error:
                raise locate(error, step) from None
            self.results[step.index] = held[0]
        return self.results

    def _check_complete(self) -> None:
        """A step that stops before it has all of its results must not pass for one that is done."""
        for step in self.result_steps:
            if self.results[step.index] is None:
                source = step.node.inputs[0].node
                reason = f"nothing is left to run, yet it has no value: {why(source)}"
                raise InvalidArgumentError(reason, node=source.name)

    def _drain(self) -> None:
        """Run what is ready until nothing is. The frequent kinds of nodes are spelled out here: this is the loop."""
        ready = self.ready
        take = ready.popleft
        activate, propagate = self._activate, self._propagate
        while ready:
            task = take()
            node, frame, iteration, is_dead = task
            action = node.action
            base, stop = node.base, node.stop
            if is_dead and node.passes_deadness:
                iteration.inputs[base:stop] = node.blanks
                activate(node, node.fixed, True, frame, iteration)
                iteration.outstanding -= 1
                if not iteration.outstanding:
                    self._clean_up(frame, iteration)
                continue
            if (is_dead and action != _MERGE) or action > _CONSTANT:
                self._process(task)
                continue
            inputs = iteration.inputs
            values = inputs[base:stop]
            inputs[base:stop] = node.blanks  # a value dies at its last use
            try:
                if action == _PURE:
                    result = node.compute(*values)
                    if node.num_outputs == 1 and result.__class__ is not list and result.__class__ is not tuple:
                        outputs: Sequence[Any] = (result,)
                    else:
                        outputs = as_outputs(node.step, result)
                elif action == _SWITCH:
                    outputs = switch(values)
                elif action == _MERGE:
                    outputs = merge(values, is_dead)
                elif action == _CONSTANT:
                    outputs = node.fixed
                else:
                    if action == _NEXT:
                        self.running.check_cancelled()  # the one place an endless loop must pass
                    propagate(task, values, False)
                    values = ()
                    continue
            except Exception as error:
                self._fail(error, node.step, values)
                continue
            activate(node, outputs, is_dead, frame, iteration)
            result = values = outputs = ()  # nothing is held here while the next node runs
            iteration.outstanding -= 1
            if not iteration.outstanding:
                self._clean_up(frame, iteration)

    def _drain_observed(self) -> None:
        """As `_drain`, with a probe that looks at every node, or a pool that takes the heavy ones."""
        ready = self.ready
        while ready:
            self._process(ready.popleft())
            while self.pool is not None and not self.completions.empty():
                _, task, result = self.completions.get()
                self._complete(task, result)

    def _fail(self, error: BaseException, step: Step, inputs: Sequence[Any] | None = None) -> None:
        """Keep the first error, drop what is ready, cancel what waits."""
        if self.error is None:
            self.error = locate(error, step, lambda: self._alive(step, inputs or ()), inputs)
            self.ready.clear()
            # who waits for a tensor of this part is told why there will be none, before the step is cancelled for it
            known = isinstance(self.error, OpError)
            self.running.rendezvous.abort(
                self.error if known else AbortedError("another part of the step failed")  # type: ignore[arg-type]
            )
            self.running.cancellation.cancel()

    def _alive(self, step: Step, inputs: Sequence[Any]) -> Iterator[tuple[str, Any]]:
        """What waits to be used, the inputs of the node at hand, and variables, with their names."""
        yield from zip(_names(step), inputs, strict=False)
        for frame in (self.root, *self.frames.values()):
            for iteration in frame.iterations.values():
                for node, static in zip(self.executor.nodes, self.executor.frames, strict=True):
                    if static is frame.layout.static:
                        yield from zip(_names(node.step), iteration.inputs[node.base : node.stop], strict=True)
        yield from self.running.variables()

    def _complete(self, task: Task | None, result: Any) -> None:
        if task is None:  # cancelled from outside
            if self.error is None:
                self.error = CancelledError("the step was cancelled")
                self.ready.clear()
            return
        self.waiting -= 1
        node = task[0]
        if isinstance(result, BaseException):
            self._fail(result, node.step)
        elif self.error is None:
            try:
                outputs = [DEAD] * node.num_outputs if result is DEAD else as_outputs(node.step, result)
                start = self.started.pop(id(task), 0)
                if self.probe is not None and start:
                    end = time.perf_counter_ns()
                    self.probe.ran(node.step.node, self.running.device_name, start, end, [], outputs)
            except Exception as error:
                self._fail(error, node.step)
                return
            self._propagate(task, outputs, is_dead=result is DEAD)

    # -- one node ----------------------------------------------------------------------------------------

    def _process(self, task: Task) -> None:
        node, _frame, iteration, is_dead = task
        step = node.step
        inputs = iteration.inputs[node.base : node.stop]
        iteration.inputs[node.base : node.stop] = node.blanks
        if is_dead and node.role is not Role.SEND and node.role is not Role.SEGMENT and not node.is_merge:
            if node.role is Role.RETVAL:
                self.results[step.index] = DEAD
            self._propagate(task, [DEAD] * node.num_outputs, is_dead=True)
            return
        try:
            given = inputs
            if step.deref and node.role is not Role.RETVAL and not is_dead:
                # a variable is sent as such: its receiver gets what it holds then
                given = list(inputs) if node.role is Role.SEND else inputs
                dereference(step, inputs)
            start = time.perf_counter_ns() if self.probe is not None else 0
            outputs = self._execute(task, given)
            if self.probe is not None and start:
                if self.executor.memory is not None:
                    self.executor.memory.synchronize()  # what it takes, and what it fails with, is told of it alone
                self._observe(task, inputs, outputs, start)
        except Exception as error:
            self._fail(error, step, inputs)
            return
        if outputs is not None:
            del inputs, given
            if node.role is Role.SEGMENT:
                is_dead = False  # what of it is dead, its outputs say
            elif node.role is Role.ARG:
                is_dead = outputs[0] is DEAD
            self._propagate(task, outputs, is_dead=is_dead)

    def _observe(self, task: Task, inputs: list[Any], outputs: Sequence[Any] | None, start: int) -> None:
        """Report a node to the probe; an asynchronous one is reported when it is done."""
        node = task[0]
        if outputs is None:
            if node.step.kind is Kind.ASYNC:
                self.started[id(task)] = start
        elif node.role is Role.KERNEL or node.role is Role.SEND:
            assert self.probe is not None
            end = time.perf_counter_ns()
            self.probe.ran(node.step.node, self.running.device_name, start, end, inputs, outputs)

    def _execute(self, task: Task, inputs: list[Any]) -> Sequence[Any] | None:
        """The outputs of a node, or None when they will come through `completions`."""
        node, frame, iteration, is_dead = task
        step = node.step
        match node.role:
            case Role.KERNEL:
                if step.kind is Kind.PURE:
                    return as_outputs(step, step.compute(*inputs)) if self.pool is None else self._spread(task, inputs)
                self.running.frame_iter = (frame.id, iteration.number)
                if step.kind is Kind.STATEFUL:
                    return as_outputs(step, step.compute(self.running, *inputs))
                self.waiting += 1
                try:
                    step.compute(self.running, _Done(self, task), *inputs)
                except Exception:
                    self.waiting -= 1
                    raise
                return None
            case Role.SWITCH:
                return switch(inputs) if step.node.op != "_SwitchN" else switch_n(step, inputs)
            case Role.MERGE:
                return merge(inputs, is_dead)
            case Role.CONSTANT:
                return (step.constant,)
            case Role.ARG:
                return (self.arguments[step.index],)
            case Role.RETVAL:
                self.results[step.index] = inputs[0]
                if step.deref:
                    self.references.append(step)
                return ()
            case Role.SEND:
                self.running.frame_iter = (frame.id, iteration.number)
                step.compute(self.running, inputs[0], is_dead)
                return ()
            case Role.SEGMENT:
                self.running.frame_iter = (frame.id, iteration.number)
                return step.compute(inputs, self.running)
            case Role.TRIGGER:
                return ()
            case Role.NEXT_ITERATION:
                self.running.check_cancelled()
                return (inputs[0],)
            case _:  # ENTER, EXIT, LOOP_COND pass their input on
                return (inputs[0],)

    def _spread(self, task: Task, inputs: list[Any]) -> Sequence[Any] | None:
        """Run a kernel here, or in another thread where it takes long and there is something else to do meanwhile."""
        node = task[0]
        compute = node.compute
        pool = self.pool
        assert pool is not None
        if node.cost_ns < HEAVY_NS or not self.ready:
            result, node.cost_ns = timed(compute, inputs, node.cost_ns)
            return as_outputs(node.step, result)
        self.waiting += 1
        probe, running, done = self.probe, self.running, _Done(self, task)
        account = current()

        def work() -> None:
            try:
                start = time.perf_counter_ns()
                with np.errstate(all="ignore"), charging(account):  # hold for this thread
                    result, node.cost_ns = timed(compute, inputs, node.cost_ns)
                if probe is not None:
                    end = time.perf_counter_ns()
                    probe.ran(node.step.node, running.device_name, start, end, inputs, as_outputs(node.step, result))
            except BaseException as error:
                result = error
            inputs.clear()  # they die here, not when the thread gets its next kernel
            done(result)

        pool.submit(running.device_name, work)
        return None


class _Done:
    """What an asynchronous kernel calls, once, from any thread, when it has its outputs or failed."""

    __slots__ = ("_execution", "_task")

    def __init__(self, execution: TokenExecution, task: Task):
        self._execution = execution
        self._task = task

    def __call__(self, result: Any) -> None:
        self._execution.completions.put((self._execution, self._task, result))


def _names(step: Step) -> list[str]:
    """The names of a node's inputs."""
    return [f"{src.name}:{index}" if index else src.name for src, index in step.node.inputs]
