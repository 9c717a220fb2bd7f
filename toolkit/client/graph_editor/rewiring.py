# The arguments of TensorFlow's functions may be nested in any way, so `elements` says what they are, not types.
# pyright: basic
"""Operations are given other inputs, and wait for others."""

from __future__ import annotations

from typing import Any

from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.graph_editor.elements import check_one_graph, make_list_of_op, make_list_of_t, takers
from toolkit.errors import ArgumentTypeError, ArgumentValueError


def reroute_ts(ts0: Any, ts1: Any, can_modify: Any = None, cannot_modify: Any = None) -> int:
    """What takes a tensor of the second list takes the one of the first from now on; returns how many inputs that are.

    Args:
        can_modify: operations that may be changed; by default all.
        cannot_modify: operations that may not.

    Raises:
        ArgumentValueError: there are not as many of both, or they are of several graphs.
        ArgumentTypeError: types differ, or a shape cannot take the other's place.
    """
    return _reroute(ts0, ts1, can_modify, cannot_modify, swaps=False)


def swap_ts(ts0: Any, ts1: Any, can_modify: Any = None, cannot_modify: Any = None) -> int:
    """What takes a tensor of one list takes that of the other from now on; see `reroute_ts`."""
    return _reroute(ts0, ts1, can_modify, cannot_modify, swaps=True)


def _reroute(ts0: Any, ts1: Any, can_modify: Any, cannot_modify: Any, *, swaps: bool) -> int:
    first, second = make_list_of_t(ts0), make_list_of_t(ts1)
    if len(first) != len(second):
        raise ArgumentValueError(f"there are {len(first)} tensors to take the places of {len(second)}")
    check_one_graph([*first, *second])
    changed = 0
    for new, old in zip(first, second, strict=True):
        ends = [(new, _places(old, can_modify, cannot_modify))]
        if swaps:
            ends.append((old, _places(new, can_modify, cannot_modify)))
        for tensor, places in ends:
            other = old if tensor is new else new
            if places and tensor.dtype.base_dtype != other.dtype.base_dtype:
                types = f"{tensor.dtype.name} is not {other.dtype.name}"
                raise ArgumentTypeError(f"'{tensor.name}' cannot take the place of '{other.name}': {types}")
            for op, index in places:
                op.update_input(index, tensor)
            changed += len(places)
    return changed


def _places(tensor: Tensor, can_modify: Any, cannot_modify: Any) -> list[tuple[Operation, int]]:
    found = list(dict.fromkeys(takers(tensor)))
    if can_modify is not None:
        allowed = set(make_list_of_op(can_modify))
        found = [op for op in found if op in allowed]
    if cannot_modify is not None:
        kept = set(make_list_of_op(cannot_modify))
        found = [op for op in found if op not in kept]
    return [(op, index) for op in found for index, given in enumerate(op.inputs) if given is tensor]


def remove_control_inputs(op: Any, cops: Any) -> None:
    """An operation waits no more for others.

    Raises:
        ArgumentValueError: it does not wait for one of them.
    """
    gone = make_list_of_op(cops, allow_graph=False)
    waits = list(op.control_inputs)
    for each in gone:
        if each not in waits:
            raise ArgumentValueError(f"'{op.name}' does not wait for '{each.name}'")
    op.remove_all_control_inputs()
    op.add_control_inputs([each for each in waits if each not in gone])


def add_control_inputs(op: Any, cops: Any) -> None:
    """An operation waits for others, too.

    Raises:
        ArgumentValueError: it waits for one of them already.
    """
    more = make_list_of_op(cops, allow_graph=False)
    for each in more:
        if each in op.control_inputs:
            raise ArgumentValueError(f"'{op.name}' waits for '{each.name}' already")
    op.add_control_inputs(more)
