"""What is known of lists, stacks and arrays of tensors: what their elements have in common, and how many there are.

Shape functions see only the element shape that a list was made with, often [?, n]; here it is followed through what
is put into a list, so that loops over time steps, and the loops of their gradients, have known shapes.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.compiler.ir.list_facts import EMPTY, Dims, Invariant, ListFacts, SharedListFacts, join
from toolkit.compiler.ir.value import Value
from toolkit.graph.node import Node


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a list of which all elements are one value; `plain` where that cannot be had."""

    invariant: Invariant
    plain: Value


Outside = Callable[[Value], Invariant | None]


def follow(node: Node, given: list[Value], outputs: list[Value], outside: Outside) -> Sequence[Value | Element]:
    """Note what an operation on lists does; returns its outputs, with the shapes and constants that follow."""
    op = node.op
    if op.startswith("TensorList") or op == "EmptyTensorList":
        grows = op == "TensorListSetItem" and bool(node.attr("resize_if_index_out_of_bounds", False))
        return _follow_list(op, given, outputs, outside, grows)
    if op.startswith(("Stack", "TensorArray")):
        return _follow_handle(op, given, outputs, outside)
    return outputs


def _follow_list(
    op: str, given: list[Value], outputs: list[Value], outside: Outside, grows: bool
) -> Sequence[Value | Element]:
    facts: ListFacts | None = given[0].facts if given else None
    match op:
        case "TensorListReserve" | "EmptyTensorList":
            outputs[0].facts = ListFacts(None, True, 0 if op == "EmptyTensorList" else _number(given[1]))
        case "TensorListFromTensor":
            shape = given[0].shape
            if shape:
                outputs[0].facts = ListFacts(shape[1:], False, shape[0])
        case "TensorListSetItem" if facts is not None:
            length = None if grows else facts.length
            kept = ListFacts(facts.element, facts.is_empty, length, facts.constant)
            outputs[0].facts = _with(kept, ListFacts(given[2].shape, False, length))
        case "TensorListPushBack" if facts is not None:
            pushed = ListFacts(given[1].shape, False, None, _constant(given[1], outside))
            outputs[0].facts = _with(ListFacts(facts.element, facts.is_empty, None, facts.constant), pushed)
        case "TensorListPopBack" if facts is not None:
            outputs[0].facts = ListFacts(facts.element, facts.is_empty, None, facts.constant)
            return [outputs[0], _element(outputs[1], facts)]
        case "TensorListGetItem" if facts is not None and not facts.is_empty:
            return [_element(outputs[0], ListFacts(facts.element, False, None))]
        case "TensorListStack" if facts is not None and facts.element is not None and facts.length is not None:
            _shaped(outputs[0], (facts.length, *facts.element))
        case _:
            pass
    return outputs


def _with(facts: ListFacts, added: ListFacts) -> ListFacts | None:
    return None if added.element is None else join(facts, added)


def _follow_handle(op: str, given: list[Value], outputs: list[Value], outside: Outside) -> Sequence[Value | Element]:
    """Stacks and tensor arrays: the facts are with the handle."""
    if op in ("StackV2", "Stack"):
        outputs[0].facts = SharedListFacts(EMPTY)
        return outputs
    if op in ("TensorArrayV3", "TensorArrayV2"):
        outputs[0].facts = SharedListFacts(ListFacts(None, True, _number(given[0])))
        return outputs
    held = given[0].facts if given else None
    if not isinstance(held, SharedListFacts):
        return outputs
    facts = held.facts
    match op:
        case "StackPushV2" | "StackPush":
            held.add(given[1].shape, _constant(given[1], outside))
            return [given[1]]
        case "StackPopV2" | "StackPop" if facts is not None:
            return [_element(outputs[0], facts)]
        case "TensorArrayWriteV3" | "TensorArrayWriteV2":
            held.add(given[2].shape)
        case "TensorArrayScatterV3" | "TensorArrayScatterV2":
            held.add(given[2].shape[1:] if given[2].shape else None)
        case "TensorArrayReadV3" | "TensorArrayReadV2" if facts is not None and not facts.is_empty:
            _shaped(outputs[0], facts.element)
        case "TensorArrayGatherV3" | "TensorArrayGatherV2" if facts is not None and facts.element is not None:
            if given[1].shape is not None:
                _shaped(outputs[0], (*given[1].shape, *facts.element))
        case "TensorArrayGradV3" | "TensorArrayGradV2" if facts is not None:
            outputs[0].facts = SharedListFacts(ListFacts(facts.element, facts.is_empty, None))
        case _:
            pass
    return outputs


def _element(value: Value, facts: ListFacts) -> Value | Element:
    """An element of a list: with its shape, or the constant that every element is."""
    if isinstance(facts.constant, Invariant) and not facts.is_empty:
        _shaped(value, facts.element)
        return Element(facts.constant, value)
    constant: Any = facts.constant
    if constant is not None and not facts.is_empty:
        return Value(constant.dtype, constant.shape, constant)
    if not facts.is_empty:
        _shaped(value, facts.element)
    return value


def _shaped(value: Value, shape: Dims | None) -> None:
    if value.shape is None:
        value.shape = shape


def _constant(value: Value, outside: Outside) -> Any:
    return value.constant if isinstance(value.constant, np.ndarray | np.generic) else outside(value)


def _number(value: Value) -> int | None:
    constant = value.constant
    return int(constant) if isinstance(constant, np.ndarray | np.generic) and constant.size == 1 else None
