"""The ops of iterators."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.errors import InvalidArgumentError, OutOfRangeError
from toolkit.graph.dtypes import DType
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import require_scalar
from toolkit.kernels.cpu.lists.tensor_map import Optional
from toolkit.kernels.datasets.base import Element, a_dataset
from toolkit.kernels.datasets.iterator import Iterator
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel, simple
from toolkit.kernels.resources.handles import ResourceHandle, lookup, resource_name
from toolkit.kernels.types import Array

_KIND = "Iterator"


@kernel("Iterator", "IteratorV2", kind=Kind.STATEFUL)
def iterator(op: KernelNode) -> Compute:
    types: list[DType] = op.attr("output_types")
    container, name = resource_name(op)
    handle = ResourceHandle(container, name, _KIND)

    def compute(step: StepContext) -> Any:
        found = step.resources.get_or_create(container, name, Iterator, lambda: Iterator(types))
        _check_types(found, types)
        return handle

    return compute


def _check_types(found: Iterator, types: list[DType]) -> None:
    if found.types and types and len(found.types) != len(types):
        raise InvalidArgumentError(
            f"Number of components does not match: expected {len(types)} types but got {len(found.types)}."
        )
    for i, (have, want) in enumerate(zip(found.types, types, strict=False)):
        if have != want:
            raise InvalidArgumentError(f"Data type mismatch at component {i}: expected {want} but got {have}.")


@kernel("AnonymousIterator", "AnonymousIteratorV2", "AnonymousIteratorV3", kind=Kind.STATEFUL)
def anonymous_iterator(op: KernelNode) -> Compute:
    """An iterator that lives as long as its handle."""
    types: list[DType] = op.attr("output_types")
    has_deleter = op.op.endswith("V2")

    def compute(step: StepContext) -> Any:
        handle = ResourceHandle("", op.name, _KIND, owned=Iterator(types))
        return (handle, handle) if has_deleter else handle

    return compute


@kernel("OneShotIterator", kind=Kind.STATEFUL)
def one_shot_iterator(op: KernelNode) -> Compute:
    """An iterator over the dataset that a function makes, once per session."""
    types: list[DType] = op.attr("output_types")
    factory, library = op.attr("dataset_factory"), op.library
    container, name = resource_name(op)
    handle = ResourceHandle(container, name, _KIND)

    def compute(step: StepContext) -> Any:
        found = step.resources.get_or_create(container, name, Iterator, lambda: Iterator(types))
        if not found.is_initialized:
            result = step.functions.run(library, factory, [], step)
            if len(result) != 1:
                raise InvalidArgumentError("The `dataset_factory` function must return a single dataset.")
            found.initialize(a_dataset(result[0]), step)
        return handle

    return compute


@kernel("MakeIterator", kind=Kind.STATEFUL)
def make_iterator(op: KernelNode) -> Compute:
    """Begin anew with a dataset."""

    def compute(step: StepContext, dataset: Any, handle: Any) -> None:
        lookup(step, handle, Iterator).initialize(a_dataset(dataset), step)

    return compute


@kernel("DeleteIterator", kind=Kind.STATEFUL)
def delete_iterator(op: KernelNode) -> Compute:
    def compute(step: StepContext, handle: Any, deleter: Any) -> None:
        if isinstance(handle, ResourceHandle) and handle.owned is None:
            step.resources.delete(handle.container, handle.name)

    return compute


def _next(step: StepContext, handle: Any, types: list[DType]) -> Element | None:
    found = lookup(step, handle, Iterator)
    _check_types(found, types)
    return found.get_next(step)


@kernel("IteratorGetNext", "IteratorGetNextSync", kind=Kind.STATEFUL)
def get_next(op: KernelNode) -> Compute:
    """The next element.

    Raises:
        OutOfRangeError: there are no more.
    """
    types = op.output_types

    def compute(step: StepContext, handle: Any) -> Element:
        element = _next(step, handle, types)
        if element is None:
            raise OutOfRangeError("End of sequence")
        return element

    return compute


@kernel("IteratorGetNextAsOptional", kind=Kind.STATEFUL)
def get_next_as_optional(op: KernelNode) -> Compute:
    types: list[DType] = op.attr("output_types")

    def compute(step: StepContext, handle: Any) -> Any:
        element = _next(step, handle, types)
        return Optional(None if element is None else tuple(element))

    return compute


# A string handle is the resource's container and name. (TensorFlow's is a serialized ResourceHandleProto; neither
# means anything outside the process that made it.)


@simple("IteratorToStringHandle")
def to_string_handle(handle: Any) -> Array:
    if not isinstance(handle, ResourceHandle) or handle.owned is not None:
        raise InvalidArgumentError("an anonymous iterator has no string handle; give the iterator a shared name")
    return np.array(f"{handle.container}\0{handle.name}".encode(), object)


@kernel("IteratorFromStringHandle", "IteratorFromStringHandleV2", kind=Kind.STATEFUL)
def from_string_handle(op: KernelNode) -> Compute:
    """The handle that a string stands for.

    Raises:
        InvalidArgumentError: the string is no handle, or the iterator has other types.
        NotFoundError: there is no such iterator.
    """
    types: list[DType] = op.attr("output_types")

    def compute(step: StepContext, text: Array) -> Any:
        require_scalar(text, "string_handle")
        container, separator, name = np.asarray(text).item().decode(errors="replace").partition("\0")
        if not separator:
            raise InvalidArgumentError("Could not parse string_handle as a valid ResourceHandle")
        handle = ResourceHandle(container, name, _KIND)
        _check_types(lookup(step, handle, Iterator), types)
        return handle

    return compute
