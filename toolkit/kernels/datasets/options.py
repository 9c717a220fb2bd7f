"""What ops that make datasets ask of settings that change no element: they are looked at when a dataset is made.

    @kernel("MapDataset", "ParallelMapDataset")       # in place of registry's
    def map_dataset(op): ...

Attributes are looked at by their names when a kernel is made, inputs when it is called.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError

from toolkit.errors import FailedPreconditionError, InvalidArgumentError
from toolkit.graph.attrs import FuncRef
from toolkit.kernels import registry
from toolkit.kernels.registry import Compute, Factory, KernelNode
from toolkit.kernels.resources.handles import ResourceHandle

#: what stands for a number that is chosen while a pipeline runs
_AUTOTUNE = -1


def _at_least(least: int, *, chosen: bool = False) -> Callable[[str, Any], None]:
    """A scalar of at least so much.

    Args:
        chosen: or one that says that the runtime may choose.
    """

    def look(name: str, value: Any) -> None:
        _scalar(name, value)
        if int(value) < least and not (chosen and int(value) == _AUTOTUNE):
            raise InvalidArgumentError(f"{name} must be at least {least}, not {int(value)}")

    return look


def _scalar(name: str, value: Any) -> None:
    if np.ndim(value):
        raise InvalidArgumentError(f"{name} must be a scalar")


def _vector(name: str, value: Any) -> None:
    if np.ndim(value) != 1:
        raise InvalidArgumentError(f"{name} must be a vector")


def _refused(name: str, value: Any) -> None:
    """Handles of what no op here makes."""
    what = value.kind if isinstance(value, ResourceHandle) else type(value).__name__
    raise InvalidArgumentError(f"{name} is a {what}")


#: by name, what is asked of inputs
_INPUTS: dict[str, Callable[[str, Any], None]] = {
    "buffer_output_elements": _at_least(1, chosen=True),
    "max_intra_op_parallelism": _at_least(0),
    "num_parallel_calls": _at_least(1, chosen=True),
    "num_threads": _at_least(0),
    "optimizations": _vector,
    "optimizations_default": _vector,
    "optimizations_disabled": _vector,
    "optimizations_enabled": _vector,
    "prefetch_input_elements": _at_least(0, chosen=True),
    "rewrite_name": _scalar,
    "stats_aggregator": _refused,
    "thread_pool": _refused,
    "transformations": _vector,
}


def _message(name: str, value: bytes) -> None:
    try:
        Empty.FromString(value)
    except DecodeError:
        raise InvalidArgumentError(f"Could not parse the '{name}' attribute.") from None


def _deterministic(name: str, value: bytes) -> None:
    if value not in (b"true", b"false", b"default"):
        raise InvalidArgumentError(f"Unrecognized determinism policy: {value.decode(errors='backslashreplace')}")


#: by name, what is asked of attributes
_ATTRIBUTES: dict[str, Callable[[str, Any], None]] = {
    "deterministic": _deterministic,
    "metadata": _message,
    "ram_budget": _at_least(0),
    "serialized_options": _message,
}


def _look_at_attributes(op: KernelNode) -> None:
    declared = op.node.op_def.attrs.values()
    for name in (attr.name for attr in declared if attr.type in ("int", "string") and attr.name in _ATTRIBUTES):
        _ATTRIBUTES[name](name, op.attr(name))
    for attr in declared:
        if attr.type == "func":
            function: FuncRef = op.attr(attr.name)
            if function.name not in op.library:
                raise FailedPreconditionError(f"Could not find required function definition {function.name}")


def _checked(factory: Factory) -> Factory:
    """The factory, with attributes and inputs looked at."""

    @functools.wraps(factory)
    def make(op: KernelNode) -> Compute:
        _look_at_attributes(op)
        compute = factory(op)
        places = op.node.op_def.arg_ranges(op.node.op_def.inputs, op.node.attrs)
        looked = [(name, places[name].start, _INPUTS[name]) for name in places if name in _INPUTS]
        if not looked:
            return compute
        count = len(op.input_types)

        def checked(*args: Any) -> Any:
            given = args[len(args) - count :]  # after the step
            for name, index, look in looked:
                look(name, given[index])
            return compute(*args)

        return checked

    return make


def kernel(*ops: str, **options: Any) -> Callable[[Factory], Factory]:
    """As `registry.kernel`."""

    def register(factory: Factory) -> Factory:
        registry.kernel(*ops, **options)(_checked(factory))
        return factory

    return register


def simple(*ops: str) -> Callable[[Compute], Compute]:
    """As `registry.simple`."""

    def register(compute: Compute) -> Compute:
        def factory(op: KernelNode) -> Compute:
            return compute

        factory.__module__ = compute.__module__  # reports say where a kernel is
        kernel(*ops)(factory)
        return compute

    return register
