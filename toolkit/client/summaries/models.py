"""Summaries named after tensors, and what a model consists of (tf.contrib.slim.summaries, model_analyzer)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from toolkit.client import ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.tensor import Tensor
from toolkit.client.nn import nn_ops
from toolkit.client.summaries import summary
from toolkit.graph.metagraph import GraphKeys


def _called(tensor: Any, name: str | None, prefix: str | None) -> str:
    return "/".join(part for part in (prefix, name or tensor.op.name) if part)


def _shown(made: Tensor, tensor: Any, name: str, prints: bool) -> Tensor:
    """The summary, which prints the tensor when it is asked for."""
    if not prints:
        return made
    printed = ops.print(made, [tensor], message=name)
    get_default_graph().add_to_collection(GraphKeys.SUMMARIES, printed)
    return printed


def add_histogram_summary(tensor: Any, name: str | None = None, prefix: str | None = None) -> Tensor:
    """The distribution of a tensor, under its name."""
    return summary.histogram(_called(tensor, name, prefix), tensor)


def add_image_summary(
    tensor: Any, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Tensor:
    """The first images of a tensor, under its name."""
    called = _called(tensor, name, prefix)
    made = summary.image(called, tensor, collections=[] if print_summary else None)
    return _shown(made, tensor, called, print_summary)


def add_scalar_summary(
    tensor: Any, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Tensor:
    """A number, under the tensor's name; also printed where it is asked for."""
    called = _called(tensor, name, prefix)
    return _shown(summary.scalar(called, tensor, [] if print_summary else None), tensor, called, print_summary)


def add_zero_fraction_summary(
    tensor: Any, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Tensor:
    """The share of zeros in a tensor, under its name."""
    called = f"{_called(tensor, name, prefix)}/Fraction_of_Zero_Values"
    return add_scalar_summary(nn_ops.zero_fraction(tensor), called, print_summary=print_summary)


def _each(make: Callable[..., Tensor], tensors: Iterable[Any], **options: Any) -> list[Tensor]:
    return [make(tensor, **options) for tensor in tensors]


def add_histogram_summaries(tensors: Iterable[Any], prefix: str | None = None) -> list[Tensor]:
    """`add_histogram_summary` of each."""
    return _each(add_histogram_summary, tensors, prefix=prefix)


def add_image_summaries(tensors: Iterable[Any], prefix: str | None = None) -> list[Tensor]:
    """`add_image_summary` of each."""
    return _each(add_image_summary, tensors, prefix=prefix)


def add_scalar_summaries(
    tensors: Iterable[Any], prefix: str | None = None, print_summary: bool = False
) -> list[Tensor]:
    """`add_scalar_summary` of each."""
    return _each(add_scalar_summary, tensors, prefix=prefix, print_summary=print_summary)


def add_zero_fraction_summaries(tensors: Iterable[Any], prefix: str | None = None) -> list[Tensor]:
    """`add_zero_fraction_summary` of each."""
    return _each(add_zero_fraction_summary, tensors, prefix=prefix)


# -- what a model consists of ----------------------------------------------------------------------------------------


def tensor_description(var: Any) -> str:
    """Type and sizes: (float32 3x4)."""
    sizes = "x".join("?" if size is None else str(size) for size in var.static_shape)
    return f"({var.dtype.name} {sizes})"


def _count(shape: Any) -> int:
    return shape.num_elements if shape.is_fully_defined else 0


def _headline(text: str, prints: bool) -> None:
    if prints:
        print(f"---------\n{text}\n---------")


def analyze_ops(graph: Any, print_info: bool = False) -> int:
    """How many numbers all operations of a graph give together; prints each where it is asked for."""
    _headline("Operations: name -> (type shapes) [size]", print_info)
    total = 0
    for op in graph.get_operations():
        size = sum(_count(output.static_shape) for output in op.outputs)
        if print_info:
            shapes = ", ".join(tensor_description(output) for output in op.outputs if output.static_shape.rank)
            print(op.name, "\t->", shapes, f"[{size}]")
        total += size
    return total


def analyze_vars(variables: Iterable[Any], print_info: bool = False) -> tuple[int, int]:
    """How many numbers and bytes variables hold; prints each where it is asked for."""
    _headline("Variables: name (type shape) [size]", print_info)
    total, total_bytes = 0, 0
    for variable in variables:
        size = _count(variable.static_shape)
        size_bytes = size * variable.dtype.base.size
        if print_info:
            print(variable.name, tensor_description(variable), f"[{size}, bytes: {size_bytes}]")
        total, total_bytes = total + size, total_bytes + size_bytes
    if print_info:
        print(f"Total size of variables: {total}\nTotal bytes of variables: {total_bytes}")
    return total, total_bytes
