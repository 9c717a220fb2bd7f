"""Where the kernels of a program come from: what nodes of one kind share, and what is built when it is asked for."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolkit.compiler.output_types import held_to_declaration, is_dynamic, typed
from toolkit.compiler.steps import Role, Step, never, role_of
from toolkit.compiler.unforeseen import told_of
from toolkit.errors import GraphmillError
from toolkit.graph.attrs import FuncRef
from toolkit.graph.device import DeviceSpec
from toolkit.graph.dtypes import DType
from toolkit.graph.kinds import NodeKind
from toolkit.graph.node import CONTROL_FLOW_OPS, Node
from toolkit.kernels import device_types, registry
from toolkit.kernels.boundary import through_copies
from toolkit.kernels.context import StepContext
from toolkit.kernels.registry import Kernel, KernelNode, Kind, NamedCompute
from toolkit.policy.access import Access
from toolkit.target.target import Target


@dataclass(slots=True)
class NodeForm:
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

    Attributes:
        access, defining, target, copies: as of a `Program`.
    """

    def __init__(
        self, device_type: str, access: Access | None, defining: bool, target: Target | None, copies: bool = False
    ):
        self.device_type = device_type
        self.access = access
        self.defining = defining
        self.target = target
        self.copies = copies
        self._forms: dict[NodeKind, NodeForm] = {}

    def form(self, node: Node) -> NodeForm:
        """What a node's step has in common with those of other nodes."""
        kind = node.kind
        if kind is None or not kind.is_shared or node.op in node.graph.library:
            return self._form(node)
        kind = kind.like or kind
        found = self._forms.get(kind)
        if found is None:
            found = self._forms[kind] = self._form(node)
        return found

    def fill(self, step: Step, form: NodeForm) -> None:
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
                step.compute = never
            else:
                step.kind = entry.kind
            form.is_built = True

    def example(self, node: Node) -> tuple[Step, bool]:
        """The step of a node without its inputs, and whether all nodes of its kind have its kernel or its constant."""
        form = self.form(node)
        step = Step(node, form.role, Kind.PURE, never, [], [], (), form.num_outputs)
        if form.role in (Role.KERNEL, Role.CONSTANT):
            self.fill(step, form)
        return step, form.shared is not None or form.role is not Role.KERNEL

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
        seen = KernelNode(node, self.access, self.target, self.device_type)
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

    def _form(self, node: Node) -> NodeForm:
        return NodeForm(role_of(node.op), node.input_types, node.num_outputs, _forwards_references(node))

    def _entry(self, node: Node) -> Kernel:
        """The kernel of a node; see `Program`."""
        if self.copies and registry.find(node, self.device_type, defining=self.defining) is None:
            own = registry.find(node, "CPU", defining=self.defining)
            if own is not None:
                return replace(own, factory=through_copies(own))
        return registry.get(node, self.device_type, defining=self.defining)

    def _built(self, node: Node, form: NodeForm) -> Callable[..., Any]:
        entry = form.entry
        assert entry is not None
        try:
            for definition in () if form.is_built else node.op_def.attrs.values():
                if definition.minimum is not None:  # how many outputs there are, which no kernel may ask for
                    node.attr(definition.name, None)
            seen = KernelNode(node, self.access, self.target, self.device_type)
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
    step = Step(node, role, Kind.PURE, never, inputs, [], deref, node.num_outputs, is_target=is_target)
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


def _forwards_references(node: Node) -> bool:
    """Control flow passes references on as they are, so that a loop or branch can assign to a variable."""
    return node.op in CONTROL_FLOW_OPS and node.op.startswith("Ref")


def _function_call(node: Node) -> Callable[..., Any]:
    ref = FuncRef(node.op, dict(node.attrs))
    library = node.graph.library

    def compute(step: StepContext, *args: Any) -> list[Any]:
        return step.device_functions.run(library, ref, args, step, node.name)

    return compute
