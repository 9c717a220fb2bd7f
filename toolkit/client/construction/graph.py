"""The graph while it is being made: names, scopes, devices, control dependencies, collections.

`Graph.core` is the domain model's graph (`toolkit.graph.graph.Graph`); this class adds what only the maker
needs. Names, scopes and colocation follow TensorFlow's ops.Graph, so that a program written against either
makes the same nodes.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from schemas import attr_value_pb2, graph_pb2
from toolkit.client.construction.graph_stack import default_graph
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.static_shapes import GrowingShapes
from toolkit.client.construction.tensor import Tensor
from toolkit.errors import ArgumentTypeError, ArgumentValueError, FinalizedError, GraphError, did_you_mean
from toolkit.forks import free_in_children
from toolkit.graph.attrs import encode
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph as CoreGraph
from toolkit.graph.node import Node, Output
from toolkit.graph.opdefs import OpDef
from toolkit.graph.shape import Shape
from toolkit.graph.tensorref import parse_input

if TYPE_CHECKING:
    from toolkit.client.flow.contexts import ControlFlowContext

AttrValue = attr_value_pb2.AttrValue
DeviceFunction = Callable[[Operation], "str | DeviceSpec | None"]

_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*")
_INNER_SCOPE = re.compile(r"[A-Za-z0-9_.\\/>-]*")


class _ControlInputs:
    """One `control_dependencies` block.

    Attributes:
        ops: what operations in the block wait for.
        seen: operations made in the block. One that takes such an operation's result as input waits already.
    """

    __slots__ = ("ops", "seen")

    def __init__(self, ops: list[Operation]):
        self.ops = ops
        self.seen: set[Operation] = set()


class _NameScope:
    """`Graph.name_scope`; a class, as every op constructor enters one."""

    __slots__ = ("_graph", "_name", "_outer")

    def __init__(self, graph: Graph, name: str | None):
        self._graph = graph
        self._name = name
        self._outer = ""

    def __enter__(self) -> str:
        self._outer, inner = self._graph.enter_scope(self._name)
        return inner + "/" if inner else ""

    def __exit__(self, *_: object) -> None:
        self._graph.leave_scope(self._outer)


class Graph:
    """A graph under construction.

    Attributes:
        core: the domain model's graph.
        collections: name to what was added, as in GraphKeys.
        seed: the graph seed of random ops, or None.
        control_flow_context: the conditional or loop whose body is being made, or None.
        shapes: the static shape of every output.
    """

    #: whether a function is being made, which takes in tensors of the graphs around it
    building_function = False

    seed: int | None
    collections: dict[str, list[Any]]

    def __init__(self) -> None:
        self.core = CoreGraph()
        self.collections: dict[str, list[Any]] = {}
        self.seed: int | None = None
        self.control_flow_context: ControlFlowContext | None = None
        self.shapes = GrowingShapes()
        #: per-graph state of modules above (variable store, name counters), keyed by their module
        self.extras: dict[str, Any] = {}
        self._operations: dict[Node, Operation] = {}
        self._names: dict[str, int] = {}
        self._scope = ""
        self._devices: list[DeviceFunction | DeviceSpec | None] = []
        self._controls: list[_ControlInputs] = []
        self._colocation: list[Operation] = []
        self._attr_scopes: dict[str, AttrValue] = {}
        self._gradient_overrides: dict[str, str] = {}
        self._container = ""
        self._finalized = False
        self._op_seeds = 0
        self._lock = threading.RLock()
        free_in_children(self, "_lock")

    @staticmethod
    def present_shape(shape: Shape) -> Any:
        """How tensors and variables of such a graph show their static shapes."""
        return shape

    # -- looking -----------------------------------------------------------------------------------------

    def get_operations(self) -> list[Operation]:
        """All operations in the order they were made."""
        return [self.operation(node) for node in self.core.nodes]

    def operation(self, node: Node) -> Operation:
        """The operation in front of a node of `core`; made when the node came from elsewhere (an import)."""
        found = self._operations.get(node)
        if found is None:
            self.shapes.of(node)
            found = self._adopt(node)
        return found

    def tensor(self, endpoint: Output) -> Tensor:
        """The tensor in front of an endpoint of `core`."""
        return self.operation(endpoint.node).outputs[endpoint.index]

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation of that name.

        Raises:
            GraphError: there is none; close names are suggested.
        """
        return self.operation(self.core.node(name))

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor `operation:index`.

        Raises:
            GraphError: it does not exist, or the name has no index.
        """
        ref = parse_input(name)
        if ":" not in name or ref.is_control:
            raise GraphError(f"'{name}' names an operation; a tensor's name ends in its index, as '{name}:0'")
        return self.tensor(self.core.output(ref))

    def as_graph_element(self, thing: Any) -> Tensor | Operation:
        """The tensor or operation that an object or a name stands for.

        Raises:
            GraphError: it does not exist, or belongs to another graph.
            ArgumentTypeError: it is something else.
        """
        if isinstance(thing, str):
            return self.get_tensor_by_name(thing) if ":" in thing else self.get_operation_by_name(thing)
        element = thing.graph_element() if hasattr(thing, "graph_element") else thing
        if not isinstance(element, Tensor | Operation):
            raise ArgumentTypeError(f"{thing!r} is neither a tensor nor an operation")
        if element.graph is not self:
            raise GraphError(f"'{element.name}' is not an element of this graph")
        return element

    @property
    def finalized(self) -> bool:
        return self._finalized

    def finalize(self) -> None:
        """Refuse new operations from now on."""
        self._finalized = True

    @property
    def variables_graph(self) -> Graph:
        """Where the variables are made that code in this graph asks for."""
        return self

    def unfinalize(self) -> None:
        """Take new operations again."""
        self._finalized = False

    def as_default(self) -> AbstractContextManager[Graph]:
        """Make this the graph of ops made inside the block, in this thread."""
        return default_graph(self)

    def as_graph_def(self, add_shapes: bool = False) -> graph_pb2.GraphDef:
        """The GraphDef so far.

        Args:
            add_shapes: write the inferred shapes as `_output_shapes`.
        """
        proto = self.core.to_proto()
        if add_shapes:
            for definition, op in zip(proto.node, self.get_operations(), strict=True):
                if op.outputs:
                    encode([tensor.static_shape for tensor in op.outputs], definition.attr["_output_shapes"])
        return proto

    # -- names -------------------------------------------------------------------------------------------

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """`name` inside the current scope, with `_1`, `_2`, ... when it is taken. Case does not distinguish."""
        full = f"{self._scope}/{name}" if self._scope else name
        key = full.lower()
        count = self._names.get(key, 0)
        if mark_as_used:
            self._names[key] = count + 1
        if count == 0:
            return full
        candidate = f"{key}_{count}"
        while candidate in self._names:
            count += 1
            candidate = f"{key}_{count}"
        if mark_as_used:
            self._names[candidate] = 1
        return f"{full}_{count}"

    def get_name_scope(self) -> str:
        """The current scope, without a trailing slash."""
        return self._scope

    def name_scope(self, name: str | None) -> _NameScope:
        """Put the names made inside under `name/`; yields the scope with its slash.

        None or "" goes back to the root; a name that ends in "/" enters that scope again as it is.

        Raises:
            GraphError: the name has characters that names may not have.
        """
        return _NameScope(self, name)

    def enter_scope(self, name: str | None) -> tuple[str, str]:
        """What `name_scope` does on entry; returns the scope that was open and the new one, without slashes."""
        outer = self._scope
        if name and not (_INNER_SCOPE if outer else _NAME).fullmatch(name):
            raise GraphError(f"'{name}' is not a scope name; expected letters, digits and any of _ . \\ / > -")
        if not name:
            inner = ""
        elif name.endswith("/"):
            inner = name[:-1]
        else:
            inner = self.unique_name(name)
        self._scope = inner
        return outer, inner

    def leave_scope(self, outer: str) -> None:
        """Go back to the scope that was open before."""
        self._scope = outer

    # -- scopes that shape what is made inside -------------------------------------------------------------

    @contextmanager
    def device(self, spec: str | DeviceSpec | DeviceFunction | None) -> Generator[None]:
        """Place the operations made inside.

        A name fills in what inner scopes leave open (the innermost wins field by field); a function gets the
        operation and returns its device; None shuts outer device scopes off.

        Raises:
            ArgumentValueError: the text is not a device name; "gpu:0" and "/gpu" are short for some.
        """
        self._devices.append(DeviceSpec.parse_scope(spec) if isinstance(spec, str) else spec)
        try:
            yield
        finally:
            self._devices.pop()

    @property
    def innermost_device(self) -> DeviceFunction | DeviceSpec | None:
        """What the innermost device scope says; None where there is none."""
        return self._devices[-1] if self._devices else None

    @contextmanager
    def colocate_with(self, target: Any, ignore_existing: bool = False) -> Generator[None]:
        """Place the operations made inside with `target` (an operation, tensor or variable).

        Device scopes outside do not reach in. `ignore_existing` drops outer colocations; `target` may be None
        then.
        """
        if target is None and not ignore_existing:
            raise ArgumentValueError("there is nothing to be placed with; None is for ignore_existing=True")
        devices, colocation = self._devices, self._colocation
        with_target = [] if target is None else [_operation_of(target, self.core)]
        self._devices = []
        self._colocation = [*([] if ignore_existing else colocation), *with_target]
        try:
            yield
        finally:
            self._devices, self._colocation = devices, colocation

    @contextmanager
    def control_dependencies(self, control_inputs: Sequence[Any] | None) -> Generator[None]:
        """Make the operations created inside wait for `control_inputs` (operations, tensors, variables).

        None clears the dependencies, and leaves the control-flow context, inside the block.
        """
        controls, flow = self._controls, self.control_flow_context
        if control_inputs is None:
            self._controls = []
            self.control_flow_context = None
        else:
            waited = dict.fromkeys(
                self.get_operation_by_name(thing.partition(":")[0])
                if isinstance(thing, str)
                else _operation_of(thing, self.core)
                for thing in control_inputs
            )
            self._controls = [*controls, _ControlInputs(list(waited))]
        try:
            yield
        finally:
            self._controls, self.control_flow_context = controls, flow

    @contextmanager
    def attr_scope(self, attrs: Mapping[str, Any]) -> Generator[None]:
        """Set attributes on the operations made inside that do not have them; None takes one out again."""
        outer = self._attr_scopes
        merged = {**outer, **{key: None if value is None else encode(value) for key, value in attrs.items()}}
        self._attr_scopes = {key: value for key, value in merged.items() if value is not None}
        try:
            yield
        finally:
            self._attr_scopes = outer

    @contextmanager
    def gradient_override_map(self, overrides: Mapping[str, str]) -> Generator[None]:
        """Use other gradient functions, by registered name, for op types made inside (`_gradient_op_type`)."""
        names = [*overrides, *overrides.values()] if isinstance(overrides, Mapping) else [overrides]
        if not all(isinstance(name, str) for name in names):
            raise ArgumentTypeError(f"what overrides gradients is a dict from ops to names, not {overrides!r}")
        outer = self._gradient_overrides
        self._gradient_overrides = {**outer, **overrides}
        try:
            yield
        finally:
            self._gradient_overrides = outer

    @contextmanager
    def container(self, name: str) -> Generator[str]:
        """Put the stateful operations made inside into a resource container."""
        outer = self._container
        self._container = name
        try:
            yield name
        finally:
            self._container = outer

    def next_op_seed(self) -> int:
        """The seed of the next random op that was given none."""
        self._op_seeds += 1
        return self._op_seeds - 1

    # -- collections -------------------------------------------------------------------------------------

    def add_to_collection(self, name: str, value: Any) -> None:
        self._check_open()
        self.collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: str | Iterable[str], value: Any) -> None:
        for name in dict.fromkeys([names] if isinstance(names, str) else names):
            self.add_to_collection(name, value)

    def get_collection_ref(self, name: str) -> list[Any]:
        """The list itself; changing it changes the collection."""
        return self.collections.setdefault(name, [])

    def get_collection(self, name: str, scope: str | None = None) -> list[Any]:
        """A copy of a collection; with `scope`, the items whose name matches that pattern from its start."""
        items = self.collections.get(name, [])
        if scope is None:
            return list(items)
        pattern = re.compile(scope)
        return [item for item in items if hasattr(item, "name") and pattern.match(item.name)]

    def clear_collection(self, name: str) -> None:
        self.collections.pop(name, None)

    # -- making ------------------------------------------------------------------------------------------

    def create_node(
        self,
        op_def: OpDef,
        inputs: Sequence[Tensor],
        attrs: Mapping[str, AttrValue],
        name: str | None,
        *,
        compute_device: bool = True,
    ) -> Operation:
        """Append one operation. Callers are op constructors: inputs and attributes are checked already.

        Args:
            name: made unique in the current scope; a trailing "/" says that it is complete as it is. Without one it is
                the op's.

        Raises:
            GraphError: the graph is finalized, an input is of another graph, a shape function objects.
        """
        self._check_open()
        inputs = [tensor if tensor.graph is self else self.capture(tensor) for tensor in inputs]
        name = op_def.name if name is None else name
        with self._lock:
            full = name[:-1] if name.endswith("/") else self.unique_name(name)
            if not _NAME.fullmatch(full):
                raise GraphError(f"'{full}' is not a name for an operation; expected letters, digits and _ . / > -")
            waits = self.waits_for({tensor.op for tensor in inputs})
            node = self.core.add(
                op_def.name,
                full,
                [tensor.output for tensor in inputs],
                control_inputs=sorted((op.node for op in waits), key=lambda waited: waited.name),
                attrs=attrs,
            )
            try:
                self.shapes.update(node)
                op = self._adopt(node, self.control_flow_context)
            except GraphError:
                self.core.remove([node])
                raise
            if self.control_flow_context is not None:
                self.control_flow_context.add_op(op)
            self._decorate(op, op_def, compute_device)
            self.record_seen(op)
        return op

    def capture(self, tensor: Tensor) -> Tensor:
        """What stands for a tensor of another graph in this one; only functions take any in.

        Raises:
            GraphError: this is no function.
        """
        raise GraphError(f"'{tensor.name}' belongs to another graph")

    def record_seen(self, op: Operation) -> None:
        """Note that an operation was made under the current control dependencies."""
        for controls in self._controls:
            controls.seen.add(op)

    def _adopt(self, node: Node, flow: ControlFlowContext | None = None) -> Operation:
        types = node.output_types
        op = Operation(self, node, flow)
        op.outputs = [Tensor(op, i, dtype) for i, dtype in enumerate(types)]
        self._operations[node] = op
        return op

    def waits_for(self, sources: Iterable[Operation]) -> dict[Operation, None]:
        """The control inputs of a new operation with these inputs: those that no input implies already."""
        sources = set(sources)
        waits: dict[Operation, None] = {}
        for controls in self._controls:
            if not sources & controls.seen:
                waits.update((op, None) for op in controls.ops if op not in sources)
        return waits

    def _decorate(self, op: Operation, op_def: OpDef, compute_device: bool) -> None:
        """What the scopes around say about a new operation."""
        attrs = op.node.attrs
        for key, value in self._attr_scopes.items():
            if key not in attrs:
                attrs[key] = value
        override = self._gradient_overrides.get(op.type)
        if override is not None:
            attrs["_gradient_op_type"] = override
        if compute_device:
            self.apply_devices(op)
        if self._colocation:
            groups = {group for target in self._colocation for group in target.colocation_groups()}
            attrs["_class"] = sorted(groups)
            device = next((target.device for target in reversed(self._colocation) if target.device), None)
            if device is not None:
                op.node.device = device
        if self._container and op_def.is_stateful and "container" in op_def.attrs and not attrs.get("container"):
            attrs["container"] = self._container

    def apply_devices(self, op: Operation) -> None:
        """Give an operation the device that the scopes around say."""
        for entry in reversed(self._devices):
            if entry is None:
                break
            if isinstance(entry, DeviceSpec):
                op.node.device = str(DeviceSpec.parse(op.node.device).override(entry))
            else:
                chosen: Any = entry(op)
                if not isinstance(chosen, str | DeviceSpec) and not hasattr(chosen, "to_string"):
                    said = f"a device function returned {chosen!r} for '{op.name}'; expected a device, or '' for none"
                    raise ArgumentTypeError(said)
                op.node.device = chosen if isinstance(chosen, str) else getattr(chosen, "to_string", chosen.__str__)()

    def _check_open(self) -> None:
        if self._finalized:
            raise FinalizedError("the graph is finalized and cannot be changed")

    def mark_names_used(self, names: Iterable[str]) -> None:
        """Reserve names (and the scopes they are in) of nodes that were put into `core` directly."""
        for name in names:
            parts = name.lower().split("/")
            for length in range(1, len(parts) + 1):
                self._names.setdefault("/".join(parts[:length]), 1)


def _operation_of(thing: Any, graph: CoreGraph) -> Operation:
    """The operation that an operation, tensor, variable or IndexedSlices of a graph stands for.

    Raises:
        ArgumentTypeError: it is something else.
    """
    if isinstance(thing, Operation):
        return thing
    op = getattr(thing, "op", None)
    if isinstance(op, Operation):
        return op
    if isinstance(thing, str):
        hint = did_you_mean(thing, [node.name for node in graph.nodes])
        raise ArgumentTypeError(f"'{thing}' is a name; give the operation or tensor itself{hint}")
    raise ArgumentTypeError(f"{thing!r} is neither an operation nor a tensor nor a variable")
