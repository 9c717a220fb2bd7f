"""Variable scopes: `get_variable` shares variables by name (TensorFlow's variable_scope).

A scope sets a name prefix and defaults for the variables made inside, and says whether variables are made or
reused. The name prefix is exact, while the name scope that goes with it is made unique.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from toolkit.client import ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import DTypeLike, as_dtype, as_shape, convert_to_tensor, tensor_proto
from toolkit.client.construction.graph import Graph
from toolkit.client.construction.internals import Also
from toolkit.client.construction.scopes import init_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.variables import initializers
from toolkit.client.variables.base import BaseVariable, SliceInfo
from toolkit.client.variables.creation import Variable
from toolkit.client.variables.partition import PartitionedVariable, Partitioner, partitioning_of
from toolkit.errors import VariableError, did_you_mean
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.metagraph import GraphKeys
from toolkit.graph.shape import Shape

Regularizer = Callable[[Tensor], "Tensor | None"]


class Reuse(enum.Enum):
    """`AUTO` makes a variable the first time and reuses it later."""

    AUTO = "auto"


AUTO_REUSE = Reuse.AUTO


@dataclass
class VariableScope:
    """The settings in force; the fields may be changed while the scope is open."""

    name: str = ""
    reuse: bool | Reuse = False
    initializer: Any = None
    regularizer: Regularizer | None = None
    caching_device: Any = None
    partitioner: Partitioner | None = None
    custom_getter: Callable[..., Any] | None = None
    dtype: DType = dtypes.float32
    use_resource: bool = False
    constraint: Callable[[Tensor], Tensor] | None = None
    name_scope: str = ""

    _name: ClassVar[Any] = Also("name")
    _reuse: ClassVar[Any] = Also("reuse")
    _initializer: ClassVar[Any] = Also("initializer")
    _regularizer: ClassVar[Any] = Also("regularizer")
    _caching_device: ClassVar[Any] = Also("caching_device")
    _partitioner: ClassVar[Any] = Also("partitioner")
    _custom_getter: ClassVar[Any] = Also("custom_getter")
    _dtype: ClassVar[Any] = Also("dtype")
    _use_resource: ClassVar[Any] = Also("use_resource")
    _constraint: ClassVar[Any] = Also("constraint")
    _name_scope: ClassVar[Any] = Also("name_scope")

    @property
    def original_name_scope(self) -> str:
        """The name scope it opened when it was first entered."""
        return self.name_scope

    def reuse_variables(self) -> None:
        """Only reuse variables from now on."""
        self.reuse = True

    def get_collection(self, name: str) -> list[Any]:
        """What is in a collection of the default graph and named inside this scope."""
        return get_default_graph().get_collection(name, f"{self.name}/" if self.name else "")

    def trainable_variables(self) -> list[Any]:
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def global_variables(self) -> list[Any]:
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self) -> list[Any]:
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def get_variable(self, name: str, *arguments: Any, **settings: Any) -> Any:
        """A variable in this scope, whichever is open (`get_variable`)."""
        with variable_scope(self, auxiliary_name_scope=False):
            return get_variable(name, *arguments, **settings)

    def set_initializer(self, initializer: Any) -> None:
        self.initializer = initializer

    def set_regularizer(self, regularizer: Regularizer | None) -> None:
        self.regularizer = regularizer

    def set_caching_device(self, caching_device: Any) -> None:
        self.caching_device = caching_device

    def set_partitioner(self, partitioner: Partitioner | None) -> None:
        self.partitioner = partitioner

    def set_custom_getter(self, custom_getter: Callable[..., Any] | None) -> None:
        self.custom_getter = custom_getter

    def set_dtype(self, dtype: DTypeLike) -> None:
        self.dtype = as_dtype(dtype)

    def set_use_resource(self, use_resource: bool) -> None:
        self.use_resource = use_resource


@dataclass
class _Store:
    """The variables of a graph by name, and the scope that is open."""

    variables: dict[str, BaseVariable] = field(default_factory=dict[str, BaseVariable])
    partitioned: dict[str, PartitionedVariable] = field(default_factory=dict[str, PartitionedVariable])
    current: VariableScope = field(default_factory=VariableScope)
    counts: dict[str, int] = field(default_factory=dict[str, int])

    def unique_scope(self, prefix: str) -> str:
        """`prefix`, or `prefix_1`, ... when a scope of that name was opened inside the current one."""
        outer = self.current.name
        full = f"{outer}/{prefix}" if outer else prefix
        if not self.counts.get(full):
            return prefix
        index = 1
        while self.counts.get(f"{full}_{index}"):
            index += 1
        return f"{prefix}_{index}"


def _store(graph: Graph) -> _Store:
    return graph.extras.setdefault(__name__, _Store())


def scope_of(graph: Graph) -> VariableScope:
    """The scope that is open in a graph."""
    return _store(graph).current


def function_store(outer: Graph, getter: Callable[..., Any]) -> Any:
    """The store of a function in which variables come from a getter; those of the graph around are known there."""
    around = _store(outer)
    return _Store(around.variables, around.partitioned, VariableScope(custom_getter=getter))


def get_variable_scope() -> VariableScope:
    """The scope that is open in the default graph."""
    return _store(get_default_graph()).current


@contextmanager
def variable_scope(
    name_or_scope: str | VariableScope | None,
    default_name: str | None = None,
    values: Sequence[Any] | None = None,
    *,
    reuse: bool | Reuse | None = None,
    auxiliary_name_scope: bool = True,
    **settings: Any,
) -> Generator[VariableScope]:
    """Open a variable scope and a name scope of the same name.

    Args:
        name_or_scope: a name inside the current scope, or a scope to enter again as it was.
        default_name: used, and made unique, when `name_or_scope` is None.
        reuse: True: `get_variable` only finds; AUTO_REUSE: finds or makes; None: as around.
        settings: initializer, regularizer, caching_device, partitioner, custom_getter, dtype, use_resource,
            constraint for the variables inside.

    Raises:
        VariableError: neither a name nor a default name, or an unknown setting.
    """
    if name_or_scope is None and default_name is None:
        raise VariableError("a variable scope needs a name or a default name")
    known = VariableScope.__dataclass_fields__.keys() - {"name", "reuse", "name_scope"}
    for key in settings:
        if key not in known:
            raise VariableError(f"a variable scope has no setting '{key}'{did_you_mean(key, known)}")
    if settings.get("dtype") is not None:
        settings["dtype"] = as_dtype(settings["dtype"])
    from toolkit.client.construction.create import graph_of

    graph = graph_of(values) if values is not None else get_default_graph()
    store = _store(graph)
    outer = store.current
    label = default_name if name_or_scope is None else name_or_scope
    text = label.name.rsplit("/", 1)[-1] if isinstance(label, VariableScope) else label or ""
    names = graph.name_scope(text) if auxiliary_name_scope and text else nullcontext("")
    with graph.as_default(), names as entered:
        if isinstance(name_or_scope, VariableScope):
            inner = replace(name_or_scope)
        else:
            part = store.unique_scope(text) if name_or_scope is None else text
            full = f"{outer.name}/{part}" if outer.name else part
            inner = replace(outer, name=full, name_scope=entered if isinstance(entered, str) else "")
        given = {key: value for key, value in settings.items() if value is not None}
        getter = given.get("custom_getter")
        if getter is not None and inner.custom_getter is not None:
            given["custom_getter"] = _compose(getter, inner.custom_getter)
        for key, value in given.items():
            setattr(inner, key, value)
        if reuse is not None:
            inner.reuse = reuse or outer.reuse
        elif outer.reuse and not inner.reuse:
            inner.reuse = outer.reuse
        store.counts[inner.name] = store.counts.get(inner.name, 0) + 1
        saved = dict(store.counts)
        store.current = inner
        try:
            yield inner
        finally:
            store.current = outer
            if isinstance(name_or_scope, VariableScope):
                store.counts = saved
            else:
                for key in store.counts:
                    if key.startswith(inner.name + "/"):
                        store.counts[key] = 0


def new_scope(
    name: str, unique_name: str | None = None, custom_getter: Callable[..., Any] | None = None
) -> VariableScope:
    """A scope in the current one, to be entered later; no name scope is opened for it.

    Args:
        name: is made unique; `unique_name` is taken instead as it is.
    """
    store = _store(get_default_graph())
    part = unique_name or store.unique_scope(name)
    with variable_scope(part, auxiliary_name_scope=False, custom_getter=custom_getter) as scope:
        return scope


def _compose(new: Callable[..., Any], old: Callable[..., Any]) -> Callable[..., Any]:
    def getter(make: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return new(lambda *a, **k: old(make, *a, **k), *args, **kwargs)

    return getter


def get_variable(
    name: str,
    shape: Any = None,
    dtype: DTypeLike = None,
    initializer: Any = None,
    regularizer: Regularizer | None = None,
    trainable: bool = True,
    collections: Sequence[str] | None = None,
    caching_device: Any = None,
    partitioner: Partitioner | None = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Callable[..., Any] | None = None,
    constraint: Callable[[Tensor], Tensor] | None = None,
) -> Any:
    """The variable `scope/name`: a new one, or the one of that name when the scope reuses.

    Args:
        initializer: a function (shape, dtype) -> tensor, or a value; default: the scope's, else glorot_uniform
            for floats and zeros otherwise.
        regularizer: a function of the variable; its result goes to REGULARIZATION_LOSSES.

    In a function it is made in the graph around, whose sessions keep it; the function takes it in.

    Raises:
        VariableError: it exists and the scope does not reuse; it does not and the scope only reuses; another shape
            or type than the existing one; no shape.
    """
    graph = get_default_graph()
    store = _store(graph)
    scope = store.current
    initializer = scope.initializer if initializer is None else initializer
    regularizer = scope.regularizer if regularizer is None else regularizer
    caching_device = scope.caching_device if caching_device is None else caching_device
    partitioner = scope.partitioner if partitioner is None else partitioner
    constraint = scope.constraint if constraint is None else constraint
    use_resource = scope.use_resource if use_resource is None else use_resource
    getter = scope.custom_getter if custom_getter is None else custom_getter
    if dtype is None:
        dtype = scope.dtype
        if initializer is not None and not callable(initializer):
            held = getattr(initializer, "dtype", None)  # a plain value is of the type that a constant of it has
            dtype = dtypes.from_enum(tensor_proto(initializer).dtype) if held is None else held
    full = f"{scope.name}/{name}" if scope.name else name
    given: dict[str, Any] = {
        "shape": shape, "dtype": dtype, "initializer": initializer, "regularizer": regularizer, "reuse": scope.reuse,
        "trainable": trainable, "collections": collections, "caching_device": caching_device,
        "partitioner": partitioner, "validate_shape": validate_shape, "use_resource": use_resource,
        "constraint": constraint,
    }  # fmt: skip

    def make(name: str, *arguments: Any, **changes: Any) -> Any:
        """What a custom getter calls, with what it was given, or with changes."""
        # what a getter leaves out, or does not know, is as the caller of get_variable said
        wanted = {**given, **dict(zip(given, arguments, strict=False))}
        wanted.update({key: value for key, value in changes.items() if key in given})
        reuse = wanted["reuse"]
        asked = dtype if wanted["dtype"] is None else wanted["dtype"]
        request = _Request(
            store, name, wanted["shape"], as_dtype(asked).base, wanted["initializer"], wanted["regularizer"],
            False if reuse is None else reuse, True if wanted["trainable"] is None else wanted["trainable"],
            wanted["collections"], wanted["caching_device"], wanted["validate_shape"], bool(wanted["use_resource"]),
            wanted["constraint"],
        )  # fmt: skip
        shape = wanted["shape"]
        is_one_number = isinstance(shape, list | tuple) and not shape
        cut = None if is_one_number else wanted["partitioner"]
        if cut is not None:
            request.name = request.name.removesuffix("/")  # of a variable that is called as its scope
        return request.partitioned(cut) if cut is not None else request.single()

    owner = graph.variables_graph
    with owner.as_default(), owner.name_scope(None):
        return make(full) if getter is None else getter(make, full, **given)


@dataclass
class _Request:
    """One call of get_variable, with the scope's defaults filled in."""

    store: _Store
    name: str
    shape: Any
    dtype: DType
    initializer: Any
    regularizer: Regularizer | None
    reuse: bool | Reuse
    trainable: bool
    collections: Sequence[str] | None
    caching_device: Any
    validate_shape: bool
    use_resource: bool
    constraint: Callable[[Tensor], Tensor] | None

    def single(self, full_shape: Shape | None = None) -> BaseVariable:
        shape = None if self.shape is None else as_shape(self.shape)
        found = self.store.variables.get(self.name)
        if found is not None:
            return self._reused(found, shape)
        if self.reuse is True:
            hint = did_you_mean(self.name, self.store.variables)
            raise VariableError(
                f"variable '{self.name}' does not exist, and the scope only reuses variables (reuse=True){hint}"
            )
        if self.name in self.store.partitioned:
            raise VariableError(f"variable '{self.name}' exists and is partitioned; give a partitioner")
        initial = self._initial_value(shape, full_shape)
        variable = Variable(
            initial, self.trainable, self.collections, self.validate_shape, self.caching_device, self.name,
            None if _is_tensor(initial) else self.dtype, self.constraint, self.use_resource,
        )  # fmt: skip
        self.store.variables[self.name] = variable
        if self.regularizer is not None:
            self._regularize(variable)
        return variable

    def _reused(self, found: BaseVariable, shape: Shape | None) -> BaseVariable:
        if self.reuse is False:
            raise VariableError(
                f"variable '{self.name}' exists already; open its scope with reuse=True or AUTO_REUSE to share it"
            )
        if shape is not None and not shape.is_compatible_with(found.static_shape):
            raise VariableError(f"variable '{self.name}' has shape {found.static_shape}; {shape} is asked for")
        if self.dtype is not found.dtype.base:
            raise VariableError(f"variable '{self.name}' has type {found.dtype.base}; {self.dtype} is asked for")
        return found

    def _initial_value(self, shape: Shape | None, full_shape: Shape | None) -> Any:
        initializer = self.initializer
        if initializer is None:
            initializer = initializers.default_for(self.dtype)
        if isinstance(initializer, type):
            initializer = initializer()
        if not callable(initializer):
            if shape is not None and hasattr(initializer, "shape") and not isinstance(initializer, BaseVariable):
                given = as_shape(initializer.shape)
                if not given.is_compatible_with(shape):
                    raise VariableError(f"the initial value of '{self.name}' has shape {given}; {shape} is asked for")
            return initializer
        if shape is None or not shape.is_fully_defined:
            raise VariableError(f"variable '{self.name}' needs a fully known shape, not {shape}")
        if full_shape is not None and isinstance(
            initializer, initializers.VarianceScaling | initializers.UniformUnitScaling
        ):
            initializer = replace(initializer, fan_shape=tuple(full_shape.as_list()))
        make: Any = initializer
        return lambda: make(shape.as_list(), self.dtype)

    def _regularize(self, variable: BaseVariable) -> None:
        assert self.regularizer is not None
        graph = variable.graph
        with graph.colocate_with(variable), graph.name_scope(self.name + "/Regularizer/"), init_scope():
            loss = self.regularizer(variable.to_tensor())
        if loss is not None:
            graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)

    def partitioned(self, partitioner: Partitioner) -> PartitionedVariable | BaseVariable:
        shape = as_shape(self.shape)
        if isinstance(self.initializer, Tensor | BaseVariable):
            shape = shape.merge(self.initializer.static_shape)
        if not shape.is_fully_defined:
            raise VariableError(f"partitioned variable '{self.name}' needs a fully known shape, not {shape}")
        found = self.store.partitioned.get(self.name)
        if found is not None:
            if self.reuse is False:
                raise VariableError(f"variable '{self.name}' exists already; open its scope with reuse to share it")
            return found
        partitioning = partitioning_of(shape, self.dtype, partitioner, self.name)
        parts: list[BaseVariable] = []
        for index, (offset, sizes) in enumerate(partitioning.slices()):
            part = replace(self, name=f"{self.name}/part_{index}", shape=list(sizes))
            if not (self.initializer is None or callable(self.initializer)):
                with get_default_graph().name_scope(f"{part.name}/PartitionedInitializer"):
                    value = convert_to_tensor(self.initializer, None if _is_tensor(self.initializer) else self.dtype)
                    cut = ops.slice(value, list(offset), list(sizes))
                part = replace(part, initializer=cut, dtype=cut.dtype.base, shape=None)
            made = part.single(shape)
            made.slice_info = SliceInfo(self.name, tuple(shape.as_list()), offset, sizes)
            parts.append(made)
        whole = PartitionedVariable(self.name, shape, self.dtype, parts, partitioning.counts)
        self.store.partitioned[self.name] = whole
        return whole


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor | BaseVariable)


def get_local_variable(name: str, *args: Any, **kwargs: Any) -> Any:
    """`get_variable` for state that is not saved: in LOCAL_VARIABLES, not trainable."""
    kwargs["trainable"] = False
    kwargs["collections"] = [*kwargs.get("collections", ()), GraphKeys.LOCAL_VARIABLES]
    return get_variable(name, *args, **kwargs)
