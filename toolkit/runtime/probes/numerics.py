"""Finding the first node that makes a NaN or an infinity."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.graph.node import Node, Output
from toolkit.graph.partitioned import RECV_OPS
from toolkit.kernels.types import Array, is_array
from toolkit.runtime.probes.base import Manner
from toolkit.runtime.probes.on_host import on_host


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a tensor looks like: counts of bad values, range and mean of the finite ones."""

    shape: tuple[int, ...]
    nans: int
    infinities: int
    minimum: float
    maximum: float
    mean: float

    def __str__(self) -> str:
        text = f"shape {list(self.shape)}, min {self.minimum:.6g}, max {self.maximum:.6g}, mean {self.mean:.6g}"
        return text + (f", {self.nans} NaN, {self.infinities} infinite" if self.nans or self.infinities else "")


def statistics(value: Any) -> Statistics | None:
    """The statistics of a floating array; None for other values."""
    if not is_array(value):
        return None
    array = cast("Array", np.asarray(value))
    if array.dtype.kind not in "fcV" or array.dtype.names is not None:
        return None
    if array.dtype.kind == "V":  # bfloat16 and the small floats are numpy extension types
        array = array.astype(np.float32)
    finite = array[np.isfinite(array)]
    real = np.abs(finite) if finite.dtype.kind == "c" else finite
    return Statistics(
        array.shape,
        int(np.isnan(array).sum()),
        int(np.isinf(array).sum()),
        float(real.min()) if real.size else float("nan"),
        float(real.max()) if real.size else float("nan"),
        float(real.mean(dtype=np.float64)) if real.size else float("nan"),
    )


def _readable(source: Output) -> str:
    """The name of an input; for an argument of the step, the tensor that was fed (see `rewrite_for_execution`)."""
    name = str(source.ref)
    if source.node.op == "_Arg":
        return re.sub(r"^_arg_(.*)_(\d+)_\d+$", r"\1:\2", name)
    return name


def check_feed(name: str, value: Any) -> None:
    """Refuse what is fed when it is not finite: no node made that.

    Raises:
        InvalidArgumentError: so; says where the first one is.
    """
    found = statistics(value)
    if found is None or not (found.nans or found.infinities):
        return
    array = np.asarray(value)
    if array.dtype.kind == "V":
        array = array.astype(np.float32)
    first = np.unravel_index(int(np.argmin(np.isfinite(array).reshape(-1))), array.shape)
    where = f"; the first at {[int(i) for i in first]}" if array.ndim else ""
    raise InvalidArgumentError(f"the value fed for '{name}' is not finite: {found}{where}")


class NumericsProbe:
    """Fails the step at the first kernel that makes a NaN or infinity out of finite inputs.

    Args:
        per_node: nodes run one by one; else only where a value of a compiled function is not finite
            (`toolkit.runtime.executors.checked`).
    """

    def __init__(self, *, per_node: bool = False):
        self.manner = Manner.NODE_BY_NODE if per_node else Manner.CHECKED

    def ran(
        self, node: Node, device: str, start_ns: int, end_ns: int, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        """See `Probe.ran`.

        Raises:
            InvalidArgumentError: an output is not finite while all inputs are; the inputs' statistics are named.
        """
        if node.op in RECV_OPS and self.manner is Manner.CHECKED:
            return  # who made it is told where it was made
        for index, value in enumerate(on_host(outputs, device)):
            found = statistics(value)
            if found is None or not (found.nans or found.infinities):
                continue
            read = on_host(inputs, device)
            before = [(src, statistics(given)) for src, given in zip(map(_readable, node.inputs), read, strict=False)]
            if any(s is not None and (s.nans or s.infinities) for _, s in before):
                continue
            told = "; ".join(f"input {name}: {stats}" for name, stats in before if stats is not None)
            raise InvalidArgumentError(
                f"{node.op} makes values that are not finite: output {index}: {found}" + (f"; {told}" if told else ""),
                node=node.name,
            )
