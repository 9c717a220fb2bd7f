"""A line that a step prints: PrintV2 of what is put together of texts, values and tensors."""

from __future__ import annotations

import os
import pprint
import random
import sys
from collections import OrderedDict
from typing import Any, cast

from toolkit.client import ops
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.client.structures import nest
from toolkit.client.variables.base import BaseVariable
from toolkit.errors import UsageError
from toolkit.graph import dtypes

#: functions and numbers of Python's logging to what PrintV2 calls them
_LEVELS: dict[str | int, str] = {
    "info": "info", "warning": "warning", "warn": "warning", "error": "error", 20: "info", 30: "warning", 40: "error",
}  # fmt: skip


def print_values(
    *inputs: Any,
    output_stream: Any = None,
    summarize: int = 3,
    sep: str = " ",
    end: str = os.linesep,
    name: str | None = None,
) -> Operation:
    """Prints values, texts and structures of them, with tensors by their values in the step.

    Args:
        output_stream: sys.stderr (the default), sys.stdout, a logging level or function, or "file://PATH".
        summarize: how many elements at the start and the end of each axis; -1 for all.

    Raises:
        UsageError: another stream.
    """
    stream = _stream(sys.stderr if output_stream is None else output_stream)
    given: list[Any] = [_in_order(each) for each in inputs]
    if len(given) == 1 and isinstance(given[0], Tensor) and _is_text(given[0]):
        return ops.print_v2(given[0], output_stream=stream, name=name, end=end)
    mark = _mark(given)
    tensors: list[Any] = []
    parts = [each if isinstance(each, str) else _shown(each, mark, tensors) for each in given]
    template = sep.join(parts).replace(f"'{mark}'", mark)
    text = ops.string_format(
        tensors, template=template, placeholder=mark, summarize=summarize, name=f"{name}_format" if name else None
    )
    return ops.print_v2(text, output_stream=stream, name=name, end=end)


def _in_order(value: Any) -> Any:
    """An ordered mapping by its keys, as structures are taken apart."""
    return (
        OrderedDict(sorted(cast("OrderedDict[Any, Any]", value).items())) if isinstance(value, OrderedDict) else value
    )


def _is_text(tensor: Tensor) -> bool:
    return tensor.dtype.base is dtypes.string and tensor.static_shape.rank == 0


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor | SparseTensor | BaseVariable)


def _shown(value: Any, mark: str, tensors: list[Any]) -> str:
    """A structure as Python writes it, with a mark for each tensor, which goes into `tensors`."""
    leaves: list[Any] = []
    for leaf in nest.flatten(value):
        if isinstance(leaf, SparseTensor):
            tensors += [leaf.indices, leaf.values, leaf.dense_shape]
            leaves.append(f"SparseTensor(indices={mark}, values={mark}, shape={mark})")
        elif _is_tensor(leaf):
            tensors.append(leaf)
            leaves.append(mark)
        else:
            leaves.append(leaf)
    return pprint.pformat(nest.pack_sequence_as(value, leaves))


def _mark(inputs: list[Any]) -> str:
    """A text that stands for tensors and occurs nowhere else."""
    plain = " ".join(pprint.pformat(nest.map_structure(lambda x: "" if _is_tensor(x) else x, each)) for each in inputs)
    mark, numbers = "{}", random.Random(5)  # the digits that TensorFlow draws
    while mark in plain:
        mark += str(numbers.randint(0, 9))
    return mark


def _stream(given: Any) -> str:
    """What a stream is called in the attribute of PrintV2.

    Raises:
        UsageError: it has no name there.
    """
    if isinstance(given, str) and given.startswith("file://"):
        return given
    if given is sys.stdout:
        return "stdout"
    if given is sys.stderr:
        return "stderr"
    called = getattr(given, "__name__", given)
    if isinstance(called, str | int) and called in _LEVELS:
        return f"log({_LEVELS[called]})"
    raise UsageError(
        f"print: {given!r} is no stream; expected sys.stdout, sys.stderr, tf.logging.info, .warning or .error, "
        "or 'file://PATH'"
    )
