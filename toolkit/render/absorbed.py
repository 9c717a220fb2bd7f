"""What small parts are drawn as text, and the rules of which those are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Protocol, SupportsIndex

from toolkit.graph import opdefs
from toolkit.graph.node import CONTROL_FLOW_OPS
from toolkit.render import describe
from toolkit.render.elements import Link, LinkKind, Model
from toolkit.render.scopes import lead_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

READS = frozenset({"ReadVariableOp"})
CONSTANTS = frozenset({"Const", "HostConst"})
#: with fewer boxes than this left, a picture of constants alone would show nothing
LEAST_LEFT = 3


class Neighbours(Protocol):
    """For each element others, such as those that use what it puts out: lists, or columns."""

    def __getitem__(self, number: SupportsIndex, /) -> Sequence[int]: ...


@dataclass(slots=True)
class Absorbed:
    """Attributes:
    host: the element that each absorbed one is drawn in.
    notes: lines to write in the host's box, e.g. ["filter 3×3×64×64"].
    noted: absorbed constants and variables, which every user names in a note of its own; no arc leads from them.
    """

    host: dict[int, int] = field(default_factory=dict[int, int])
    notes: Mapping[int, list[str]] = field(default_factory=dict[int, list[str]])
    noted: set[int] = field(default_factory=set[int])


def take_out(model: Model, gone: bytearray) -> None:
    """Take absorbed elements out of the scopes they are in.

    Args:
        gone: by element, whether it is one.
    """
    for scope in model.root.walk():
        elements = scope.elements
        if elements:
            kept = [i for i in elements if not gone[i]]
            if len(kept) != len(elements):
                scope.elements = kept
    model.count_sizes()


def stays_constant(model: Model, i: int, users: Neighbours) -> bool:
    """Whether an element whose inputs are constants is one: an op that folds, or an argument that never changes."""
    op = model.ops[i]
    if op != "_Arg":
        return folds(op)
    scope = model.homes[i]
    lead = lead_of(scope)
    if lead is None or model.ops[lead] not in ("While", "StatelessWhile"):
        return lead is not None
    # What a loop carries is a constant when its body hands it back as it came; its condition sees it as the body does.
    return scope.label != "cond" and _comes_back(model, i, users)


@cache
def folds(op: str) -> bool:
    """Whether an op of constants is a constant: it has no state, calls nothing and steers nothing."""
    definition = opdefs.find(op)
    return (
        definition is not None
        and not definition.is_stateful
        and not op.startswith("_")
        and op not in CONTROL_FLOW_OPS
        and op not in describe.INPUT_OPS  # a default is a constant, what is fed is not
        and bool(definition.outputs)
        and not any(a.type in ("func", "list(func)") for a in definition.attrs.values())
        and "Summary" not in op
    )


def _comes_back(model: Model, argument: int, users: Neighbours) -> bool:
    """Whether an argument of a loop's body is, through Identity nodes only, the body's result of the same number."""
    number = model.elements[argument].node.attr_or("index", None)
    reached = (model.elements[i].node for i in through_identities(model, argument, users))
    return any(node.op == "_Retval" and node.attr_or("index", None) == number for node in reached)


def through_identities(model: Model, start: int, users: Neighbours) -> list[int]:
    """What uses an element in the same graph, directly or through Identity nodes."""
    graph = model.elements[start].node.graph
    identities, found = [start], list[int]()
    for i in identities:  # grows while we walk it
        for user in users[i]:
            element = model.elements[user]
            if element.node.graph is not graph:
                continue
            if element.op == "Identity" and user not in identities:
                identities.append(user)
            found.append(user)
    return found


def barriers(
    model: Model, users: Neighbours, inputs: list[int] | NDArray[np.int64], waits: list[int] | NDArray[np.int64]
) -> list[int]:
    """NoOp nodes in functions that wait for one node only: tracing made them, and they say nothing of their own.

    Args:
        inputs, waits: how many data and how many control inputs each element has.
    """
    return [
        i
        for i in model.of_op({"NoOp"})
        if model.homes[i].kind == "function" and not inputs[i] and waits[i] == 1 and not users[i]
    ]


def variable_handles(model: Model, links: Sequence[Link]) -> dict[int, int]:
    """Elements that hold the handle of a variable, or its value just read, with the variable.

    Handles go from the variable through the arguments of functions; a picture of a SavedModel is about what the
    functions do, not about how handles get there.

    Args:
        links: all those into reads of variables and arguments.
    """
    found: dict[int, int] = {}
    variables = model.of_op({"VarHandleOp"})
    if not variables:
        return found
    by_source: dict[int, list[int]] = {}
    for link in links:
        op = model.ops[link.dst]
        if op in READS or (op == "_Arg" and link.kind is LinkKind.REFERENCE):
            by_source.setdefault(link.src, []).append(link.dst)
    ready = [i for i in variables if i in by_source]
    found.update((i, i) for i in ready)
    for i in ready:  # grows while we walk it
        for target in by_source.get(i, []):
            if target not in found:
                found[target] = found[i]
                ready.append(target)
    return found
