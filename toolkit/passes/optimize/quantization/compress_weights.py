"""Weights stored in half the bytes, as float16 or bfloat16."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.quantization.weights import error_of, large_weights, require_minimum_size
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.subgraph import Subgraphs


@dataclass(frozen=True)
class CompressWeights(Optimization):
    """Store large float32 constants in 16 bits, each with a Cast behind it; the graph computes in float32 as before.

    The report has `bytes_saved`, `errors` (by constant: the `largest` error, and the `relative` one of all its numbers)
    and `beyond`: constants with numbers that the type does not have, which stay.

    Attributes:
        type: in which they are stored. half has 11 digits in base 2 and ends at 65504, bfloat16 has 8 and float32's
            range.
        minimum_size: numbers from which on a constant is stored so.
    """

    name: ClassVar[str] = "compress_weights"

    type: Literal["half", "bfloat16"] = "half"
    minimum_size: int = 1024

    def __post_init__(self) -> None:
        require_minimum_size(self.minimum_size)

    def apply(self, graph: Graph) -> PassResult:
        import numpy as np

        found = Subgraphs(graph, self.kept)
        stored_as = dtypes.from_name("float16" if self.type == "half" else "bfloat16")
        errors: dict[str, Any] = {}
        beyond: list[str] = []
        saved = 0
        for node, value in large_weights(found, self.minimum_size):
            with np.errstate(over="ignore"):
                small = value.astype(stored_as.numpy)
            if not np.isfinite(small.astype(np.float32)).all():
                beyond.append(node.name)
                continue
            const = found.add_constant(f"{node.name}/{self.type}", small, [node])
            attrs = {"SrcT": stored_as, "DstT": dtypes.float32}
            found.make(node, "Cast", [const.output()], attrs)
            errors[node.name] = error_of(value, small)
            saved += value.nbytes - small.nbytes
        report = {"bytes_saved": saved, "errors": errors}
        return found.result(report | ({"beyond": beyond} if beyond else {}))
