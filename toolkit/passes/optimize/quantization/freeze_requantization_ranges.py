"""Ranges that were logged put in the place of RequantizationRange, which computes them anew in every step."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from toolkit.errors import UsageError, did_you_mean
from toolkit.graph.graph import Graph
from toolkit.graph.node import Output
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.subgraph import Subgraphs

#: a line of insert_logging(op=RequantizationRange, show_name=true, message="__requant_min_max:")
_LINE = re.compile(r";([^;]+)__print__;__requant_min_max:\[([^\]\[]{1,40})\]\[([^\]\[]{1,40})\]")


@dataclass(frozen=True)
class FreezeRequantizationRanges(Optimization):
    """Make constants of the outputs of RequantizationRange nodes.

    The report has `frozen`: names to [min, max].

    Attributes:
        min_max_log_file: lines that a graph with `insert_logging(op=RequantizationRange, show_name=true,
            message="__requant_min_max:")` printed, among others.
        min_percentile, max_percentile: how many of the least and largest values are left out, in percent.
    """

    name: ClassVar[str] = "freeze_requantization_ranges"
    in_functions: ClassVar[bool] = False

    min_max_log_file: str = field()
    min_percentile: float = 5.0
    max_percentile: float = 5.0

    def __post_init__(self) -> None:
        for each in (self.min_percentile, self.max_percentile):
            if not 0 <= each <= 100:
                raise UsageError(f"a percentile of {each:g}; expected 0 to 100")

    def apply(self, graph: Graph) -> PassResult:
        """
        Raises:
            UsageError: the file cannot be read, has no ranges, or has one of a node that is no RequantizationRange.
        """
        import numpy as np

        found = Subgraphs(graph, self.kept)
        frozen: dict[str, list[float]] = {}
        for name, (least, most) in self._ranges().items():
            node = found.graph.get(name)
            if node is None:
                if f"{name}/frozen_min" in found.graph:
                    continue  # in an earlier round
                names = [each.name for each in graph if each.op == "RequantizationRange"]
                raise UsageError(
                    f"the log has a range of '{name}', which is not in the graph{did_you_mean(name, names)}"
                )
            if node.op != "RequantizationRange":
                raise UsageError(f"the log has a range of '{name}', which is a {node.op}, no RequantizationRange")
            if found.is_kept(node):
                continue
            values = [_at(least, self.min_percentile / 100), _at(most, 1 - self.max_percentile / 100)]
            frozen[name] = values
            for index, (value, what) in enumerate(zip(values, ("min", "max"), strict=True)):
                const = found.add_constant(f"{name}/frozen_{what}", np.float32(value), [node])
                found.redirect(Output(node, index), const.output())
        return found.result({"frozen": frozen})

    def _ranges(self) -> dict[str, tuple[list[float], list[float]]]:
        try:
            with Path(self.min_max_log_file).open(encoding="utf-8", errors="replace") as lines:
                out: dict[str, tuple[list[float], list[float]]] = {}
                for line in lines:
                    read = _LINE.search(line[:4096])
                    if read is None:
                        continue
                    try:
                        least, most = float(read.group(2)), float(read.group(3))
                    except ValueError:
                        continue
                    values = out.setdefault(read.group(1), ([], []))
                    values[0].append(least)
                    values[1].append(most)
        except OSError as error:
            raise UsageError(f"cannot read {self.min_max_log_file}: {error.strerror}") from None
        if not out:
            raise UsageError(
                f"{self.min_max_log_file} has no lines with ranges (NAME__print__;__requant_min_max:[..][..])"
            )
        return out


def _at(values: list[float], share: float) -> float:
    """The value that so many are below."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, int(len(ordered) * share + 0.5)))]
