# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tensorflow.python.*: helpers that programs import although they are not public.

Devices of this machine, decorators that keep what they wrap, names that a module shows, resources with an initializer,
the product with a new matrix that cells of programs are written with.
"""

from __future__ import annotations

import collections
import inspect
import sys
from collections.abc import Callable
from typing import Any

ArgSpec = collections.namedtuple("ArgSpec", ["args", "varargs", "keywords", "defaults"])
_Resource = collections.namedtuple("_Resource", ["handle", "create", "is_initialized"])


def list_local_devices(session_config: Any = None) -> list[Any]:
    """The devices of this machine as messages, DeviceAttributes."""
    from schemas import device_attributes_pb2
    from toolkit.client.construction.graph import Graph
    from toolkit.runtime.session import Session
    from toolkit.tensorflow.families.framework.session import reported, settings

    with Session(graph=Graph(), **settings(session_config)) as session:
        return [
            device_attributes_pb2.DeviceAttributes(
                name="/device:" + each.name.rpartition("/device:")[2], device_type=each.device_type,
                memory_limit=each.memory_limit_bytes, incarnation=each.incarnation % (1 << 64),
            )
            for each in map(reported, session.list_devices())
        ]  # fmt: skip


def getargspec(func: Callable[..., Any]) -> ArgSpec:
    """The arguments of a function as Python 2 told them: those by name alone are left out."""
    found = inspect.getfullargspec(func)
    return ArgSpec(found.args, found.varargs, found.varkw, found.defaults)


def make_decorator(
    target: Any, decorator_func: Any, decorator_name: str | None = None, decorator_doc: str = "",
    decorator_argspec: Any = None,
) -> Any:  # fmt: skip
    """`decorator_func`, which looks like the `target` that it wraps from now on."""
    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        if hasattr(target, name):
            setattr(decorator_func, name, getattr(target, name))
    for name, value in getattr(target, "__dict__", {}).items():
        decorator_func.__dict__.setdefault(name, value)
    decorator_func.__wrapped__ = target
    return decorator_func


def unwrap(maybe_tf_decorator: Any) -> tuple[list[Any], Any]:
    """What wraps a function, from the outside, and the function itself."""
    around: list[Any] = []
    target = maybe_tf_decorator
    while hasattr(target, "__wrapped__"):
        around.append(target)
        target = target.__wrapped__
    return around, target


def make_all(module_name: str, doc_string_modules: Any = None) -> list[str]:
    """Names of a module that documentation marks with @@."""
    import re

    module = sys.modules[module_name]
    told = [each.__doc__ or "" for each in doc_string_modules or [module]]
    marked = {name for text in told for name in re.findall(r"^@@(\w+)$", text, re.MULTILINE)}
    return sorted(marked & set(dir(module)))


def remove_undocumented(module_name: str, allowed_exception_list: Any = None, doc_string_modules: Any = None) -> None:
    """Take the names out of a module that no documentation marks with @@, but those that begin with an underscore."""
    module = sys.modules[module_name]
    kept = {*make_all(module_name, doc_string_modules), *(allowed_exception_list or ())}
    for name in set(dir(module)) - kept:
        if not name.startswith("_"):
            delattr(module, name)


def register_resource(handle: Any, create_op: Any, is_initialized_op: Any, is_shared: bool = True) -> None:
    """Keep a resource in the graph's collection, for `initialize_resources`."""
    from toolkit.client.construction import context

    key = "resources" if is_shared else "local_resources"
    context.get_default_graph().add_to_collection(key, _Resource(handle, create_op, is_initialized_op))


def shared_resources() -> list[Any]:
    """The resources that tasks share."""
    from toolkit.client.construction import context

    return context.get_default_graph().get_collection("resources")


def local_resources() -> list[Any]:
    """The resources of this task alone."""
    from toolkit.client.construction import context

    return context.get_default_graph().get_collection("local_resources")


def initialize_resources(resource_list: Any, name: str = "init") -> Any:
    """An operation that creates resources."""
    from toolkit.client import ops
    from toolkit.tensorflow.families.ops.flow import group

    if resource_list:
        return group(*[each.create for each in resource_list], name=name)
    return ops.no_op(name=name)


def linear(
    args: Any, output_size: int, bias: bool, bias_initializer: Any = None, kernel_initializer: Any = None
) -> Any:
    """[batch, output_size]: the columns of all `args` side by side, times a new variable "kernel", plus "bias".

    Raises:
        ValueError: there are no args, or one is not [batch, size] with a known size.
    """
    from toolkit.client.arrays import array_ops
    from toolkit.client.math import math_ops
    from toolkit.client.nn import nn_ops
    from toolkit.client.structures import nest
    from toolkit.client.variables.initializers import Constant
    from toolkit.client.variables.store import get_variable, get_variable_scope, variable_scope

    inputs = list(args) if nest.is_nested(args) else [args]
    if args is None or not inputs:
        raise ValueError("args: expected one tensor or more")
    for each in inputs:
        shape = each.static_shape
        if shape.rank != 2 or shape[1] is None:
            raise ValueError(f"args: expected [batch, size] with a known size, not {shape} of '{each.name}'")
    size, kind = sum(each.static_shape[1] for each in inputs), inputs[0].dtype.base
    with variable_scope(get_variable_scope()) as outer:
        kernel = get_variable("kernel", [size, output_size], kind, kernel_initializer)
        product = math_ops.matmul(inputs[0] if len(inputs) == 1 else array_ops.concat(inputs, 1), kernel)
        if not bias:
            return product
        with variable_scope(outer) as inner:
            inner.set_partitioner(None)
            shift = get_variable("bias", [output_size], kind, bias_initializer or Constant(0.0))
        return nn_ops.bias_add(product, shift)


def assign_moving_average(variable: Any, value: Any, decay: Any, zero_debias: bool = True, name: Any = None) -> Any:
    """variable -= (1 - decay) * (variable - value); for variables that started at zero, unless that is switched off."""
    from toolkit.client.train import averages

    return averages.assign_moving_average(variable, value, decay, zero_debias, name)


def register_session_run_conversion_functions(
    tensor_type: type, fetch_function: Any, feed_function: Any = None, feed_function_for_partial_run: Any = None
) -> None:
    """What objects of a class stand for where sessions fetch and feed them.

    Args:
        fetch_function: of an object, tensors and a function of their values.
        feed_function: of an object and what it is fed, pairs of a tensor and its value.
        feed_function_for_partial_run: of an object, the tensors that will be fed.

    Raises:
        ValueError: that is known of the class already.
    """
    from toolkit.runtime.sessions import conversions

    conversions.register(
        conversions.Conversion(tensor_type, fetch_function, feed_function, feed_function_for_partial_run)
    )


class _OfATensorKind(type):
    """isinstance: tensors, and what is made of several."""

    def __instancecheck__(cls, instance: Any) -> bool:
        from toolkit.client.construction.elements import Composite
        from toolkit.client.construction.tensor import IndexedSlices, Tensor

        return isinstance(instance, Tensor | IndexedSlices | Composite)


class TensorKind(metaclass=_OfATensorKind):
    """The base of Tensor, IndexedSlices and SparseTensor in TensorFlow, `ops._TensorLike`: for isinstance alone."""


def is_dense_tensor_like(t: Any) -> bool:
    """Whether an object is a tensor or a variable, and so no sparse tensor."""
    from toolkit.client.construction.tensor import Tensor
    from toolkit.client.variables.base import BaseVariable

    return isinstance(t, Tensor | BaseVariable)
