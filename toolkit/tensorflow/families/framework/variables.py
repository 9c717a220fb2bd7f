# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Variable, get_variable, variable scopes, and what initializes variables."""

from __future__ import annotations

import enum
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from toolkit.client import ops
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.metagraphs import importing
from toolkit.client.variables import by_collection, creation, partition, store
from toolkit.client.variables.base import BaseVariable
from toolkit.client.variables.scatter import scatter
from toolkit.errors import GraphError
from toolkit.tensorflow.families.layers import initializers


class VariableSynchronization(enum.Enum):
    """When copies of a variable are brought together; there is one copy here."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """How updates of a variable's copies are joined; there is one copy here."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


#: whether variables are resources where nobody says
_resources = [False]


def enable_resource_variables() -> None:
    _resources[0] = True


def disable_resource_variables() -> None:
    _resources[0] = False


def resource_variables_enabled() -> bool:
    return _resources[0]


class _VariableType(type):
    """Makes `tf.Variable(...)` the right kind, and all kinds instances of tf.Variable."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return _make(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, BaseVariable)


class Variable(BaseVariable, metaclass=_VariableType):
    """State that outlives a step."""

    @staticmethod
    def from_proto(variable_def: Any, import_scope: str | None = None) -> BaseVariable:
        """The variable of a VariableDef whose nodes are in the default graph, under a scope's name."""
        return importing.variable_from_proto(variable_def, f"{import_scope}/" if import_scope else "")


def _make(
    initial_value: Any = None, trainable: Any = None, collections: Any = None, validate_shape: bool = True,
    caching_device: Any = None, name: Any = None, variable_def: Any = None, dtype: Any = None,
    expected_shape: Any = None, import_scope: Any = None, constraint: Any = None, use_resource: Any = None,
    synchronization: Any = VariableSynchronization.AUTO, aggregation: Any = VariableAggregation.NONE, shape: Any = None,
) -> BaseVariable:  # fmt: skip
    if initial_value is None:
        raise ValueError("a variable needs an initial_value")
    return creation.Variable(
        initial_value, True if trainable is None else trainable, collections, validate_shape, caching_device, name,
        dtype, constraint, _resources[0] if use_resource is None else use_resource, shape,
    )  # fmt: skip


AUTO_REUSE = store.AUTO_REUSE


def get_variable_scope() -> Any:
    return store.get_variable_scope()


def get_variable(
    name: str, shape: Any = None, dtype: Any = None, initializer: Any = None, regularizer: Any = None,
    trainable: Any = None, collections: Any = None, caching_device: Any = None, partitioner: Any = None,
    validate_shape: bool = True, use_resource: Any = None, custom_getter: Any = None, constraint: Any = None,
    synchronization: Any = VariableSynchronization.AUTO, aggregation: Any = VariableAggregation.NONE,
) -> Any:  # fmt: skip
    if use_resource is None and _resources[0]:
        use_resource = True
    try:
        return store.get_variable(
            name, shape, dtype, initializers.plain(initializer), regularizer, True if trainable is None else trainable,
            collections, caching_device, partitioner, validate_shape, use_resource, custom_getter, constraint,
        )  # fmt: skip
    except GraphError as error:  # programs catch ValueError where a variable exists already
        raise ValueError(error.message) from None


def get_local_variable(
    name: str, shape: Any = None, dtype: Any = None, initializer: Any = None, regularizer: Any = None,
    trainable: Any = False, collections: Any = None, caching_device: Any = None, partitioner: Any = None,
    validate_shape: bool = True, use_resource: Any = None, custom_getter: Any = None, constraint: Any = None,
    synchronization: Any = VariableSynchronization.AUTO, aggregation: Any = VariableAggregation.NONE,
) -> Any:  # fmt: skip
    return store.get_local_variable(
        name, shape, dtype, initializers.plain(initializer), regularizer, collections=list(collections or ()),
        caching_device=caching_device, partitioner=partitioner, validate_shape=validate_shape,
        use_resource=use_resource, custom_getter=custom_getter, constraint=constraint,
    )  # fmt: skip


class variable_scope:  # noqa: N801 (TensorFlow's name)
    """`with tf.variable_scope("layer1", reuse=tf.AUTO_REUSE) as scope:`."""

    def __init__(
        self, name_or_scope: Any, default_name: Any = None, values: Any = None, initializer: Any = None,
        regularizer: Any = None, caching_device: Any = None, partitioner: Any = None, custom_getter: Any = None,
        reuse: Any = None, dtype: Any = None, use_resource: Any = None, constraint: Any = None,
        auxiliary_name_scope: bool = True,
    ):  # fmt: skip
        if default_name is None and name_or_scope is None:
            raise TypeError("a variable scope needs name_or_scope or default_name")
        settings = {
            "initializer": initializers.plain(initializer), "regularizer": regularizer,
            "caching_device": caching_device, "partitioner": partitioner, "custom_getter": custom_getter,
            "dtype": dtype, "use_resource": use_resource, "constraint": constraint,
        }  # fmt: skip
        self._arguments: Any = (name_or_scope, default_name, values)
        self._options: dict[str, Any] = {k: v for k, v in settings.items() if v is not None}
        self._options.update(reuse=reuse, auxiliary_name_scope=auxiliary_name_scope)
        self._entered: list[AbstractContextManager[Any]] = []

    def __enter__(self) -> Any:
        scope = store.variable_scope(*self._arguments, **self._options)
        self._entered.append(scope)
        return scope.__enter__()

    def __exit__(
        self, type_arg: type[BaseException] | None, value_arg: BaseException | None, traceback_arg: TracebackType | None
    ) -> bool | None:
        return self._entered.pop().__exit__(type_arg, value_arg, traceback_arg)


def global_variables(scope: Any = None) -> list[Any]:
    return by_collection.global_variables(scope)


def all_variables() -> list[Any]:
    return by_collection.global_variables()


def local_variables(scope: Any = None) -> list[Any]:
    return by_collection.local_variables(scope)


def trainable_variables(scope: Any = None) -> list[Any]:
    return by_collection.trainable_variables(scope)


def model_variables(scope: Any = None) -> list[Any]:
    return _collected("model_variables", scope)


def moving_average_variables(scope: Any = None) -> list[Any]:
    return _collected("moving_average_variables", scope)


def _collected(key: str, scope: Any) -> list[Any]:
    from toolkit.client.construction.context import get_default_graph

    return get_default_graph().get_collection(key, scope)


def global_variables_initializer() -> Operation:
    return by_collection.global_variables_initializer()


def initialize_all_variables() -> Operation:
    return by_collection.global_variables_initializer()


def local_variables_initializer() -> Operation:
    return by_collection.local_variables_initializer()


def initialize_local_variables() -> Operation:
    return by_collection.local_variables_initializer()


def variables_initializer(var_list: Any, name: str = "init") -> Operation:
    return by_collection.variables_initializer(list(var_list), name)


def initialize_variables(var_list: Any, name: str = "init") -> Operation:
    return by_collection.variables_initializer(list(var_list), name)


def tables_initializer(name: str = "init_all_tables") -> Operation:
    return by_collection.tables_initializer(name)


def initialize_all_tables(name: str = "init_all_tables") -> Operation:
    return by_collection.tables_initializer(name)


def report_uninitialized_variables(var_list: Any = None, name: str = "report_uninitialized_variables") -> Tensor:
    return by_collection.report_uninitialized_variables(var_list, name)


def is_variable_initialized(variable: Any) -> Tensor:
    return variable.is_initialized()


def assign(ref: Any, value: Any, validate_shape: Any = None, use_locking: Any = None, name: Any = None) -> Any:
    if isinstance(ref, BaseVariable) and ref.is_resource:
        return ref.assign(value, name=name)
    handle = getattr(ref, "handle", ref)
    check = True if validate_shape is None else validate_shape
    return ops.assign(
        handle, value, validate_shape=check, use_locking=True if use_locking is None else use_locking, name=name
    )


def assign_add(ref: Any, value: Any, use_locking: Any = None, name: Any = None) -> Any:
    if isinstance(ref, BaseVariable) and ref.is_resource:
        return ref.assign_add(value, name=name)
    return ops.assign_add(getattr(ref, "handle", ref), value, use_locking=bool(use_locking), name=name)


def assign_sub(ref: Any, value: Any, use_locking: Any = None, name: Any = None) -> Any:
    if isinstance(ref, BaseVariable) and ref.is_resource:
        return ref.assign_sub(value, name=name)
    return ops.assign_sub(getattr(ref, "handle", ref), value, use_locking=bool(use_locking), name=name)


def count_up_to(ref: Any, limit: int, name: Any = None) -> Tensor:
    if isinstance(ref, BaseVariable) and ref.is_resource:
        return ops.resource_count_up_to(ref.handle, limit=limit, T=ref.dtype, name=name)
    return ops.count_up_to(getattr(ref, "handle", ref), limit=limit, name=name)


def scatter_add(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: Any = None) -> Any:
    return scatter("ScatterAdd", ref, indices, updates, use_locking, name)


def scatter_sub(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: Any = None) -> Any:
    return scatter("ScatterSub", ref, indices, updates, use_locking, name)


def scatter_mul(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: Any = None) -> Any:
    return scatter("ScatterMul", ref, indices, updates, use_locking, name)


def scatter_div(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: Any = None) -> Any:
    return scatter("ScatterDiv", ref, indices, updates, use_locking, name)


def scatter_max(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: Any = None) -> Any:
    return scatter("ScatterMax", ref, indices, updates, use_locking, name)


def scatter_min(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: Any = None) -> Any:
    return scatter("ScatterMin", ref, indices, updates, use_locking, name)


def scatter_update(ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: Any = None) -> Any:
    return scatter("ScatterUpdate", ref, indices, updates, use_locking, name)


def variable_axis_size_partitioner(
    max_shard_bytes: int, axis: int = 0, bytes_per_string_element: int = 16, max_shards: Any = None
) -> Any:
    return partition.variable_axis_size_partitioner(max_shard_bytes, axis, max_shards)
