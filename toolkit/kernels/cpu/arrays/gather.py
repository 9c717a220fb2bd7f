"""Gathering from and scattering into tensors by index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.arrays.shape import checked_shape
from toolkit.kernels.cpu.common import NARROW_FLOATS, np, require, require_scalar, shape_text, to_ints
from toolkit.kernels.registry import Compute, KernelNode, kernel, simple
from toolkit.kernels.types import Array


def ignores_bad_indices(op: KernelNode) -> bool:
    """Whether indices out of bounds are passed over, as an op's policy says; an op without one refuses them.

    Raises:
        InvalidArgumentError: there is no such policy.
    """
    policy: bytes = op.attr("bad_indices_policy", b"")
    shown = policy.decode(errors="backslashreplace")
    require(policy in (b"", b"DEFAULT", b"ERROR", b"IGNORE"), f"Unknown bad indices handling attribute: {shown}")
    return policy == b"IGNORE"


def check_indices(indices: Array, limit: int, what: str = "indices") -> None:
    """Raise unless 0 <= indices < limit.

    Raises:
        InvalidArgumentError: the first index outside is named with its position.
    """
    # one pass: as unsigned numbers, negative ones are above any limit
    seen = indices.view(f"u{indices.dtype.itemsize}") if indices.dtype.kind == "i" else indices
    if indices.size and np.maximum.reduce(seen, axis=None) >= limit:
        at = np.argwhere((indices < 0) | (indices >= limit))[0].tolist()
        where = ",".join(map(str, at))
        raise InvalidArgumentError(f"{what}[{where}] = {indices[tuple(at)]} is not in [0, {limit})")


@simple("Gather")
def gather(params: Array, indices: Array) -> Array:
    require(params.ndim >= 1, "params must be at least 1 dimensional")
    return _take(params, indices, 0)


def _take(params: Array, indices: Array, axis: int) -> Array:
    """np.take; an empty result asks for no indices to be right."""
    shape = (*params.shape[:axis], *indices.shape, *params.shape[axis + 1 :])
    if 0 in shape:
        return np.zeros(shape, params.dtype)
    check_indices(indices, params.shape[axis])
    return np.asarray(params.take(indices, axis), params.dtype)


@kernel("GatherV2")
def gather_v2(op: KernelNode) -> Compute:
    """Slices of `params` along `axis`, by `indices`, batch by batch."""
    batch_attr = op.attr("batch_dims")

    def compute(params: Array, indices: Array, axis_input: Array) -> Array:
        axis, batch = gather_axes(params, indices, axis_input, batch_attr)
        if batch == 0:
            return _take(params, indices, axis)
        lead, outer, inner = params.shape[:batch], params.shape[batch:axis], params.shape[axis + 1 :]
        shape = (*lead, *outer, *indices.shape[batch:], *inner)
        if 0 in shape:
            return np.zeros(shape, params.dtype)
        check_indices(indices, params.shape[axis])
        count = int(np.prod(lead, dtype=int))
        blocks = params.reshape(
            count, int(np.prod(outer, dtype=int)), params.shape[axis], int(np.prod(inner, dtype=int))
        )
        rows = indices.reshape(count, int(np.prod(indices.shape[batch:], dtype=int)))
        chosen = blocks[np.arange(count)[:, None], :, rows, :]  # [batch, index, outer, inner]
        return chosen.transpose(0, 2, 1, 3).reshape(shape)

    return compute


def gather_axes(params: Any, indices: Any, axis_input: Array, batch: int) -> tuple[int, int]:
    """The axis that is gathered along, and how many axes before it are of batches.

    Raises:
        InvalidArgumentError: there are no such axes, or the batches differ.
    """
    require_scalar(axis_input, "axis")
    axis = int(axis_input)
    if not -params.ndim <= axis < params.ndim:
        raise InvalidArgumentError(f"Expected axis in the range [{-params.ndim}, {params.ndim}), but got {axis}")
    axis %= params.ndim
    if batch == 0:
        return axis, 0
    require(
        -indices.ndim <= batch <= indices.ndim,
        f"Expected batch_dims in the range [{-indices.ndim}, {indices.ndim}], but got {batch}",
    )
    batch = batch + indices.ndim if batch < 0 else batch
    require(batch < params.ndim, f"batch_dims ({batch}) must be less than rank(params) ({params.ndim}).")
    require(batch <= axis, f"batch_dims ({batch}) must be less than or equal to axis ({axis}).")
    for d in range(batch):
        require(
            params.shape[d] == indices.shape[d],
            f"params.shape[{d}]: {params.shape[d]} should be equal to indices.shape[{d}]: {indices.shape[d]}",
        )
    return axis, batch


def _nd_index(indices: Array, shape: tuple[int, ...], what: str) -> tuple[Array, ...]:
    """Index arrays for the last axis of `indices`, checked.

    Raises:
        InvalidArgumentError: an index lies outside of `shape`.
    """
    depth = indices.shape[-1]
    limits = np.array(shape[:depth], np.int64)
    outside = ((indices < 0) | (indices >= limits)).any(axis=-1)
    if outside.any():
        at = tuple(np.argwhere(outside)[0].tolist())
        where = ",".join(map(str, at))
        raise InvalidArgumentError(
            f"{what}[{where}] = {to_ints(indices[at])} does not index into shape {shape_text(shape)}"
        )
    return tuple(indices[..., i] for i in range(depth))


def check_gather_nd(params: Any, indices: Any) -> int:
    """How many coordinates an index has.

    Raises:
        InvalidArgumentError: it has more than the tensor, or there is nothing to take.
    """
    require(params.ndim >= 1, "params must be at least a vector")
    require(indices.ndim >= 1, "indices must be at least a vector")
    depth = indices.shape[-1]
    require(
        depth <= params.ndim,
        f"index innermost dimension length must be <= params rank; saw: {depth} vs. {params.ndim}",
    )
    require(
        params.size or 0 in indices.shape[:-1],
        f"Requested more than 0 entries, but params is empty. Params shape: {shape_text(params)}",
    )
    return depth


@kernel("GatherNd")
def gather_nd(op: KernelNode) -> Compute:
    ignore_bad = ignores_bad_indices(op)

    def compute(params: Array, indices: Array) -> Array:
        depth = check_gather_nd(params, indices)
        if ignore_bad:
            limits = np.array(params.shape[:depth], np.int64)
            bad = ((indices < 0) | (indices >= limits)).any(axis=-1)
            safe = np.where(bad[..., None], 0, indices)
            out = np.array(params[tuple(safe[..., i] for i in range(depth))], params.dtype)
            out[bad] = b"" if params.dtype == object else 0
            return out
        if depth == 0:
            return np.broadcast_to(params, indices.shape[:-1] + params.shape)
        return np.asarray(params[_nd_index(indices, params.shape, "indices")], params.dtype)

    return compute


def _check_updates(shape: tuple[int, ...], indices: Any, updates: Any) -> None:
    if indices.ndim < 1:
        raise InvalidArgumentError(f"Indices shape must have rank at least one. Found:{shape_text(indices)}")
    depth = indices.shape[-1]
    if depth > len(shape):
        raise InvalidArgumentError(
            f"The inner {depth} dimensions of indices exceed the rank of the shape {shape_text(shape)}"
        )
    wanted = indices.shape[:-1] + shape[depth:]
    if updates.shape != wanted:
        raise InvalidArgumentError(
            f"Dimensions [0,{indices.ndim - 1}) of indices[shape={shape_text(indices)}] and of the output "
            f"{shape_text(shape)} ask for updates of shape {shape_text(wanted)}, got {shape_text(updates)}"
        )


def _as_rows(indices: Array) -> Array:
    """A vector of indices is one of scalar indices here (for GatherNd it is one index)."""
    return indices[:, None] if indices.ndim == 1 else indices


def _check_not_empty(size: int, indices: Any, updates: Any) -> None:
    """Indices and updates are empty together, or neither they nor the output are."""
    fits = not (indices.size or updates.size) or (size and indices.size and updates.size)
    require(fits, "Indices and updates specified for empty output")


def check_scatter(shape: tuple[int, ...], indices: Any, updates: Any, size: int) -> None:
    """Refuse updates that do not fit into a tensor, or where one is empty and the other is not.

    Args:
        size: 0 where the tensor takes none.

    Raises:
        InvalidArgumentError: they do not.
    """
    _check_updates(shape, indices, updates)
    _check_not_empty(size, indices, updates)


def scatter_nd_into(target: Array, indices: Array, updates: Array, how: Callable[..., Any] | None) -> None:
    """Apply `how` (a ufunc; None: assign) at the slices of `target` that `indices` name, duplicates in turn."""
    if indices.shape[-1] == 0:
        flat = updates.reshape(-1, *target.shape)
        for update in flat:  # every update covers the whole tensor
            target[...] = update if how is None else how(target, update)
        return
    index = _nd_index(indices, target.shape, "indices")
    if how is None:
        target[index] = updates
    else:
        how.at(target, index, updates)  # type: ignore[attr-defined]


@kernel("ScatterNd")
def scatter_nd(op: KernelNode) -> Compute:
    """Zeros of `shape` with the updates added at their indices."""
    ignore_bad = ignores_bad_indices(op)

    def compute(indices: Array, updates: Array, shape: Array) -> Array:
        sizes = tuple(checked_shape(shape))
        require(indices.ndim >= 1, f"Indices shape must have rank at least one. Found:{shape_text(indices)}")
        require(updates.ndim >= 1, f"Updates shape must have rank at least one. Found:{shape_text(updates)}")
        indices = _as_rows(indices)
        check_scatter(sizes, indices, updates, len(sizes))
        if updates.dtype == object:
            out = np.full(sizes, b"", object)
        else:
            out = np.zeros(sizes, np.float32 if updates.dtype in NARROW_FLOATS else updates.dtype)
        if updates.size == 0:
            return out.astype(updates.dtype)
        if ignore_bad:
            indices, updates = _drop_bad(indices, updates, sizes)
        if out.dtype == bool:
            scatter_nd_into(out, indices, updates, np.logical_or)
        else:
            scatter_nd_into(out, indices, updates.astype(out.dtype), np.add)
        return out.astype(updates.dtype)

    return compute


def _drop_bad(indices: Array, updates: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    depth = indices.shape[-1]
    good = ((indices >= 0) & (indices < np.array(shape[:depth], np.int64))).all(axis=-1)
    return indices[good], updates[good]


_TENSOR_SCATTER: dict[str, Any] = {
    "TensorScatterUpdate": None, "TensorScatterAdd": np.add, "TensorScatterSub": np.subtract,
    "TensorScatterMin": np.minimum, "TensorScatterMax": np.maximum, "ScatterNdNonAliasingAdd": np.add,
}  # fmt: skip


@kernel(*_TENSOR_SCATTER)
def tensor_scatter(op: KernelNode) -> Compute:
    how = _TENSOR_SCATTER[op.op]
    ignore_bad = ignores_bad_indices(op)

    def compute(tensor: Array, indices: Array, updates: Array) -> Array:
        require(tensor.ndim >= 1, f"Tensor must be at least 1-D, got shape {shape_text(tensor)}")
        indices = _as_rows(indices)
        check_scatter(tensor.shape, indices, updates, tensor.size)
        if updates.size == 0:
            return tensor
        if ignore_bad:
            indices, updates = _drop_bad(indices, updates, tensor.shape)
        narrow = tensor.dtype in NARROW_FLOATS and how is not None
        out = tensor.astype(np.float32) if narrow else tensor.copy()
        if out.dtype == bool and how is not None:
            how_bool = np.logical_or if how is np.add else how
            scatter_nd_into(out, indices, updates, how_bool)
        else:
            scatter_nd_into(out, indices, updates.astype(out.dtype), how)
        return out.astype(tensor.dtype)

    return compute


@kernel("DynamicPartition")
def dynamic_partition(op: KernelNode) -> Compute:
    count = op.attr("num_partitions")

    def compute(data: Array, partitions: Array) -> list[Array]:
        check_partitions(data, partitions)
        check_indices(partitions, count, "partitions")
        flat = data.reshape(partitions.size, *data.shape[partitions.ndim :])
        ids = partitions.reshape(-1)
        return [flat[ids == i] for i in range(count)]

    return compute


def check_partitions(data: Any, partitions: Any) -> None:
    """Refuse what has no partition for each row.

    Raises:
        InvalidArgumentError: the shapes say so.
    """
    require(
        data.shape[: partitions.ndim] == partitions.shape,
        f"data.shape must start with partitions.shape, got data.shape = {shape_text(data)}, partitions.shape = "
        f"{shape_text(partitions)}",
    )


@kernel("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(op: KernelNode) -> Compute:
    """Interleaves slices by index; of slices with the same index the last one stays."""
    count = op.attr("N")

    def compute(*args: Array) -> Array:
        indices, data = args[:count], args[count:]
        inner = check_stitched(indices, data)
        size = max((int(i.max()) + 1 for i in indices if i.size), default=0)
        out = np.full((size, *inner), b"" if data[0].dtype == object else 0, data[0].dtype)
        for index, value in zip(indices, data, strict=True):
            check_indices(index, size)
            out[index.reshape(-1)] = value.reshape(index.size, *inner)
        return out

    return compute


def check_stitched(indices: Sequence[Any], data: Sequence[Any]) -> tuple[int, ...]:
    """The shape of the slices that are stitched.

    Raises:
        InvalidArgumentError: they have several, or there is no index for each.
    """
    inner: tuple[int, ...] = data[0].shape[indices[0].ndim :]
    for i, (index, value) in enumerate(zip(indices, data, strict=True)):
        require(
            value.shape[: index.ndim] == index.shape,
            f"data[{i}].shape = {shape_text(value)} does not start with indices[{i}].shape = {shape_text(index)}",
        )
        require(
            value.shape[index.ndim :] == inner,
            f"Need data[0].shape[{indices[0].ndim}:] = data[{i}].shape[{index.ndim}:], got data[0].shape = "
            f"{shape_text(data[0])}, data[{i}].shape = {shape_text(value)}",
        )
    return inner
