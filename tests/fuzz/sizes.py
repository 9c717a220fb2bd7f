"""Ops whose work is decided by the numbers in their inputs and attributes, with numbers that no machine can serve.

What such an op makes is not a function of its inputs' shapes: `Fill`, `Tile`, `Range`, a dataset's batch, the places of
a list. Which ops these are is asked of the shape functions (`sized`), but any op with whole numbers gets its turn, for
a loop over a count takes time as an array of it takes memory. Whatever the numbers are, a run must end at once.
"""

from __future__ import annotations

import functools
import io
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.fuzz import single_op_values, single_ops
from tests.fuzz.case import Case
from toolkit.errors import GraphmillError
from toolkit.graph import opdefs
from toolkit.graph.dtypes import DType
from toolkit.graph.graph import Graph
from toolkit.graph.infer import infer_node
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape

#: far beyond any memory, alone or multiplied with another one, or as 32 or 64 bits have it
HUGE = (
    2**31 - 1,
    2**31,
    2**32,
    2**32 + 1,
    2**40,
    2**62,
    2**63 - 1,
    10**18,
    -1,
    -(2**31),
    -(2**63),
    3037000500,
    1 << 60,
)
_HUGE_FLOATS = (2.0**31, 1e18, 1e30, -1e18, float("inf"), float("nan"), 1e-30, -1e-300)
#: elements of an input that may be sizes
_FEW = 16
#: what runs may use: ops that wait do so for ever
_MEMORY, _TIME = "memory=64M", "time=2s"


def cases() -> Callable[[random.Random], Case | None]:
    """A maker of cases."""
    rows: dict[str, list[Any]] = single_ops.rows()
    every = [op for op in single_ops.ops() if _has_numbers(op)]
    of_values = [op for op in sized() if op in every]

    def make(rng: random.Random) -> Case | None:
        op = rng.choice(of_values if rng.random() < 0.5 else every)
        try:
            return _case(rng, op, rows.get(op, []))
        except (GraphmillError, OverflowError, ValueError, AssertionError):  # what no file can hold
            return None

    return make


def _has_numbers(op: str) -> bool:
    """Whether an op has an input or an attribute of whole numbers, or of any."""
    definition = opdefs.get(op)
    if any(attr.type in ("int", "list(int)", "shape", "list(shape)") for attr in definition.attrs.values()):
        return True
    return any(arg.type is None or arg.type.kind in "iuf" for arg in definition.inputs)


def _case(rng: random.Random, op: str, rows: Sequence[Any]) -> Case | None:
    if rows and rng.random() < 0.9:
        from tests.kernels.op_suite import prepare  # type: ignore[import-not-found]

        ready = prepare(rng.choice(rows))
        attrs, inputs = dict(ready.attrs), list(ready.inputs)
    else:
        attrs, inputs = single_ops._from_definition(rng, op)  # pyright: ignore[reportPrivateUsage]
    if not _enlarge(rng, op, attrs, inputs):
        return None
    fed: dict[str, Any] = {}
    graph = _graph(rng, op, attrs, inputs, fed if rng.random() < 0.5 else None)
    names = [f"node:{i}" for i, dtype in enumerate(graph.node("node").output_types) if dtype.base.kind not in "rv"]
    asked = [f"--fetch={name}" for name in names[:20]] or ["--target=node"]
    files = {"model.pb": graph.to_proto().SerializeToString(deterministic=True)}
    line = ["run", "model.pb", *asked]
    if fed:
        file = io.BytesIO()
        np.savez(file, **fed)
        files["feeds.npz"] = file.getvalue()
        line += ["--feeds", "feeds.npz"]
    line += ["--limit", f"{_MEMORY},{_TIME}" if rng.random() < 0.7 else _TIME]
    return Case("sizes", op, files, [line], executors=True, exact=False, prompt=True)


def _enlarge(rng: random.Random, op: str, attrs: dict[str, Any], inputs: list[Any]) -> bool:
    """Put huge numbers where sizes may be; returns whether there is such a place."""
    definition = opdefs.get(op)
    places: list[Callable[[], None]] = []
    for position, value in enumerate(inputs):
        if isinstance(value, np.ndarray) and 0 < value.size <= _FEW and value.dtype.kind in "iuf":
            weight = 3 if value.dtype.kind in "iu" else 1
            places += [functools.partial(_enlarge_input, rng, inputs, position)] * weight
    for attr in definition.attrs.values():
        if attr.name not in definition.inferred_attrs and attr.type in ("int", "list(int)", "shape", "list(shape)"):
            places.append(functools.partial(_enlarge_attr, rng, attrs, attr))
    for place in rng.sample(places, min(len(places), rng.choice((1, 1, 1, 2)))):
        place()
    return bool(places)


def _enlarge_input(rng: random.Random, inputs: list[Any], position: int) -> None:
    value = np.array(inputs[position])
    flat = value.reshape(-1)
    for at in [rng.randrange(flat.size)] if rng.random() < 0.6 else range(flat.size):
        with np.errstate(all="ignore"):
            if value.dtype.kind == "f":
                flat[at] = np.array(rng.choice(_HUGE_FLOATS)).astype(value.dtype)
            else:
                limits = np.iinfo(value.dtype)
                flat[at] = min(max(_huge(rng), int(limits.min)), int(limits.max))
    inputs[position] = value


def _enlarge_attr(rng: random.Random, attrs: dict[str, Any], attr: Any) -> None:
    usual = attrs.get(attr.name, attr.default)

    def one() -> int:
        return _huge(rng)

    if attr.type == "int":
        attrs[attr.name] = one()
    elif attr.type == "list(int)":
        out = list(usual or [1, 1])
        for at in [rng.randrange(len(out))] if rng.random() < 0.6 else range(len(out)):
            out[at] = one()
        attrs[attr.name] = out
    elif attr.type == "shape":
        attrs[attr.name] = Shape([abs(one()) for _ in range(rng.choice((1, 2, 3)))])
    elif usual:
        attrs[attr.name] = [Shape([abs(one())]) for _ in usual]


def _huge(rng: random.Random) -> int:
    return rng.choice(HUGE)


def _graph(rng: random.Random, op: str, attrs: dict[str, Any], inputs: list[Any], fed: dict[str, Any] | None) -> Graph:
    """The node with its inputs, which are constants, or placeholders whose values go to `fed`."""
    graph = Graph()
    single_op_values.add_functions(graph)
    definition = opdefs.get(op)
    sources: list[Any] = []
    controls: list[Node] = []
    for position, dtype in enumerate(definition.expand(definition.inputs, attrs, op)):
        given = inputs[position] if position < len(inputs) else None
        name = f"in{position}"
        if fed is not None and isinstance(given, np.ndarray) and _can_be_fed(dtype, given):
            sources.append(graph.add("Placeholder", name, attrs={"dtype": dtype, "shape": Shape(None)}))
            fed[f"{name}:0"] = given
        else:
            source, ready = single_ops._source(rng, graph, name, op, dtype, given)  # pyright: ignore[reportPrivateUsage]
            sources.append(source)
            controls += ready
    graph.add(op, "node", sources, control_inputs=controls, attrs=attrs)
    return graph


def _can_be_fed(dtype: DType, value: Any) -> bool:
    return not dtype.is_ref and value.dtype == dtype.numpy and value.dtype.kind in "biuf"


@functools.cache
def sized() -> list[str]:
    """The ops of the op suites whose output shapes are not decided by the shapes of their inputs.

    The shape function is given the shapes of a row that works; what it cannot tell of them alone, values decide.
    """
    from tests.kernels.op_suite import build, prepare  # type: ignore[import-not-found]

    def is_sized(row: Any) -> bool:
        try:
            ready = prepare(row)
            shapes = [Shape(np.shape(value)) for value in ready.inputs]
            found = infer_node(build(row, ready), shapes, lambda index: None)
        except (GraphmillError, AssertionError):  # a row with an error
            return False
        return not all(shape.is_fully_defined for shape in found)

    return [op for op, rows in sorted(single_ops.rows().items()) if any(map(is_sized, rows))]
