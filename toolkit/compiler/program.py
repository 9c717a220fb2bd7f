"""A graph made ready to run on one device: kernels built, inputs resolved, frames known.

Both executors (`flat`, `tokens`) run a `Program`; it holds nothing of a particular step.
"""

from __future__ import annotations

import enum
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from toolkit.compiler.output_types import held_to_declaration, is_dynamic, typed
from toolkit.compiler.unforeseen import told_of
from toolkit.errors import (
    FailedPreconditionError,
    GraphError,
    GraphmillError,
    InternalError,
    InvalidGraphError,
    OpError,
)
from toolkit.graph.attrs import FuncRef
from toolkit.graph.check import check_inputs
from toolkit.graph.device import DeviceSpec
from toolkit.graph.dtypes import DType
from toolkit.graph.frames import StaticFrame, assign_frames
from toolkit.graph.graph import Graph
from toolkit.graph.kinds import NodeKind
from toolkit.graph.node import (
    CONTROL_FLOW_OPS,
    ENTER_OPS,
    EXIT_OPS,
    MERGE_OPS,
    NEXT_ITERATION_OPS,
    SWITCH_OPS,
    Node,
    Output,
)
from toolkit.kernels import device_types, registry, variables
from toolkit.kernels.boundary import through_copies
from toolkit.kernels.context import RefVariable, StepContext
from toolkit.kernels.device_memory import DeviceMemory
from toolkit.kernels.facts import stays_on_host
from toolkit.kernels.registry import Kernel, KernelNode, Kind, NamedCompute
from toolkit.limits.exhaustion import Alive
from toolkit.policy.access import Access
from toolkit.target.target import Target


class Role(enum.Enum):
    """What the executor does with a node."""

    __hash__ = object.__hash__  # members are what they are; Enum's own is a call for every node

    KERNEL = enum.auto()
    CONSTANT = enum.auto()
    ARG = enum.auto()
    RETVAL = enum.auto()
    SWITCH = enum.auto()
    MERGE = enum.auto()
    ENTER = enum.auto()
    EXIT = enum.auto()
    NEXT_ITERATION = enum.auto()
    LOOP_COND = enum.auto()
    SEND = enum.auto()
    TRIGGER = enum.auto()
    SEGMENT = enum.auto()  # several nodes, compiled (`compiler/segments`)


_ROLES: dict[str, Role] = {
    **dict.fromkeys(SWITCH_OPS, Role.SWITCH),
    **dict.fromkeys(MERGE_OPS, Role.MERGE),
    **dict.fromkeys(ENTER_OPS, Role.ENTER),
    **dict.fromkeys(EXIT_OPS, Role.EXIT),
    **dict.fromkeys(NEXT_ITERATION_OPS, Role.NEXT_ITERATION),
    "LoopCond": Role.LOOP_COND,
    **dict.fromkeys(("_Arg", "_DeviceArg"), Role.ARG),
    **dict.fromkeys(("_Retval", "_DeviceRetval"), Role.RETVAL),
    **dict.fromkeys(("Const", "HostConst"), Role.CONSTANT),
    **dict.fromkeys(("_Send", "_HostSend"), Role.SEND),
    "ControlTrigger": Role.TRIGGER,
}


def role_of(op: str) -> Role:
    """What the executor does with nodes of an op."""
    return _ROLES.get(op, Role.KERNEL)


_VARIABLES = frozenset({"Variable", "VariableV2"})
_HANDS_ON = frozenset({"Identity", "IdentityN", "Snapshot", "StopGradient", "PreventGradient"})


@dataclass(slots=True)
class Step:
    """One node of a program, in execution order.

    Attributes:
        inputs: where each data input comes from, as (step index, output index).
        controls: the steps it waits for.
        deref: positions of inputs that carry a reference where the op wants a plain tensor.
        num_outputs: how many outputs the kernel returns.
        index: for ARG and RETVAL, which argument or result.
        constant: the value of a CONSTANT.
        is_target: whoever runs the program asked for it to run, not for what it puts out.
        settle: on a device that keeps variables in its memory: gives a variable's value where an input is wanted.
        kernels: where `compute` comes from when it is first asked for, where it has not been built.
    """

    node: Node
    role: Role
    kind: Kind
    compute: Callable[..., Any]
    inputs: list[tuple[int, int]]
    controls: list[int]
    deref: tuple[int, ...]
    num_outputs: int
    index: int = 0
    constant: Any = None
    is_target: bool = False
    settle: Callable[[int, RefVariable], Any] | None = None
    kernels: ProgramKernels | None = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Build the kernel: Python asks here for what has not been set."""
            if name != "compute":
                raise AttributeError(name)
            self.compute = self.kernels.compute(self.node)
            return self.compute


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
        self.steps = [_make_step(node, position, kernels) for node in ordered]
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
        return made


@dataclass(slots=True)
class _Form:
    """What the steps of nodes of one kind have in common.

    Attributes:
        wanted: the type of each input, reference types included.
        entry: the kernel, when it has been looked for; None for functions that are called by their names.
        is_dynamic: the types of its outputs are looked at when it has run.
        constant: the value of a CONSTANT.
        is_built: a kernel has been built of it.
        shared: the kernel of all of them, where it is pure and has seen nothing of its node but what they share.
    """

    role: Role
    wanted: Sequence[DType]
    num_outputs: int
    forwards_references: bool
    entry: Kernel | None = None
    is_dynamic: bool = False
    constant: Any = None
    is_built: bool = False
    shared: Callable[..., Any] | None = None


class ProgramKernels:
    """Where the kernels of a program come from; see `Program`.

    In large graphs the same few nodes come again and again: what follows from op and attributes is found once for all
    nodes of one kind. Of pure kernels the first of a kind is built at once, to know that its node can be run; the
    others when they are asked for, and most never are, for they become parts of what is compiled.
    """

    def __init__(
        self, device_type: str, access: Access | None, defining: bool, target: Target | None, copies: bool = False
    ):
        self.device_type = device_type
        self._access = access
        self._defining = defining
        self._target = target
        self._copies = copies
        self._forms: dict[NodeKind, _Form] = {}

    def form(self, node: Node) -> _Form:
        """What a node's step has in common with those of other nodes."""
        kind = node.kind
        if kind is None or not kind.is_shared or node.op in node.graph.library:
            return self._form(node)
        kind = kind.like or kind
        found = self._forms.get(kind)
        if found is None:
            found = self._forms[kind] = self._form(node)
        return found

    def fill(self, step: Step, form: _Form) -> None:
        """Give a step its kernel, or its constant."""
        node = step.node
        if form.is_built:
            if form.role is Role.CONSTANT:
                step.constant = form.constant
                return
            assert form.entry is not None
            step.kind = form.entry.kind
            if form.shared is not None:
                step.compute = form.shared
            elif step.kind is Kind.PURE and not form.entry.is_foreign:
                step.kernels = self
                del step.compute  # it is built when it is asked for
            else:
                step.compute = self._built(node, form)
        elif node.op in node.graph.library:  # a function called by its own name
            step.kind, step.compute = Kind.STATEFUL, typed(_function_call(node), Kind.STATEFUL, node)
        else:
            entry = form.entry = self._entry(node)
            form.is_dynamic = is_dynamic(node)
            step.compute = self._built(node, form)
            if form.role is Role.CONSTANT:
                step.constant = form.constant = step.compute()
                step.compute = _never
            else:
                step.kind = entry.kind
            form.is_built = True

    def example(self, node: Node) -> tuple[Step, bool]:
        """The step of a node without its inputs, and whether all nodes of its kind have its kernel or its constant."""
        form = self.form(node)
        step = Step(node, form.role, Kind.PURE, _never, [], [], (), form.num_outputs)
        if form.role in (Role.KERNEL, Role.CONSTANT):
            self.fill(step, form)
        return step, form.shared is not None or form.role is not Role.KERNEL

    def program(self, graph: Graph) -> Program:
        """The program of another graph, on the same device."""
        return Program(
            graph, self.device_type, access=self._access, defining=self._defining, target=self._target,
            copies=self._copies,
        )  # fmt: skip

    def own(self, node: Node) -> tuple[Callable[..., Any], Kind]:
        """The kernel of a node, built for it, and of which kind it is; no function is called by its name."""
        form = self.form(node)
        if form.entry is None:
            form.entry, form.is_dynamic = self._entry(node), is_dynamic(node)
        return self._built(node, form), form.entry.kind

    def by_names(self, node: Node) -> NamedCompute | None:
        """What makes the kernels of all nodes of a kind, of their names; None where each is built of its node."""
        form = self.form(node)
        if form.entry is None or form.is_dynamic or form.entry.is_foreign or self.device_type != "CPU":
            return None
        seen = KernelNode(node, self._access, self._target, self.device_type)
        found = registry.by_names(form.entry, seen)
        return None if seen.is_own else found

    def compute(self, node: Node) -> Callable[..., Any]:
        """The kernel of a node."""
        if node.op in node.graph.library:
            return typed(_function_call(node), Kind.STATEFUL, node)
        form = self.form(node)
        if form.entry is None:
            form.entry, form.is_dynamic = self._entry(node), is_dynamic(node)
        return self._built(node, form)

    def _form(self, node: Node) -> _Form:
        return _Form(role_of(node.op), node.input_types, node.num_outputs, _forwards_references(node))

    def _entry(self, node: Node) -> Kernel:
        """The kernel of a node; see `Program`."""
        if self._copies and registry.find(node, self.device_type, defining=self._defining) is None:
            own = registry.find(node, "CPU", defining=self._defining)
            if own is not None:
                return replace(own, factory=through_copies(own))
        return registry.get(node, self.device_type, defining=self._defining)

    def _built(self, node: Node, form: _Form) -> Callable[..., Any]:
        entry = form.entry
        assert entry is not None
        try:
            for definition in () if form.is_built else node.op_def.attrs.values():
                if definition.minimum is not None:  # how many outputs there are, which no kernel may ask for
                    node.attr(definition.name, None)
            seen = KernelNode(node, self._access, self._target, self.device_type)
            built = entry.factory(seen)
            is_own, kept = seen.is_own, weakref.ref(seen)
            del seen
        except GraphmillError as error:
            raise error.at(node=node.name) from None
        except Exception as error:
            raise told_of(error, node) from error
        compute: Callable[..., Any] = device_types.watched(self.device_type, built, node.name)
        # a kernel that keeps what it was built of may look there for its node when it runs
        is_pure = entry.kind is Kind.PURE and not entry.is_foreign and not form.is_dynamic
        if is_pure and self.device_type == "CPU" and not is_own and kept() is None and compute is built:
            form.shared = compute
        if entry.is_foreign:
            return held_to_declaration(compute, entry.kind, node, self.device_type)
        return typed(compute, entry.kind, node) if form.is_dynamic else compute


def _make_step(node: Node, position: list[int], kernels: ProgramKernels) -> Step:
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
                if position[src.id] not in controls:
                    controls.append(position[src.id])
                src, index = variable
        types, want = src.output_types, wanted[i]
        found = types[index] if 0 <= index < len(types) else None
        if found is not want:
            if found is None or found.base is not want.base or (want.is_ref and not found.is_ref):
                raise _bad_inputs(node)
            if found.is_ref and not want.is_ref and not form.forwards_references:
                deref = (*deref, i)
        inputs.append((position[src.id], index))
    step = Step(node, role, Kind.PURE, _never, inputs, controls, deref, form.num_outputs)
    if role is Role.ENTER:
        node.attr("is_constant", False)  # refused here, whoever runs it
    if role in (Role.ARG, Role.RETVAL):
        step.index = node.attr("index")
    elif role in (Role.KERNEL, Role.SEND, Role.TRIGGER, Role.CONSTANT):
        kernels.fill(step, form)
    return step


def step_of(node: Node, deref: tuple[int, ...] = (), *, is_target: bool = False) -> Step:
    """The step of a node that stands by itself, with no program around it; its kernel is built when it first runs.

    Args:
        deref, is_target: see `Step`.

    Raises:
        GraphError: there is no such op, or the node lacks an attribute.
        UnimplementedError: the op has no kernel.
    """
    role = role_of(node.op)
    inputs = [(0, 0)] * len(node.input_types)
    step = Step(node, role, Kind.PURE, _never, inputs, [], deref, node.num_outputs, is_target=is_target)
    if role in (Role.KERNEL, Role.SEND, Role.TRIGGER):
        is_call = node.op in node.graph.library
        step.kind = Kind.STATEFUL if is_call else registry.get(node, _type_of_device(node)).kind
        step.compute = _BuiltLater(node)
    return step


def _type_of_device(node: Node) -> str:
    return DeviceSpec.parse(node.device).device_type or "CPU"


class _BuiltLater:
    """A kernel that is built when it first runs."""

    __slots__ = ("_compute", "_node")

    def __init__(self, node: Node):
        self._node = node
        self._compute: Callable[..., Any] | None = None

    def __call__(self, *args: Any) -> Any:
        if self._compute is None:
            self._compute = ProgramKernels(_type_of_device(self._node), None, False, None).compute(self._node)
        return self._compute(*args)


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


def _variable_read(node: Node) -> Output | None:
    """The reference behind the `read` of a variable, an Identity.

    In TensorFlow a plain tensor read from a reference shares the variable's memory: whoever uses it after an update
    sees the updated value, as moving averages of weights do that run after the optimizer. Those who use a read
    therefore look at the variable itself.
    """
    if node.op != "Identity" or not node.inputs:
        return None
    source = node.inputs[0]
    return source if source.node.op in _VARIABLES else None


def _bad_inputs(node: Node) -> InvalidGraphError:
    """What is wrong with how many inputs a node has, or with their types, in the words of `validate`."""
    return InvalidGraphError(next(check_inputs(node, node.op_def)).message, node=node.name)


def _forwards_references(node: Node) -> bool:
    """Control flow passes references on as they are, so that a loop or branch can assign to a variable."""
    return node.op in CONTROL_FLOW_OPS and node.op.startswith("Ref")


def _function_call(node: Node) -> Callable[..., Any]:
    ref = FuncRef(node.op, dict(node.attrs))
    library = node.graph.library

    def compute(step: StepContext, *args: Any) -> list[Any]:
        return step.device_functions.run(library, ref, args, step, node.name)

    return compute


def _never(*_: Any) -> Any:
    raise AssertionError("the executor handles this role itself")


def dereference(step: Step, args: list[Any]) -> None:
    """Replace references by the variables' present values where the op wants plain tensors.

    Raises:
        FailedPreconditionError: a variable was not initialised.
    """
    for i in step.deref:
        variable = args[i]
        if variable is None:
            continue  # of a Merge: from the branch that was not taken
        value = variable.value
        if value is None:
            raise FailedPreconditionError(f"Attempting to use uninitialized value {variable.name}")
        args[i] = variables.on_host(value) if step.settle is None else step.settle(i, variable)


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


def locate(
    error: BaseException,
    step: Step,
    alive: Callable[[], Alive] = lambda: (),
    values: Sequence[Any] | None = None,
) -> BaseException:
    """Say where a failing kernel is.

    An unexpected exception is told as the rule of the op that the node breaks; where it breaks none it becomes an
    InternalError that keeps its cause.

    Args:
        alive: names and values that are there, asked where memory has run out.
        values: of the inputs, where they are still there.
    """
    node = step.node
    if isinstance(error, GraphmillError):
        return error.at(node=node.name)
    told = told_of(error, node, alive() if isinstance(error, MemoryError) else (), values)
    if not isinstance(error, MemoryError):
        told.__cause__ = error
    return told


def as_outputs(step: Step, result: Any) -> Sequence[Any]:
    """The outputs of a kernel as a sequence, checked for their number.

    Raises:
        OpError: the kernel returned another number of outputs than its OpDef says (a bug in the kernel).
    """
    outputs: Sequence[Any]
    if isinstance(result, tuple | list):
        outputs = cast("Sequence[Any]", result)
    elif step.num_outputs == 0:
        outputs = ()
    else:
        outputs = (result,)
    if len(outputs) != step.num_outputs:
        raise _wrong_count(step, len(outputs))
    return outputs


def _wrong_count(step: Step, count: int) -> OpError:
    return InternalError(f"the kernel of {step.node.op} returned {count} output(s), not {step.num_outputs}")
