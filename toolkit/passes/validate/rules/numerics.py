"""Constants that are not numbers, not finite, or denormal."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from functools import partial

from schemas.tensor_pb2 import TensorProto
from toolkit.errors import GraphmillError
from toolkit.graph import dtypes
from toolkit.graph.kinds import NodeKind
from toolkit.graph.node import Node
from toolkit.passes.validate.finding import Severity
from toolkit.passes.validate.registry import Problem, Rule, family
from toolkit.passes.validate.subject import Body, Subject

_FLOATING = {d.enum: d for d in (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)}
#: up to so many bytes a value is looked at without numpy, whose import takes longer
_SMALL = 4096
_SMALLEST = {"float32": 2.0**-126, "float64": 2.0**-1022}
_FORMATS = {"float32": "f", "float64": "d"}


@family(
    "numerics",
    Rule("nan", Severity.WARNING, "a constant that holds NaN", "find out what computed it; NaN spreads to the result"),
    Rule("infinity", Severity.NOTE, "a constant that holds an infinity", "use a large finite number, if it is a mask"),
    Rule(
        "denormal",
        Severity.NOTE,
        "a constant that holds denormal numbers",
        "set them to zero; some CPUs are slow on them",
    ),
)
def numerics(subject: Subject) -> Iterator[Problem]:
    clean: set[NodeKind | None] = set()  # kinds of which there is nothing to say
    for body in subject.bodies:
        for node in body.candidates(partial(_values_of, body)):
            if node.op != "Const":
                continue
            kind = node.kind
            if kind is not None:
                kind = kind.like or kind
                if kind in clean:
                    continue
            problems = list(_values_of(body, node))
            if not problems:
                clean.add(kind)
            yield from problems


def _values_of(body: Body, node: Node) -> Iterator[Problem]:
    if node.op != "Const" or node.base is None or "value" not in node.base.attr:
        return
    tensor = node.base.attr["value"].tensor
    counts = _count(tensor) if tensor.dtype in _FLOATING else None
    if counts is None:
        return
    total = max(1, math.prod(dim.size for dim in tensor.tensor_shape.dim))
    for rule, what, count in zip(("nan", "infinity", "denormal"), ("NaN", "infinite", "denormal"), counts, strict=True):
        if count:
            yield Problem(f"numerics/{rule}", f"{count:,} of {total:,} values are {what}", node.name, body.function)


def _count(tensor: TensorProto) -> tuple[int, int, int] | None:
    """How many values are NaN, infinite, denormal; None when they cannot be read."""
    name = _FLOATING[tensor.dtype].name
    if name in _FORMATS and len(tensor.tensor_content) <= _SMALL and not tensor.half_val:
        width = struct.calcsize(_FORMATS[name])
        content = tensor.tensor_content
        if len(content) % width:
            return None
        values = [
            *struct.unpack(f"<{len(content) // width}{_FORMATS[name]}", content),
            *tensor.float_val,
            *tensor.double_val,
        ]
        if len(values) <= _SMALL:
            smallest = _SMALLEST[name]
            nans = sum(1 for v in values if v != v)
            infinite = sum(1 for v in values if v in (math.inf, -math.inf))
            return nans, infinite, sum(1 for v in values if 0 < abs(v) < smallest)
    return _count_large(tensor)


def _count_large(tensor: TensorProto) -> tuple[int, int, int] | None:
    import numpy as np

    from toolkit.formats.arrays.tensor import to_array

    try:
        array = to_array(tensor)
    except (GraphmillError, ValueError):
        return None
    if array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    if not array.size:
        return 0, 0, 0
    magnitude = np.abs(array)
    # NaN makes the sum NaN, an infinity makes it infinite: one look at most constants
    nans = infinite = 0
    with np.errstate(invalid="ignore"):  # which a signalling NaN is
        total = magnitude.sum(dtype=np.float64)
    if not np.isfinite(total):
        nans, infinite = int(np.isnan(magnitude).sum()), int(np.isinf(magnitude).sum())
    smallest = np.finfo(array.dtype).tiny
    denormal = int(((magnitude < smallest) & (magnitude > 0)).sum())
    return nans, infinite, denormal
