"""Comparing two runs tensor by tensor, and finding the node where two models part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np

from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.kernels.types import Array
from toolkit.runtime.session import Session


@dataclass(frozen=True, slots=True)
class Difference:
    """How one tensor differs.

    Attributes:
        what: the label or tensor.
        reason: one line: missing, another shape or type, or how far apart.
        max_abs, max_rel: the largest differences; None where they cannot be computed.
        mismatches: how many elements are further apart than the tolerance.
    """

    what: str
    reason: str
    max_abs: float | None = None
    max_rel: float | None = None
    mismatches: int = 0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Contract:
    """By what two results were judged.

    Attributes:
        rtol, atol: numbers a and b agree where |a - b| <= atol + rtol * |b|, NaN agrees with NaN, infinities with
            themselves.
        precision: how both were computed (graphmill help numerics); "" where they were only read.
    """

    rtol: float = 1e-5
    atol: float = 1e-8
    precision: str = ""

    def __str__(self) -> str:
        computed = f", both computed as {self.precision}" if self.precision else ""
        return f"|a - b| <= {self.atol:g} + {self.rtol:g} |b|, NaN = NaN{computed}"


def compare_arrays(what: str, mine: Any, other: Any, *, rtol: float, atol: float) -> Difference | None:
    """None when the two agree: same shape, and |mine - other| <= atol + rtol * |other|; NaN equals NaN."""
    a, b = cast("Array", np.asarray(mine)), cast("Array", np.asarray(other))
    if a.shape != b.shape:
        return Difference(what, f"shape {list(a.shape)} against {list(b.shape)}")
    if a.dtype.kind == "O" or b.dtype.kind == "O" or a.dtype.kind in "SU" or b.dtype.kind in "SU":
        wrong = int(np.sum(a != b))
        return Difference(what, f"{wrong} of {a.size} strings differ", mismatches=wrong) if wrong else None
    wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
    x, y = a.astype(wide), b.astype(wide)
    with np.errstate(all="ignore"):
        gap = np.abs(x - y)
        same = (gap <= atol + rtol * np.abs(y)) | (x == y) | (np.isnan(x) & np.isnan(y))
        wrong = int(a.size - np.count_nonzero(same))
        if not wrong:
            return None
        finite = gap[np.isfinite(gap)]
        relative = gap[y != 0] / np.abs(y[y != 0])
        relative = relative[np.isfinite(relative)]
    max_abs = float(finite.max()) if finite.size else None
    max_rel = float(relative.max()) if relative.size else None
    shown = ", ".join(f"{n} {v:.3g}" for n, v in (("max abs", max_abs), ("max rel", max_rel)) if v is not None)
    return Difference(what, f"{wrong} of {a.size} elements differ ({shown or 'not finite'})", max_abs, max_rel, wrong)


def compare_results(mine: Mapping[str, Any], other: Mapping[str, Any], *, rtol: float, atol: float) -> list[Difference]:
    """The differences of two sets of named results, in the order of the first."""
    found: list[Difference] = []
    for name, value in mine.items():
        if name not in other:
            found.append(Difference(name, "only in the first"))
            continue
        difference = compare_arrays(name, value, other[name], rtol=rtol, atol=atol)
        if difference is not None:
            found.append(difference)
    found += [Difference(name, "only in the second") for name in other if name not in mine]
    return found


def bisect(
    first: Session,
    second: Session,
    feeds: Mapping[str, Any],
    fetches: Iterable[str],
    *,
    rtol: float,
    atol: float,
) -> tuple[Difference, int] | None:
    """The first tensor, in the order of computation, in which two models with common node names part.

    Only the part of the graph that the fetches need is looked at. Tensors are compared a batch of nodes at a time,
    halving towards the first difference, so few are held at once; a node after it may agree again, one before it
    does not differ.

    Returns:
        the difference and how many tensors were compared, or None when all common tensors agree.
    """
    ours = _common_tensors(_core(first), _core(second), fetches)
    compared = 0
    low, high = 0, len(ours)
    best: Difference | None = None
    # Differences tend to spread downstream, but need not: scan in blocks that double, then halve inside the block.
    block = 1
    while low < len(ours):
        high = min(len(ours), low + block)
        window = ours[low:high]
        difference, position = _first_difference(first, second, feeds, window, rtol, atol)
        compared += len(window)
        if difference is not None:
            best = difference
            low += position
            break
        low, block = high, block * 2
    return None if best is None else (best, compared)


def _first_difference(
    first: Session, second: Session, feeds: Mapping[str, Any], names: Sequence[str], rtol: float, atol: float
) -> tuple[Difference | None, int]:
    mine = first.run(list(names), dict(feeds))
    other = second.run(list(names), dict(feeds))
    for position, (name, a, b) in enumerate(zip(names, mine, other, strict=True)):
        difference = compare_arrays(name, a, b, rtol=rtol, atol=atol)
        if difference is not None:
            return difference, position
    return None, -1


def _common_tensors(first: Graph, second: Graph, fetches: Iterable[str]) -> list[str]:
    """Names of the floating tensors both graphs have, in the order of computation, that the fetches depend on."""
    needed = _ancestors([first.output(name).node for name in fetches])
    names: list[str] = []
    for node in first.topological_order():
        other = second.get(node.name)
        if node.id not in needed or other is None or node.is_control_flow:
            continue
        for index, dtype in enumerate(node.output_types):
            same = index < other.num_outputs and other.output_types[index].base is dtype.base
            if same and (dtype.is_floating or dtype.is_complex) and not _in_loop(node):
                names.append(Output(node, index).name)
    return names


def _in_loop(node: Node) -> bool:
    """Tensors inside v1 loops have many values; they cannot be fetched."""
    return any(src.op in ("Enter", "RefEnter") for src, _ in node.inputs)


def _ancestors(roots: list[Node]) -> set[int]:
    seen = {node.id for node in roots}
    stack = list(roots)
    while stack:
        node = stack.pop()
        for src in [src for src, _ in node.inputs] + node.control_inputs:
            if src.id not in seen:
                seen.add(src.id)
                stack.append(src)
    return seen


@dataclass(slots=True)
class Comparison:
    """What comparing two runs found: all differences, and the first tensor that differs when it was looked for."""

    differences: list[Difference]
    first: Difference | None = None
    compared: int = 0
    contract: Contract = Contract()

    def report(self) -> dict[str, Any]:
        """JSON: {"equal", "differences": [...], "first": {...} or null, "compared", "contract": {...}}."""
        return {
            "equal": not self.differences,
            "differences": [d.as_json() for d in self.differences],
            "first": self.first.as_json() if self.first is not None else None,
            "compared": self.compared,
            "contract": asdict(self.contract),
        }

    def lines(self) -> list[str]:
        """The findings for reading."""
        if not self.differences:
            return [f"equal within the tolerance: {self.contract}"]
        found = [f"{d.what}: {d.reason}" for d in self.differences]
        if self.first is not None:
            found.append(f"the first tensor that differs: {self.first.what}: {self.first.reason}")
        found.append(f"judged by {self.contract}")
        return found


def _core(session: Session) -> Graph:
    from toolkit.runtime.sessions.graphs import core_graph

    return core_graph(session.graph)
