# The arguments of TensorFlow's functions may be nested in any way, so `elements` says what they are, not types.
# pyright: basic
"""Operations before and behind others, between others, and at the edge of a part of a graph."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.graph_editor.elements import (
    ControlOutputs,
    get_consuming_ops,
    get_generating_ops,
    make_list_of_op,
    make_list_of_t,
    plain,
    takers,
    unique,
)  # fmt: skip
from toolkit.errors import ArgumentTypeError, ArgumentValueError


def check_cios(control_inputs: Any = False, control_outputs: Any = None, control_ios: Any = None) -> tuple[Any, Any]:
    """Whether control inputs count, and the control outputs that do; `control_ios` stands for both.

    Raises:
        ArgumentTypeError: these are no ControlOutputs.
        ArgumentValueError: both are given twice.
    """
    for given in (control_outputs, control_ios):
        if given is not None and not isinstance(given, ControlOutputs):
            raise ArgumentTypeError(f"expected ControlOutputs, not {given!r}")
    if control_ios is None:
        return control_inputs, control_outputs
    if control_inputs or control_outputs is not None:
        raise ArgumentValueError("control_ios stands for control_inputs and control_outputs: give no others")
    return True, control_ios


def _seeds(seeds: Any, of_tensors: Callable[[Any], list[Operation]]) -> list[Operation]:
    """Operations as they are; of tensors, those that make or take them."""
    listed = seeds if isinstance(seeds, Iterable) and not isinstance(seeds, Tensor) else [seeds]
    listed = list(listed)
    return (
        of_tensors(listed)
        if listed and isinstance(plain(listed[0]), Tensor)
        else make_list_of_op(listed, allow_graph=False)
    )


def _walk(
    seeds: list[Operation], near: Callable[[Operation], Iterable[Operation]], inclusive: bool, within_ops: Any,
    within_ops_fn: Callable[[Operation], Any] | None,
) -> list[Operation]:  # fmt: skip
    inside = None if within_ops is None else set(make_list_of_op(within_ops, allow_graph=False))

    def is_in(op: Operation) -> bool:
        return (inside is None or op in inside) and (within_ops_fn is None or bool(within_ops_fn(op)))

    seeds = [op for op in unique(seeds) if is_in(op)]
    found = dict.fromkeys(seeds)
    wave = seeds
    while wave:
        reached = dict.fromkeys(op for each in wave for op in near(each))
        wave = [op for op in reached if op not in found and is_in(op)]
        found.update(dict.fromkeys(wave))
    return list(found) if inclusive else [op for op in found if op not in set(seeds)]


def get_forward_walk_ops(
    seed_ops: Any, inclusive: bool = True, within_ops: Any = None, within_ops_fn: Any = None, stop_at_ts: Any = (),
    control_outputs: Any = None,
) -> list[Operation]:  # fmt: skip
    """The operations behind others, those first that are nearest.

    Args:
        seed_ops: where to begin; tensors stand for what takes them.
        inclusive: with where it begins.
        within_ops, within_ops_fn: go nowhere else.
        stop_at_ts: tensors beyond which it does not go.
        control_outputs: go along these, too.
    """
    control_outputs = check_cios(False, control_outputs)[1]
    stops = set(make_list_of_t(stop_at_ts))

    def behind(op: Operation) -> list[Operation]:
        behind = [to for tensor in op.outputs if tensor not in stops for to in takers(tensor)]
        return behind + (control_outputs.get(op) if control_outputs is not None else [])

    return _walk(_seeds(seed_ops, get_consuming_ops), behind, inclusive, within_ops, within_ops_fn)


def get_backward_walk_ops(
    seed_ops: Any, inclusive: bool = True, within_ops: Any = None, within_ops_fn: Any = None, stop_at_ts: Any = (),
    control_inputs: bool = False,
) -> list[Operation]:  # fmt: skip
    """The operations before others, those first that are nearest; see `get_forward_walk_ops`.

    Args:
        seed_ops: where to begin; tensors stand for what makes them.
        control_inputs: go along these, too.
    """
    stops = set(make_list_of_t(stop_at_ts))

    def before(op: Operation) -> list[Operation]:
        makers = [tensor.op for tensor in op.inputs if tensor not in stops]
        return makers + (list(op.control_inputs) if control_inputs else [])

    return _walk(_seeds(seed_ops, get_generating_ops), before, inclusive, within_ops, within_ops_fn)


def _both_walks(
    forward: Any, backward: Any, forward_inclusive: bool, backward_inclusive: bool, within: dict[str, Any],
    control: tuple[Any, Any],
) -> tuple[list[Operation], list[Operation]]:  # fmt: skip
    return (
        get_forward_walk_ops(forward, forward_inclusive, control_outputs=control[1], **within),
        get_backward_walk_ops(backward, backward_inclusive, control_inputs=control[0], **within),
    )


def get_walks_intersection_ops(
    forward_seed_ops: Any, backward_seed_ops: Any, forward_inclusive: bool = True, backward_inclusive: bool = True,
    within_ops: Any = None, within_ops_fn: Any = None, control_inputs: bool = False, control_outputs: Any = None,
    control_ios: Any = None,
) -> list[Operation]:  # fmt: skip
    """The operations that are behind some and before others."""
    forward, backward = _both_walks(
        forward_seed_ops, backward_seed_ops, forward_inclusive, backward_inclusive,
        {"within_ops": within_ops, "within_ops_fn": within_ops_fn},
        check_cios(control_inputs, control_outputs, control_ios),
    )  # fmt: skip
    there = set(forward)
    return [op for op in backward if op in there]


def get_walks_union_ops(
    forward_seed_ops: Any, backward_seed_ops: Any, forward_inclusive: bool = True, backward_inclusive: bool = True,
    within_ops: Any = None, within_ops_fn: Any = None, control_inputs: bool = False, control_outputs: Any = None,
    control_ios: Any = None,
) -> list[Operation]:  # fmt: skip
    """The operations that are behind some or before others."""
    forward, backward = _both_walks(
        forward_seed_ops, backward_seed_ops, forward_inclusive, backward_inclusive,
        {"within_ops": within_ops, "within_ops_fn": within_ops_fn},
        check_cios(control_inputs, control_outputs, control_ios),
    )  # fmt: skip
    return unique([*forward, *backward])


def get_within_boundary_ops(
    ops: Any, seed_ops: Any, boundary_ops: Any = (), inclusive: bool = True, control_inputs: bool = False,
    control_outputs: Any = None, control_ios: Any = None,
) -> list[Operation]:  # fmt: skip
    """The operations around some, in both directions, up to a boundary.

    Args:
        ops: what may be found.
        boundary_ops: beyond these it does not go.
        inclusive: with what of the boundary is reached.

    Raises:
        ArgumentValueError: it begins at the boundary, and that is not to be found.
    """
    control_inputs, control_outputs = check_cios(control_inputs, control_outputs, control_ios)
    allowed, boundary = set(make_list_of_op(ops)), set(make_list_of_op(boundary_ops))
    seeds = make_list_of_op(seed_ops)
    if boundary & set(seeds):
        raise ArgumentValueError("the boundary is where the walk begins")

    def around(op: Operation) -> list[Operation]:
        if op in boundary:
            return []
        near = [tensor.op for tensor in op.inputs] + [to for tensor in op.outputs for to in takers(tensor)]
        near += list(op.control_inputs) if control_inputs else []
        return near + (control_outputs.get(op) if control_outputs is not None else [])

    found = _walk(seeds, around, True, allowed, None)
    return found if inclusive else [op for op in found if op not in boundary]


def get_ops_ios(
    ops: Any, control_inputs: bool = False, control_outputs: Any = None, control_ios: Any = None
) -> list[Operation]:
    """The operations that give something to others or take something of them."""
    control_inputs, control_outputs = check_cios(control_inputs, control_outputs, control_ios)
    found: list[Operation] = []
    for op in make_list_of_op(ops):
        found += [tensor.op for tensor in op.inputs] + [to for tensor in op.outputs for to in takers(tensor)]
        found += list(op.control_inputs) if control_inputs else []
        found += control_outputs.get(op) if control_outputs is not None else []
    return unique(found)


def compute_boundary_ts(ops: Any) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """What operations take from others; what they give to others, or to nobody; what stays among them."""
    listed = make_list_of_op(ops)
    inside = set(listed)
    taken = unique(tensor for op in listed for tensor in op.inputs if tensor.op not in inside)
    given: Collection[Tensor] = [tensor for op in listed for tensor in op.outputs]
    is_given = {tensor: not set(takers(tensor)) or bool(set(takers(tensor)) - inside) for tensor in given}
    kept = [tensor for tensor in given if inside & set(takers(tensor))]
    return taken, [tensor for tensor in given if is_given[tensor]], kept
