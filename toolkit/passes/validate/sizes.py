"""What budgets are held against."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import GraphmillError
from toolkit.formats.inspection.summary import object_variables
from toolkit.graph.metagraph import tensor_parts
from toolkit.graph.tensorref import parse_input
from toolkit.passes.measuring.body_costs import VARIABLES
from toolkit.passes.measuring.measure import Measured, measure

if TYPE_CHECKING:
    from toolkit.passes.validate.subject import Subject


@dataclass(frozen=True, slots=True)
class Sizes:
    """A model in numbers.

    Attributes:
        nodes: of the graph and of all its functions.
        params: elements of variables; in a graph without any, of floating-point constants.
        flops: floating-point operations of the costliest signature for a batch of 1, or of the whole graph.
        uncounted: what is not in these, a sentence each.
        bytes: of the file, or of all files of a SavedModel folder.
    """

    nodes: int
    params: int
    flops: int
    uncounted: list[str]
    bytes: int


def measure_subject(subject: Subject) -> Sizes:
    """The sizes of a model under examination."""
    library = subject.graph.library
    nodes = len(subject.graph) + sum(len(library.function(name).node_def) for name in library)
    return Sizes(nodes, _parameters(subject), *_flops(subject), _bytes(subject))


def _parameters(subject: Subject) -> int:
    objects = object_variables(subject.proto)
    if objects:
        return sum(variable.elements or 0 for variable in objects if variable.used is not False)
    variables = [node for node in subject.graph.nodes if node.op in VARIABLES]
    if variables:
        # handles of one shared name are one variable
        shapes = {
            node.attr_or("shared_name", b"") or node.name.encode(): node.attr_or("shape", None) for node in variables
        }
        return sum((shape.num_elements or 0) for shape in shapes.values() if shape is not None)
    total = 0
    for _, node in subject.nodes():
        dtype = node.attr_or("dtype", None) if node.op == "Const" and "value" in node.attrs else None
        if dtype is None or not dtype.is_floating or node.base is None:
            continue
        count = 1
        for dim in node.base.attr["value"].tensor.tensor_shape.dim:
            count *= max(dim.size, 0)
        total += count if count > 1 else 0
    return total


def _flops(subject: Subject) -> tuple[int, list[str]]:
    """Operations, and what could not be counted, of the costliest signature, or of all nodes where there is none."""
    graph = subject.bodies[0].sound
    found: list[Measured] = []
    try:
        for signature in subject.proto.signature_def.values():
            outputs = [name for info in signature.outputs.values() for name in tensor_parts(info).values()]
            roots = {name for output in outputs if (name := parse_input(output).node) in graph}
            if roots:
                found.append(measure(graph, roots=roots, calls=subject.calls))
        if not found:
            found.append(measure(graph, calls=subject.calls))
    except GraphmillError:
        return 0, []
    reasons = dict.fromkeys(reason for measured in found for reason in measured.unknown)
    return max(measured.total.flops for measured in found), list(reasons)


def _bytes(subject: Subject) -> int:
    if subject.folder is not None:
        return sum(path.stat().st_size for path in subject.folder.rglob("*") if path.is_file())
    path = Path(subject.file)
    return path.stat().st_size if path.is_file() else subject.length
