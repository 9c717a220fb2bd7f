"""The dataflow executor: ready counts, dead tokens, frames and iterations (white paper, section 4.4).

Every node waits for its inputs; when the last arrives it is put on the ready queue. A Switch sends a dead token
down the branch not taken; a node with a dead input does not run and passes deadness on; a Merge takes the first
live input. Enter opens an instance of a loop frame, NextIteration the next iteration in it, Exit leaves it.
The rules are those of TensorFlow's executor (ExecutorState, PropagatorState).
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any

from toolkit.errors import AbortedError, CancelledError, InvalidArgumentError
from toolkit.graph.frames import StaticFrame
from toolkit.kernels.context import DEAD
from toolkit.kernels.registry import Kind
from toolkit.runtime.program import Program, Role, Step, as_outputs, dereference, locate
from toolkit.runtime.step import Step as RunningStep

CONTROL = -1
# consumer step, its input position (CONTROL for a control edge), the output the edge comes from
OutEdge = tuple[int, int, int]


class _Node:
    """What propagation needs to know of a step, flattened for speed."""

    __slots__ = (
        "base", "frame_name", "is_constant", "is_merge", "local", "num_controls", "num_inputs", "out_edges",
        "pending", "role", "step",
    )  # fmt: skip

    def __init__(self, step: Step):
        self.step = step
        self.role = step.role
        self.is_merge = step.role is Role.MERGE
        self.num_inputs = len(step.inputs)
        self.num_controls = len(step.controls)
        # A merge counts its control inputs twice over a low bit that says "no live input yet".
        self.pending = self.num_controls * 2 + 1 if self.is_merge else self.num_inputs + self.num_controls
        self.out_edges: list[OutEdge] = []
        self.local = 0  # index among the nodes of its frame
        self.base = 0  # first input among the inputs of its frame
        self.frame_name = ""  # of an Enter: the loop it leads into
        self.is_constant = False  # of an Enter: the value is the same in all iterations
        if step.role is Role.ENTER:
            self.frame_name = step.node.attr("frame_name").decode()
            self.is_constant = step.node.attr("is_constant", False)


class _Layout:
    """Sizes and initial counts for the iterations of one static frame."""

    __slots__ = ("num_inputs", "pending", "static")

    def __init__(self, static: StaticFrame):
        self.static = static
        self.pending: list[int] = []
        self.num_inputs = 0


class _Iteration:
    """The state of one iteration of one frame instance."""

    __slots__ = ("dead", "inputs", "number", "outstanding", "outstanding_frames", "pending")

    def __init__(self, number: int, layout: _Layout):
        self.number = number
        self.pending = layout.pending.copy()
        self.dead = [0] * len(layout.pending)
        self.inputs: list[Any] = [None] * layout.num_inputs
        self.outstanding = 0
        self.outstanding_frames = 0


class _Frame:
    """One instance of a loop frame (or the graph itself)."""

    __slots__ = (
        "dead_exits", "id", "invariants", "iterations", "key", "last", "layout", "next_roots", "num_live",
        "parallel", "parent", "parent_iteration", "pending_enters",
    )  # fmt: skip

    def __init__(self, layout: _Layout, parent: _Frame | None, parent_iteration: _Iteration | None, key: str):
        self.layout = layout
        self.parent = parent
        self.parent_iteration = parent_iteration
        self.key = key
        self.id = _frame_id(key)
        self.parallel = max(1, layout.static.parallel_iterations)
        self.pending_enters = layout.static.enters
        self.iterations: dict[int, _Iteration] = {0: _Iteration(0, layout)}
        self.last = 0  # the newest iteration
        self.num_live = 1
        self.next_roots: list[tuple[_Node, Any]] = []
        self.invariants: list[tuple[_Node, Any]] = []
        self.dead_exits: list[_Node] = []


def _frame_id(key: str) -> int:
    """A number every partition computes alike: it is part of the rendezvous key."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest()) >> 1 if key else 0


# node, frame, iteration, is dead
_Task = tuple[_Node, _Frame, _Iteration, bool]


class TokenExecutor:
    """Runs one program by tokens, as often as wanted and from several threads at once."""

    def __init__(self, program: Program):
        self._nodes = [_Node(step) for step in program.steps]
        self._num_results = program.num_results
        self._layouts = {frame.name: _Layout(frame) for frame in program.all_frames}
        for node, frame in zip(self._nodes, program.frames, strict=True):
            layout = self._layouts[frame.name]
            node.local = len(layout.pending)
            node.base = layout.num_inputs
            layout.pending.append(node.pending)
            layout.num_inputs += node.num_inputs
        for position, node in enumerate(self._nodes):
            for slot, (src, index) in enumerate(node.step.inputs):
                self._nodes[src].out_edges.append((position, slot, index))
            for src in node.step.controls:
                self._nodes[src].out_edges.append((position, CONTROL, CONTROL))
        self._roots = [node for node in self._nodes if not node.num_inputs and not node.num_controls]

    def run(self, arguments: Sequence[Any], running: RunningStep) -> list[Any]:
        """Execute once; see `Executor.run`."""
        return _Execution(self, arguments, running).run()


class _Execution:
    """One execution."""

    def __init__(self, executor: TokenExecutor, arguments: Sequence[Any], running: RunningStep):
        self.nodes = executor._nodes  # pyright: ignore[reportPrivateUsage]
        self.layouts = executor._layouts  # pyright: ignore[reportPrivateUsage]
        self.roots = executor._roots  # pyright: ignore[reportPrivateUsage]
        self.arguments = arguments
        self.running = running
        self.results: list[Any] = [None] * executor._num_results  # pyright: ignore[reportPrivateUsage]
        self.ready: deque[_Task] = deque()
        self.completions: SimpleQueue[tuple[_Task, Any] | None] = SimpleQueue()
        self.waiting = 0  # asynchronous kernels under way
        self.frames: dict[tuple[int, int, str], _Frame] = {}
        self.error: BaseException | None = None
        self.probe = running.probe
        self.started: dict[int, int] = {}  # when asynchronous kernels were called, for the probe

    # -- the loop ----------------------------------------------------------------------------------------

    def run(self) -> list[Any]:
        root = _Frame(self.layouts[""], None, None, "")
        iteration = root.iterations[0]
        for node in self.roots:
            iteration.outstanding += 1
            self.ready.append((node, root, iteration, False))
        cancellation = self.running.cancellation
        token = cancellation.register(lambda: self.completions.put(None))
        if token < 0:
            raise CancelledError("the step was cancelled")
        try:
            while True:
                while self.ready:
                    self._process(self.ready.popleft())
                if not self.waiting:
                    break
                self._complete(self.completions.get())
        finally:
            cancellation.deregister(token)
        if self.error is not None:
            raise self.error
        return self.results

    def _fail(self, error: BaseException, step: Step) -> None:
        """Keep the first error, drop what is ready, cancel what waits."""
        if self.error is None:
            self.error = locate(error, step)
            self.ready.clear()
            self.running.cancellation.cancel()
            self.running.rendezvous.abort(AbortedError("another part of the step failed"))

    def _complete(self, completion: tuple[_Task, Any] | None) -> None:
        if completion is None:  # cancelled from outside
            if self.error is None:
                self.error = CancelledError("the step was cancelled")
                self.ready.clear()
            return
        task, result = completion
        self.waiting -= 1
        node = task[0]
        if isinstance(result, BaseException):
            self._fail(result, node.step)
        elif self.error is None:
            try:
                outputs = [DEAD] * node.step.num_outputs if result is DEAD else as_outputs(node.step, result)
            except Exception as error:
                self._fail(error, node.step)
                return
            if self.probe is not None:
                start = self.started.pop(id(task))
                end = time.perf_counter_ns()
                self.probe.ran(node.step.node, self.running.device_name, start, end, [], outputs)
            self._propagate(task, outputs, is_dead=result is DEAD)

    def _process(self, task: _Task) -> None:
        node, _frame, iteration, is_dead = task
        step = node.step
        base = node.base
        inputs = iteration.inputs[base : base + node.num_inputs]
        for i in range(base, base + node.num_inputs):  # a value dies at its last use
            iteration.inputs[i] = None
        if is_dead and node.role is not Role.SEND and not node.is_merge:
            if node.role is Role.RETVAL:
                self.results[step.index] = DEAD
            self._propagate(task, [DEAD] * step.num_outputs, is_dead=True)
            return
        try:
            if step.deref:
                dereference(step, inputs)
            start = time.perf_counter_ns() if self.probe is not None else 0
            outputs = self._execute(task, inputs)
            if self.probe is not None:
                self._observe(task, inputs, outputs, start)
        except Exception as error:
            self._fail(error, step)
            return
        if outputs is not None:
            self._propagate(task, outputs, is_dead=is_dead)

    def _observe(self, task: _Task, inputs: list[Any], outputs: Sequence[Any] | None, start: int) -> None:
        """Report a node to the probe; an asynchronous one is reported when it is done."""
        node = task[0]
        if outputs is None:
            self.started[id(task)] = start
        elif node.role is Role.KERNEL or node.role is Role.SEND:
            assert self.probe is not None
            end = time.perf_counter_ns()
            self.probe.ran(node.step.node, self.running.device_name, start, end, inputs, outputs)

    def _execute(self, task: _Task, inputs: list[Any]) -> Sequence[Any] | None:
        """The outputs of a node, or None when an asynchronous kernel will bring them."""
        node, frame, iteration, is_dead = task
        step = node.step
        match node.role:
            case Role.KERNEL:
                if step.kind is Kind.PURE:
                    return as_outputs(step, step.compute(*inputs))
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
                return _switch(step, inputs)
            case Role.MERGE:
                if is_dead:
                    return (DEAD, DEAD)
                chosen = next(i for i, value in enumerate(inputs) if value is not None and value is not DEAD)
                return (inputs[chosen], _int32(chosen))
            case Role.CONSTANT:
                return (step.constant,)
            case Role.ARG:
                return (self.arguments[step.index],)
            case Role.RETVAL:
                self.results[step.index] = inputs[0]
                return ()
            case Role.SEND:
                self.running.frame_iter = (frame.id, iteration.number)
                step.compute(self.running, inputs[0], is_dead)
                return ()
            case Role.NEXT_ITERATION:
                self.running.check_cancelled()  # the one place an endless loop must pass
                return (inputs[0],)
            case _:  # ENTER, EXIT, LOOP_COND pass their input on
                return (inputs[0],)

    # -- propagation -------------------------------------------------------------------------------------

    def _propagate(self, task: _Task, outputs: Sequence[Any], is_dead: bool) -> None:
        node, frame, iteration, _ = task
        match node.role:
            case Role.ENTER:
                child = self._child_frame(node, frame, iteration)
                if node.is_constant:
                    child.invariants.append((node, outputs[0]))
                    for each in list(child.iterations.values()):
                        self._activate(node, outputs, is_dead, child, each)
                else:
                    self._activate(node, outputs, is_dead, child, child.iterations[0])
                child.pending_enters -= 1
                self._clean_up(child, child.iterations.get(0))
            case Role.EXIT:
                if is_dead:
                    if iteration.number == frame.last:
                        frame.dead_exits.append(node)
                else:
                    assert frame.parent is not None and frame.parent_iteration is not None
                    self._activate(node, outputs, False, frame.parent, frame.parent_iteration)
            case Role.NEXT_ITERATION:
                if not is_dead:  # deadness stops here: the loop is over
                    if iteration.number < frame.last:
                        self._activate(node, outputs, False, frame, frame.iterations[iteration.number + 1])
                    elif frame.num_live >= frame.parallel:
                        frame.next_roots.append((node, outputs[0]))
                    else:
                        following = self._start_iteration(frame)
                        self._activate(node, outputs, False, frame, following)
            case _:
                self._activate(node, outputs, is_dead, frame, iteration)
        iteration.outstanding -= 1
        if iteration.outstanding == 0:
            self._clean_up(frame, iteration)

    def _activate(
        self, node: _Node, outputs: Sequence[Any], is_dead: bool, frame: _Frame, iteration: _Iteration
    ) -> None:
        """Hand the outputs to the consumers and queue those that become ready."""
        pending, dead, inputs = iteration.pending, iteration.dead, iteration.inputs
        nodes = self.nodes
        for target, slot, index in node.out_edges:
            consumer = nodes[target]
            local = consumer.local
            value = None if slot == CONTROL else outputs[index]
            edge_dead = is_dead if slot == CONTROL else value is DEAD
            if consumer.is_merge:
                if slot == CONTROL:
                    pending[local] -= 2
                    all_dead = dead[local] == consumer.num_inputs
                    is_ready = pending[local] == 0 or (pending[local] == 1 and all_dead)
                elif edge_dead:
                    dead[local] += 1
                    # A dead Enter makes its Merge dead at once: no NextIteration will ever follow.
                    all_dead = dead[local] == consumer.num_inputs or node.role is Role.ENTER
                    is_ready = pending[local] == 1 and all_dead
                else:
                    all_dead = False
                    if not pending[local] & 1:  # another live input came first
                        continue
                    inputs[consumer.base + slot] = value
                    pending[local] -= 1
                    is_ready = pending[local] == 0
                consumer_dead = all_dead and bool(pending[local] & 1)
            else:
                if edge_dead:
                    dead[local] += 1
                if slot != CONTROL:
                    inputs[consumer.base + slot] = value
                pending[local] -= 1
                is_ready = pending[local] == 0
                consumer_dead = dead[local] > 0
            if is_ready:
                iteration.outstanding += 1
                self.ready.append((consumer, frame, iteration, consumer_dead))

    # -- frames and iterations ---------------------------------------------------------------------------

    def _child_frame(self, enter: _Node, frame: _Frame, iteration: _Iteration) -> _Frame:
        name = enter.frame_name
        key = (id(frame), iteration.number, name)
        child = self.frames.get(key)
        if child is None:
            path = f"{frame.key};{iteration.number};{name}"
            child = self.frames[key] = _Frame(self.layouts[name], frame, iteration, path)
            iteration.outstanding_frames += 1
        return child

    def _start_iteration(self, frame: _Frame) -> _Iteration:
        frame.last += 1
        frame.num_live += 1
        following = frame.iterations[frame.last] = _Iteration(frame.last, frame.layout)
        frame.dead_exits.clear()  # only those of the last iteration count
        roots, frame.next_roots = frame.next_roots, []
        for node, value in roots:
            self._activate(node, (value,), False, frame, following)
        for node, value in frame.invariants:
            self._activate(node, (value,), value is DEAD, frame, following)
        return following

    def _clean_up(self, frame: _Frame, iteration: _Iteration | None) -> None:
        """Drop iterations that are over, start deferred ones, and leave the frame when all are done."""
        if frame.parent is None or frame.parent_iteration is None:
            return
        while iteration is not None and self._is_done(frame, iteration):
            number = iteration.number
            del frame.iterations[number]
            frame.num_live -= 1
            if frame.next_roots:
                self._start_iteration(frame)
            iteration = frame.iterations.get(number + 1)
        if frame.num_live or frame.pending_enters:
            return
        parent, outer = frame.parent, frame.parent_iteration
        self.frames.pop((id(parent), outer.number, frame.layout.static.name), None)
        for node in frame.dead_exits:
            self._activate(node, [DEAD], True, parent, outer)
        frame.dead_exits = []
        outer.outstanding_frames -= 1
        self._clean_up(parent, outer)

    def _is_done(self, frame: _Frame, iteration: _Iteration) -> bool:
        if iteration.outstanding or iteration.outstanding_frames:
            return False
        if iteration.number == 0:
            return frame.pending_enters == 0
        return iteration.number - 1 not in frame.iterations


class _Done:
    """What an asynchronous kernel calls, once, from any thread, when it has its outputs or failed."""

    __slots__ = ("_completions", "_task")

    def __init__(self, execution: _Execution, task: _Task):
        self._completions = execution.completions
        self._task = task

    def __call__(self, result: Any) -> None:
        self._completions.put((self._task, result))


def _switch(step: Step, inputs: list[Any]) -> Sequence[Any]:
    data, predicate = inputs
    if step.node.op == "_SwitchN":
        outputs = [DEAD] * step.num_outputs
        index = int(predicate)
        outputs[index if 0 <= index < len(outputs) else -1] = data
        return outputs
    if getattr(predicate, "shape", ()) != ():
        raise InvalidArgumentError(f"The second input must be a scalar, but it has shape {list(predicate.shape)}")
    return (DEAD, data) if predicate else (data, DEAD)


def _int32(value: int) -> Any:
    import numpy as np

    return np.int32(value)
