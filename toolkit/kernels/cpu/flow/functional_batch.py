"""BatchFunction: a function over what callers hand in together."""

from __future__ import annotations

from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.graph.attrs import FuncRef
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import np, require, shape_text
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel


@kernel("BatchFunction", kind=Kind.STATEFUL)
def batch_function(op: KernelNode) -> Compute:
    """The first dimension is filled up to the next allowed size with copies of the first row, and cut off again.

    Servers gather the calls of several clients for a while; here every call is a batch of its own.
    """
    ref: FuncRef = op.attr("f")
    library, site = op.library, op.name
    count = len(op.attr("Tin"))
    most: int = op.attr("max_batch_size")
    allowed: list[int] = op.attr("allowed_batch_sizes")
    splits: bool = op.attr("enable_large_batch_splitting")
    require(most > 0, f"max_batch_size must be positive, but was {most}")
    _check_sizes(op, allowed, most, splits)

    def call(step: StepContext, parts: list[Any], captured: tuple[Any, ...]) -> list[Any]:
        size = len(parts[0])
        target = next((n for n in allowed if n >= size), size)
        if target > size:
            parts = [np.concatenate([part, np.repeat(part[:1], target - size, axis=0)]) for part in parts]
        outputs = step.functions.prepare(library, ref, site)([*parts, *captured], step)
        for value in outputs:
            require(
                np.ndim(value) > 0 and len(value) == target,
                f"Batched output tensor's 0th dimension does not equal the batch size {target}: {shape_text(value)}",
            )
        return [value[:size] for value in outputs]

    def compute(step: StepContext, *args: Any) -> list[Any]:
        parts, captured = list(args[:count]), args[count:]
        for part in parts:
            require(np.ndim(part) > 0, "Batching input tensors must have at least one dimension")
            require(
                len(part) == len(parts[0]),
                "Batching input tensors supplied in a given op invocation must have equal 0th-dimension size",
            )
        size, limit = len(parts[0]), allowed[-1] if splits and allowed else most
        if size <= limit:
            return call(step, parts, captured)
        if not splits:
            raise InvalidArgumentError(f"Task size {size} is larger than maximum input batch size {most}")
        pieces = [call(step, [p[at : at + limit] for p in parts], captured) for at in range(0, size, limit)]
        return [np.concatenate(piece) for piece in zip(*pieces, strict=True)]

    return compute


def _check_sizes(op: KernelNode, allowed: list[int], most: int, splits: bool) -> None:
    """
    Raises:
        InvalidArgumentError: the sizes do not rise, or do not end with the largest batch.
    """
    if any(b <= a for a, b in zip([0, *allowed], allowed, strict=False)):
        raise InvalidArgumentError("allowed_batch_sizes entries must be monotonically increasing", node=op.name)
    if allowed and (allowed[-1] > most if splits else allowed[-1] != most):
        raise InvalidArgumentError(
            f"final entry in allowed_batch_sizes must equal max_batch_size: {allowed[-1]} vs. {most}", node=op.name
        )
