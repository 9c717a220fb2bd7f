# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Graph, the default graph, collections and the scopes that shape what is made."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, Self, cast

from schemas import graph_pb2, op_def_pb2, versions_pb2
from toolkit.client.construction import context, convert, create, scopes
from toolkit.client.construction.graph import Graph as ClientGraph
from toolkit.client.construction.internals import Also
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.construction.tensor_shape import TensorShape
from toolkit.client.metagraphs import importing
from toolkit.client.variables.kinds import RefVariable
from toolkit.errors import GraphError
from toolkit.graph import metagraph, opdefs
from toolkit.graph.shape import Shape


class GraphKeys(metagraph.GraphKeys):
    """The standard names of collections."""

    CONCATENATED_VARIABLES = "concatenated_variables"
    EVAL_STEP = "eval_step"
    RESOURCES = "resources"
    LOCAL_RESOURCES = "local_resources"
    SAVEABLE_OBJECTS = "saveable_objects"
    TRAINABLE_RESOURCE_VARIABLES = "trainable_resource_variables"
    VARIABLES = "variables"


class Graph(ClientGraph):
    """A graph whose tensors show their shapes as TensorShape."""

    def __init__(self) -> None:
        super().__init__()
        self._unfeedable: set[Tensor] = set()
        self._unfetchable: set[Operation] = set()

    @property
    def _nodes_by_name(self) -> dict[str, Operation]:
        return {op.name: op for op in self.get_operations()}

    @property
    def _nodes_by_id(self) -> dict[int, Operation]:
        return dict(enumerate(self.get_operations(), 1))

    @property
    def _version(self) -> int:
        return self.version

    _last_id = _version

    @property
    def _name_stack(self) -> str:
        return self._scope

    _collections = Also("collections")
    _seed = Also("seed")

    def _unsafe_unfinalize(self) -> None:
        self.unfinalize()

    def _apply_device_functions(self, op: Any) -> None:
        """Give an operation its device, or tell another object what scopes say, by its `_set_device(spec)`.

        Libraries ask for the device of the scopes around with an object of their own.
        """
        if isinstance(op, Operation):
            self.apply_devices(op)
            return
        from toolkit.tensorflow.families.train.cluster import DeviceSpec

        merged = DeviceSpec()
        for entry in reversed(self._devices):
            if entry is None:
                break
            chosen = entry(op) if callable(entry) else str(entry)
            merged = DeviceSpec.from_string(str(chosen)).make_merged_spec(merged)
            op._set_device(merged)

    def _as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> Any:
        """The GraphDef and the version of the graph."""
        return self.as_graph_def(from_version, add_shapes), self.version

    @property
    def feeds_all(self) -> bool:
        """Whether no tensor is kept from being fed."""
        return not self._unfeedable

    @property
    def fetches_all(self) -> bool:
        """Whether no operation is kept from being fetched."""
        return not self._unfetchable

    @staticmethod
    def present_shape(shape: Shape) -> TensorShape:
        return TensorShape(shape)

    @property
    def version(self) -> int:
        """A number that grows with every operation."""
        return len(self.core.nodes)

    @property
    def graph_def_versions(self) -> versions_pb2.VersionDef:
        return self.core.to_proto().versions

    def get_all_collection_keys(self) -> list[str]:
        return [key for key in self.collections if isinstance(key, str)]

    def as_graph_def(  # pyright: ignore[reportIncompatibleMethodOverride]  # TensorFlow's order
        self, from_version: int | None = None, add_shapes: bool = False, use_pybind11_proto: bool = False
    ) -> graph_pb2.GraphDef:
        """The GraphDef, all of it: neither 1.15 nor later releases look at `from_version`."""
        return super().as_graph_def(add_shapes)

    def as_graph_element(  # pyright: ignore[reportIncompatibleMethodOverride]  # TensorFlow's names
        self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Any:
        """The tensor or operation that an object or a name stands for.

        Raises:
            KeyError: the name names nothing; ValueError: it belongs to another graph, or is of the kind not allowed.
        """
        if not (allow_tensor or allow_operation):
            raise ValueError("allow_tensor and allow_operation are both False; then nothing can be found")
        if isinstance(obj, str) and not allow_operation and ":" not in obj:
            raise ValueError(f"'{obj}' names an operation; a tensor's name ends in its index, as '{obj}:0'")
        if isinstance(obj, RefVariable):
            obj = obj.handle
        found = super().as_graph_element(obj)
        # a name says what it is of, so that it is the value that is wrong
        mistake = ValueError if isinstance(obj, str) else TypeError
        if isinstance(found, Tensor) and not allow_tensor:
            raise mistake(f"'{found.name}' is a tensor, where an operation is wanted")
        if isinstance(found, Operation) and not allow_operation:
            raise mistake(f"'{found.name}' is an operation, where a tensor is wanted")
        return found

    def get_operation_by_name(self, name: str) -> Operation:
        if not isinstance(name, str):
            raise TypeError(f"an operation's name is a text, not {type(name).__name__}")
        if ":" in name:
            raise ValueError(f"'{name}' names a tensor, where an operation is wanted")
        try:
            return super().get_operation_by_name(name)
        except GraphError as error:
            raise KeyError(error.message) from None

    def get_tensor_by_name(self, name: str) -> Tensor:
        if not isinstance(name, str):
            raise TypeError(f"a tensor's name is a text, not {type(name).__name__}")
        if not re.fullmatch(r"[^:]+:[0-9]+", name) and ":" in name:
            raise ValueError(f"'{name}' is no name of a tensor, which ends in the index of an output, as 'name:0'")
        if ":" not in name:
            raise ValueError(f"'{name}' names an operation; a tensor's name ends in its index, as '{name}:0'")
        try:
            return super().get_tensor_by_name(name)
        except GraphError as error:
            raise KeyError(error.message) from None

    def add_to_collections(self, names: Any, value: Any) -> None:
        super().add_to_collections(names, value)

    def is_feedable(self, tensor: Tensor) -> bool:
        return tensor not in self._unfeedable

    def is_fetchable(self, tensor_or_op: Any) -> bool:
        return getattr(tensor_or_op, "op", tensor_or_op) not in self._unfetchable

    def prevent_feeding(self, tensor: Tensor) -> None:
        self._unfeedable.add(tensor)

    def prevent_fetching(self, op: Operation) -> None:
        self._unfetchable.add(op)

    def switch_to_thread_local(self) -> None:
        """Scopes belong to the thread that opened them already."""

    def op_def_for_type(self, type: str) -> op_def_pb2.OpDef:
        return opdefs.proto(type)

    def create_op(
        self,
        op_type: str,
        inputs: Sequence[Any],
        dtypes: Any = None,
        input_types: Any = None,
        name: str | None = None,
        attrs: Any = None,
        op_def: Any = None,
        compute_shapes: bool = True,
        compute_device: bool = True,
    ) -> Operation:
        """Add an operation by its op's name; `attrs` are AttrValue messages or values."""
        with self.as_default():
            return create.create_op(op_type, _grouped(self, op_type, list(inputs), attrs or {}), attrs, name)


def _grouped(graph: ClientGraph, op_type: str, inputs: list[Any], attrs: Any) -> list[Any]:
    """A flat list of inputs, cut into one entry for each argument of the op."""
    definition = graph.core.op_def(op_type)
    entries: list[Any] = []
    position = 0
    for arg in definition.inputs:
        if arg.number_attr or arg.type_list_attr:
            key = arg.number_attr or arg.type_list_attr
            value = attrs.get(key)
            count = len(inputs) - position if value is None else _count(value)
            entries.append(inputs[position : position + count])
            position += count
        else:
            entries.append(inputs[position])
            position += 1
    return entries


def _count(value: Any) -> int:
    if hasattr(value, "list"):
        return len(value.list.type) or int(value.i)
    return value if isinstance(value, int) else len(value)


context.use_graph_type(Graph)


def get_default_graph() -> ClientGraph:
    return context.get_default_graph()


def reset_default_graph() -> None:
    context.reset_default_graph()


class name_scope:  # noqa: N801 (TensorFlow's name)
    """The scope of one op constructor, or of any block: `with tf.name_scope("layer1") as scope:`."""

    def __init__(self, name: str | None, default_name: str | None = None, values: Sequence[Any] | None = None):
        self._name = default_name if name is None else name
        if not (default_name is None or isinstance(default_name, str)):
            raise TypeError(f"default_name is a text, not {type(default_name).__name__}")
        self._values = values
        self._missing = self._name is None and values is not None
        self._stack: list[AbstractContextManager[str]] = []

    @property
    def name(self) -> str | None:
        return self._name

    def __enter__(self) -> str:
        if self._missing:
            raise ValueError("at least one of name and default_name must be given")
        scope = scopes.name_scope(self._name, None, self._values if self._name is not None else None)
        self._stack.append(scope)
        return scope.__enter__()

    def __exit__(
        self, type_arg: type[BaseException] | None, value_arg: BaseException | None, traceback_arg: TracebackType | None
    ) -> bool | None:
        return self._stack.pop().__exit__(type_arg, value_arg, traceback_arg)


@contextmanager
def op_scope(values: Sequence[Any], name: str | None, default_name: str | None = None) -> Generator[str]:
    with scopes.name_scope(name, default_name, values) as scope:
        yield scope


def device(device_name_or_function: Any) -> AbstractContextManager[None]:
    spec = device_name_or_function
    return scopes.device(spec.to_string() if hasattr(spec, "to_string") else spec)


def colocate_with(op: Any, ignore_existing: bool = False) -> AbstractContextManager[None]:
    return scopes.colocate_with(op, ignore_existing)


def control_dependencies(control_inputs: Any) -> AbstractContextManager[None]:
    return scopes.control_dependencies(control_inputs)


def container(container_name: str) -> AbstractContextManager[str]:
    return scopes.container(container_name)


@contextmanager
def init_scope() -> Generator[None]:
    with scopes.init_scope():
        yield


def add_to_collection(name: str, value: Any) -> None:
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names: Any, value: Any) -> None:
    get_default_graph().add_to_collections(names, value)


def get_collection(key: str, scope: str | None = None) -> list[Any]:
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key: str) -> list[Any]:
    return get_default_graph().get_collection_ref(key)


def import_graph_def(
    graph_def: Any, input_map: Any = None, return_elements: Any = None, name: str | None = None, op_dict: Any = None,
    producer_op_list: Any = None,
) -> Any:  # fmt: skip
    given = graph_def
    if isinstance(given, graph_pb2.GraphDef):  # programs import one message several times; ours takes it over
        given = graph_pb2.GraphDef()
        given.CopyFrom(graph_def)
    return importing.import_graph_def(given, input_map, return_elements, name="import" if name is None else name)


def convert_to_tensor(
    value: Any, dtype: Any = None, name: str | None = None, preferred_dtype: Any = None, dtype_hint: Any = None
) -> Tensor:
    return convert.convert_to_tensor(value, dtype, name, preferred_dtype if dtype_hint is None else dtype_hint)


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const", verify_shape: bool = False) -> Any:
    return convert.constant(value, dtype, shape, name, verify_shape)


def is_tensor(x: Any) -> bool:
    return isinstance(x, Tensor) or hasattr(x, "to_tensor")


def register_tensor_conversion_function(base_type: Any, conversion_func: Callable[..., Any], priority: int = 100):
    """Make objects of a class convertible: `conversion_func(value, dtype, name, as_ref)`."""
    kinds = cast("tuple[type, ...]", base_type if isinstance(base_type, tuple) else (base_type,))

    def to_tensor(self: Any, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> Any:
        return conversion_func(self, dtype, name, as_ref)

    for kind in kinds:
        kind.to_tensor = to_tensor


class Nothing:
    """Stands where a class of TensorFlow has nothing to do here."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass
