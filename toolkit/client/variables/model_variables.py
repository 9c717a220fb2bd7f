"""Variables of models: made for scopes of arguments, found by scope and name, chosen for checkpoints.

What a layer makes is in MODEL_VARIABLES besides GLOBAL_VARIABLES (`tf.contrib.framework`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from toolkit.client.argument_scopes import add_arg_scope
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.grouping import group
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import device as on_device
from toolkit.client.variables.base import BaseVariable
from toolkit.client.variables.creation import Variable
from toolkit.client.variables.store import VariableScope, get_variable, get_variable_scope
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys

#: what TensorFlow's arguments `synchronization` and `aggregation` have where nobody says; there is one copy here
_ONE_COPY: Any = object()


@add_arg_scope
def variable(
    name: str, shape: Any = None, dtype: Any = None, initializer: Any = None, regularizer: Any = None,
    trainable: bool = True, collections: Any = None, caching_device: Any = None, device: Any = None,
    partitioner: Any = None, custom_getter: Any = None, use_resource: Any = None, synchronization: Any = _ONE_COPY,
    aggregation: Any = _ONE_COPY,
) -> Any:  # fmt: skip
    """`get_variable` on a device.

    Args:
        collections: default: GLOBAL_VARIABLES.
        custom_getter: what gets it in place of get_variable; is told whether the open scope reuses.
    """
    wanted = [GraphKeys.GLOBAL_VARIABLES] if collections is None else list(dict.fromkeys(collections))
    getter: Callable[..., Any] = get_variable
    if custom_getter is not None:
        getter = functools.partial(custom_getter, reuse=get_variable_scope().reuse)
    with on_device(device or ""):
        return getter(
            name, shape=shape, dtype=dtype, initializer=initializer, regularizer=regularizer, trainable=trainable,
            collections=wanted, caching_device=caching_device, partitioner=partitioner, use_resource=use_resource,
        )  # fmt: skip


@add_arg_scope
def model_variable(
    name: str, shape: Any = None, dtype: Any = dtypes.float32, initializer: Any = None, regularizer: Any = None,
    trainable: bool = True, collections: Any = None, caching_device: Any = None, device: Any = None,
    partitioner: Any = None, custom_getter: Any = None, use_resource: Any = None, synchronization: Any = _ONE_COPY,
    aggregation: Any = _ONE_COPY,
) -> Any:  # fmt: skip
    """A `variable` that is in MODEL_VARIABLES as well."""
    return variable(
        name, shape, dtype, initializer, regularizer, trainable,
        [*(collections or ()), GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES], caching_device, device,
        partitioner, custom_getter, use_resource,
    )  # fmt: skip


def local_variable(
    initial_value: Any, validate_shape: bool = True, name: Any = None, use_resource: Any = None
) -> BaseVariable:
    """A variable in LOCAL_VARIABLES, which is not saved, and not trainable."""
    return _untrained(GraphKeys.LOCAL_VARIABLES, initial_value, validate_shape, name, use_resource)


def global_variable(
    initial_value: Any, validate_shape: bool = True, name: Any = None, use_resource: Any = None
) -> BaseVariable:
    """A variable in GLOBAL_VARIABLES that is not trainable."""
    return _untrained(GraphKeys.GLOBAL_VARIABLES, initial_value, validate_shape, name, use_resource)


def _untrained(collection: str, initial_value: Any, validate_shape: bool, name: Any, use_resource: Any) -> BaseVariable:
    return Variable(
        initial_value, False, [collection], validate_shape, name=name,
        use_resource=get_variable_scope().use_resource if use_resource is None else use_resource,
    )  # fmt: skip


def add_model_variable(var: Any) -> None:
    """Put a variable into MODEL_VARIABLES, once."""
    held = get_default_graph().get_collection_ref(GraphKeys.MODEL_VARIABLES)
    if not any(var is other for other in held):
        held.append(var)


# -- finding ---------------------------------------------------------------------------------------------------------


def get_variables(scope: Any = None, suffix: str | None = None, collection: str = "variables") -> list[Any]:
    """The variables of a collection.

    Args:
        scope: a pattern that their names begin with, or a variable scope.
        suffix: the last part of their names.
    """
    if isinstance(scope, VariableScope):
        scope = scope.name
    if suffix is not None:
        scope = f"{scope or ''}.*{suffix}" + ("" if ":" in suffix else ":")
    return get_default_graph().get_collection(collection, scope)


def get_model_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` of MODEL_VARIABLES."""
    return get_variables(scope, suffix, GraphKeys.MODEL_VARIABLES)


def get_local_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` of LOCAL_VARIABLES."""
    return get_variables(scope, suffix, GraphKeys.LOCAL_VARIABLES)


def get_trainable_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` of TRAINABLE_VARIABLES."""
    return get_variables(scope, suffix, GraphKeys.TRAINABLE_VARIABLES)


def get_variables_by_suffix(suffix: str, scope: Any = None) -> list[Any]:
    """Variables by the last part of their names."""
    return get_variables(scope, suffix)


def get_variables_by_name(given_name: str, scope: Any = None) -> list[Any]:
    """Variables by the last component of their names."""
    return get_variables(scope, f"/{given_name}:|^{given_name}:")


def get_unique_variable(var_op_name: str) -> Any:
    """The variable of a name.

    Raises:
        ValueError: there is none.
    """
    found = get_variables(var_op_name)
    if not found:
        raise ValueError(f"there is no variable '{var_op_name}'")
    for each in found:
        if each.op.name == var_op_name:
            return each
    others = ", ".join(each.op.name for each in found[:3])
    raise ValueError(f"'{var_op_name}' is the name of no variable, only the beginning of some ({others})")


def get_variable_full_name(var: Any) -> str:
    """The name under which checkpoints have a variable: of the whole, for a part of one."""
    return var.slice_info.full_name if var.slice_info is not None else var.op.name


def get_variables_to_restore(include: Any = None, exclude: Any = None) -> list[Any]:
    """Global variables whose names begin with one of `include` (default: all) and with none of `exclude`.

    Raises:
        TypeError: one of the two is no list.
    """
    for given, what in ((include, "include"), (exclude, "exclude")):
        if given is not None and not isinstance(given, list | tuple):
            raise TypeError(f"{what}: expected a list of scopes, got {type(given).__name__}")
    found = get_variables() if include is None else [each for scope in include for each in get_variables(scope)]
    left_out = {id(each) for scope in exclude or () for each in get_variables(scope)}
    return [each for each in found if id(each) not in left_out]


def filter_variables(
    var_list: Iterable[Any], include_patterns: Any = None, exclude_patterns: Any = None, reg_search: bool = True
) -> list[Any]:
    """The variables whose names match a pattern of the first (default: all) and none of the second.

    Args:
        reg_search: patterns match anywhere, otherwise from the beginning.
    """
    matches = re.search if reg_search else re.match

    def any_of(patterns: Iterable[str], each: Any) -> bool:
        return any(matches(pattern, each.name) for pattern in patterns)

    return [
        each
        for each in var_list
        if (include_patterns is None or any_of(include_patterns, each))
        and not (exclude_patterns is not None and any_of(exclude_patterns, each))
    ]


# -- assigning -------------------------------------------------------------------------------------------------------


def assignments(pairs: Sequence[tuple[Any, Any]]) -> tuple[Operation, dict[Any, Any]]:
    """An operation that assigns values to variables, and the feeds that it needs."""
    feeds: dict[Any, Any] = {}
    assigned: list[Any] = []
    for each, value in pairs:
        fed = array_ops.placeholder(each.dtype.base, each.static_shape, f"placeholder/{each.op.name}")
        assigned.append(each.assign(fed))
        feeds[fed] = value
    return group(assigned), feeds


def assign_from_values(var_names_to_values: Any) -> tuple[Operation, dict[Any, Any]]:
    """An operation that gives variables values, by their names, and what to feed it.

    Raises:
        ValueError: there is no variable of a name, or several that begin with it.
    """
    pairs: list[tuple[Any, Any]] = []
    for name, value in var_names_to_values.items():
        found = get_variables(name)
        chosen = found[0] if len(found) == 1 else get_unique_variable(name)
        pairs.append((chosen, value.reshape(chosen.static_shape.as_list())))
    return assignments(pairs)


def assign_from_values_fn(var_names_to_values: Any) -> Callable[[Any], Any]:
    """A function of a session that gives variables values, by their names."""
    assigned, feeds = assign_from_values(var_names_to_values)
    return lambda session: session.run(assigned, feeds)
