"""A graph made ready to run on one device: kernels built, inputs resolved, frames known.

Both executors (`flat`, `tokens`) run a `Program`; it holds nothing of a particular step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolkit.compiler.program_kernels import ProgramKernels
from toolkit.compiler.steps import Role, Step, never
from toolkit.errors import GraphError, InvalidGraphError
from toolkit.graph.check import check_inputs
from toolkit.graph.frames import StaticFrame, assign_frames
from toolkit.graph.graph import Graph
from toolkit.graph.node import CONTROL_FLOW_OPS, Node, Output
from toolkit.kernels import device_types
from toolkit.kernels.context import RefVariable
from toolkit.kernels.device_memory import DeviceMemory
from toolkit.kernels.facts import stays_on_host
from toolkit.kernels.registry import Kind
from toolkit.kernels.resources import variables
from toolkit.policy.access import Access
from toolkit.target.target import Target

_VARIABLES = frozenset({"Variable", "VariableV2"})
_HANDS_ON = frozenset({"Identity", "IdentityN", "Snapshot", "StopGradient", "PreventGradient"})


class Program:
    """A compiled graph.

    Attributes:
        steps: in an order in which every step comes after its inputs (back edges of loops aside).
        frames: the static frame of each step.
        all_frames: every frame, the outermost first.
        is_asynchronous: it has kernels or transfers that wait, so only the dataflow executor can run it.
        needs_tokens: it has control flow or is asynchronous, so the flat executor cannot run it.
        num_arguments: how many _Arg nodes there are.
        num_results: how many _Retval nodes there are.

        device_type: of the device that it runs on.
        memory: of that device; None for host memory.
        is_part: it is a segment of a program: what it is given and gives may be dead.
        by_value: of a segment, the arguments that follow from shapes alone.
        beside: the programs that run in the same step, where there are several, or this is a part of one.
        writes: whether its nodes may change a variable (`importer.effects`), once somebody has asked.
        learned: what plans for some shapes found of it that holds for those for others, by who found it.

    Args:
        device_index: the device's number among those of its type.
        access: what its kernels may touch outside; nothing by default.
        defining: take only kernels that define their ops, not faster ones of libraries.
        target: the processor that its kernels are for; this one by default.
        copies: what has no kernel for the device runs in host memory and is copied; else it is an error. Functions run
            where they are called, whatever is in them.

    Raises:
        GraphError: the graph is malformed.
        UnimplementedError: an op has no kernel for this device type.
        UsageError: there is no such device type.
    """

    def __init__(
        self,
        graph: Graph,
        device_type: str = "CPU",
        order: Sequence[Node] | None = None,
        access: Access | None = None,
        *,
        device_index: int = 0,
        defining: bool = False,
        target: Target | None = None,
        copies: bool = False,
    ):
        self.device_type = device_type
        self.memory = device_types.memory(device_type, device_index)
        self.device = "" if self.memory is None else f"/device:{device_type}:{device_index}"
        kernels = ProgramKernels(device_type, access, defining, target, copies)
        ordered = list(order) if order is not None else graph.topological_order()
        position = [0] * len(graph)
        for index, node in enumerate(ordered):
            position[node.id] = index
        changed = _changed_variables(ordered, kernels)
        self.steps = [_make_step(node, position, kernels, changed) for node in ordered]
        if self.memory is not None and device_types.keeps_variables(device_type):
            for step in self.steps:
                if step.deref:
                    step.settle = _settling(step, device_type, self.memory)
        _mark_targets(self.steps)
        by_id, self.all_frames = assign_frames(graph, ordered)
        self.frames: list[StaticFrame] = [by_id[node.id] for node in ordered]
        self.is_asynchronous = any(step.kind is Kind.ASYNC or step.role is Role.SEND for step in self.steps)
        self.needs_tokens = self.is_asynchronous or any(step.node.op in CONTROL_FLOW_OPS for step in self.steps)
        arguments = [step for step in self.steps if step.role is Role.ARG]
        results = [step for step in self.steps if step.role is Role.RETVAL]
        for step in results:
            frame = by_id[step.node.id]
            if frame.parent is not None:
                raise GraphError(
                    f"it is inside the loop '{frame.name}' and has a value in each iteration; fetch what leaves the "
                    "loop through an Exit",
                    node=step.node.inputs[0].node.name,
                )
        self.num_arguments = len(arguments)
        #: (which, type, array type) of the arguments that are tensors
        self.argument_types = [
            (step.index, dtype, dtype.numpy)
            for step in arguments
            if (dtype := step.node.output_types[0]).base.kind not in "rv" and not dtype.is_ref
        ]
        self.num_results = 1 + max((step.index for step in results), default=-1)
        self.is_part = False
        self.by_value: frozenset[int] = frozenset()
        self.beside: Sequence[Program] = ()
        self.writes: bool | None = None
        self.learned: dict[type, Any] = {}

    @classmethod
    def like(cls, kernels: ProgramKernels, graph: Graph) -> Program:
        """The program of a graph on the device that `kernels` are for, under the same policy."""
        return cls(
            graph, kernels.device_type, access=kernels.access, defining=kernels.defining, target=kernels.target,
            copies=kernels.copies,
        )  # fmt: skip

    def part(self, steps: list[Step], frames: list[StaticFrame], all_frames: list[StaticFrame]) -> Program:
        """A program of some of its steps, on the same device; see the attributes for what is given."""
        made = Program.__new__(Program)
        made.__dict__.update(self.__dict__)
        made.steps, made.frames, made.all_frames = steps, frames, all_frames
        made.is_asynchronous = any(step.kind is Kind.ASYNC for step in steps)
        made.needs_tokens = True  # for dead arguments
        made.num_arguments = sum(step.role is Role.ARG for step in steps)
        made.argument_types = []
        made.num_results = 1 + max((s.index for s in steps if s.role is Role.RETVAL), default=-1)
        made.is_part = True
        made.beside = self.beside or (self,)
        made.writes = None
        made.learned = {}
        return made


def _make_step(node: Node, position: list[int], kernels: ProgramKernels, changed: set[str]) -> Step:
    form = kernels.form(node)
    role, wanted = form.role, form.wanted
    controls = [position[src.id] for src in node.control_inputs]
    if len(wanted) != len(node.inputs):
        raise _bad_inputs(node)
    inputs: list[tuple[int, int]] = []
    deref: tuple[int, ...] = ()
    reads = role is Role.KERNEL or role is Role.RETVAL
    for i, (src, index) in enumerate(node.inputs):
        if reads and src.op == "Identity":
            variable = _variable_read(src)
            if variable is not None:
                if position[src.id] not in controls:  # the read runs, whatever is left of who uses it
                    controls.append(position[src.id])
                if node.op not in _HANDS_ON or _name_of_variable(variable.node) in changed:
                    src, index = variable
        types, want = src.output_types, wanted[i]
        found = types[index] if 0 <= index < len(types) else None
        if found is not want:
            if found is None or found.base is not want.base or (want.is_ref and not found.is_ref):
                raise _bad_inputs(node)
            if found.is_ref and not want.is_ref and not form.forwards_references:
                deref = (*deref, i)
        inputs.append((position[src.id], index))
    step = Step(node, role, Kind.PURE, never, inputs, controls, deref, form.num_outputs)
    if role is Role.ENTER:
        node.attr("is_constant", False)  # refused here, whoever runs it
    if role in (Role.ARG, Role.RETVAL):
        step.index = node.attr("index")
    elif role in (Role.KERNEL, Role.SEND, Role.TRIGGER, Role.CONSTANT):
        kernels.fill(step, form)
    return step


def _mark_targets(steps: Sequence[Step]) -> None:
    """Find the steps that are there for themselves: nothing takes their outputs or waits for them.

    What hands its input on, as an Identity does, is there for what it hands on.
    """
    used = {src for step in steps for src, _ in step.inputs} | {src for step in steps for src in step.controls}
    for index in range(len(steps) - 1, -1, -1):
        step = steps[index]
        if step.role is Role.KERNEL and (step.is_target or index not in used):
            step.is_target = True
            if step.node.op in _HANDS_ON:
                for src, _ in step.inputs:
                    steps[src].is_target = True


def _name_of_variable(node: Node) -> str:
    """What a reference variable is called in its session."""
    return node.text("shared_name") or node.name


def _changed_variables(nodes: Sequence[Node], kernels: ProgramKernels) -> set[str]:
    """The reference variables whose reference a node takes, which may change them."""
    found: set[str] = set()
    for node in nodes:
        for position, (src, _) in enumerate(node.inputs):
            if src.op in _VARIABLES:
                wanted = kernels.form(node).wanted
                if position < len(wanted) and wanted[position].is_ref:
                    found.add(_name_of_variable(src))
    return found


def _variable_read(node: Node) -> Output | None:
    """The reference behind the `read` of a variable, an Identity.

    In TensorFlow a plain tensor read from a reference shares the variable's memory: whoever uses it after an update
    sees the updated value, as moving averages of weights do that run after the optimizer. Those who use a read
    therefore look at the variable itself. Of a variable that the program does not change there is one value, which
    is handed on to what it decides: branches ask for it under several names.
    """
    if node.op != "Identity" or not node.inputs:
        return None
    source = node.inputs[0]
    return source if source.node.op in _VARIABLES else None


def _bad_inputs(node: Node) -> InvalidGraphError:
    """What is wrong with how many inputs a node has, or with their types, in the words of `validate`."""
    return InvalidGraphError(next(check_inputs(node, node.op_def)).message, node=node.name)


def _settling(step: Step, device_type: str, memory: DeviceMemory) -> Callable[[int, RefVariable], Any]:
    """What gives a variable's value where a step on a device wants it.

    A variable that lies elsewhere, after it was restored by the host, moves to the device when it is read there first.
    """
    node = step.node
    on_host = [stays_on_host(node, device_type, index, output=False) for index in range(len(node.inputs))]

    def settle(index: int, variable: RefVariable) -> Any:
        value = variable.value
        if on_host[index]:
            return variables.on_host(value)
        if variable.dtype.base.kind in "srv" or memory.owns(value):
            return value
        with variable.lock:
            if not memory.owns(variable.value):
                variable.value = memory.copy_in(variables.on_host(variable.value))
            return variable.value

    return settle
