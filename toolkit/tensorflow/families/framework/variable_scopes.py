# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Templates, creators of variables, partitioned variables."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from toolkit.client.variables import creators, templates
from toolkit.client.variables.store import variable_scope
from toolkit.errors import UsageError
from toolkit.graph import dtypes
from toolkit.tensorflow.families.framework import variables
from toolkit.tensorflow.families.layers import initializers


def make_template(
    name_: Any, func_: Callable[..., Any], create_scope_now_: bool = False, unique_name_: Any = None,
    custom_getter_: Any = None, **kwargs: Any,
) -> templates.Template:  # fmt: skip
    """A function whose calls share the variables that it makes with get_variable."""
    if name_ is None:
        raise ValueError("a template needs a name")
    return templates.make_template(name_, func_, create_scope_now_, unique_name_, custom_getter_, **kwargs)


def variable_creator_scope(variable_creator: Callable[..., Any]) -> AbstractContextManager[None]:
    """Inside of the block a function `creator(next_creator, **kwargs)` makes the variables."""
    return creators.creator_scope(variable_creator)


@contextmanager
def variable_op_scope(
    values: Any, name_or_scope: Any, default_name: Any = None, initializer: Any = None, regularizer: Any = None,
    caching_device: Any = None, partitioner: Any = None, custom_getter: Any = None, reuse: Any = None,
    dtype: Any = None, use_resource: Any = None, constraint: Any = None,
) -> Generator[Any]:  # fmt: skip
    """variable_scope with its arguments in an older order."""
    with variables.variable_scope(
        name_or_scope, default_name, values, initializer, regularizer, caching_device, partitioner, custom_getter,
        reuse, dtype, use_resource, constraint,
    ) as scope:  # fmt: skip
        yield scope


def create_partitioned_variables(
    shape: Any, slicing: Any, initializer: Any, dtype: Any = dtypes.float32, trainable: bool = True,
    collections: Any = None, name: Any = None, reuse: Any = None,
) -> list[Any]:  # fmt: skip
    """The parts of a variable that is cut into `slicing[i]` parts along axis i; one axis alone may be cut.

    Raises:
        ValueError: shape and slicing have another number of dimensions, or several axes are cut.
    """
    if len(shape) != len(slicing):
        raise ValueError(f"the shape {list(shape)} and the slicing {list(slicing)} differ in their dimensions")
    if not shape:
        raise ValueError("a scalar cannot be cut into parts")
    try:
        with variable_scope(name, "PartitionedVariable", reuse=reuse):
            made = variables.get_variable(
                "", shape, dtype, initializers.plain(initializer), None,
                trainable, collections, partitioner=lambda shape, dtype: list(slicing),
            )  # fmt: skip
    except UsageError as error:
        raise ValueError(error.message) from None
    return list(made.parts)
