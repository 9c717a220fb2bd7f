"""Checkpoints whose values are computed: other types, averages, arrays put in."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.formats.arrays.npy import USER_DEFINED
from toolkit.formats.bundle.entry import Entry
from toolkit.formats.bundle.object_graph import KEY
from toolkit.formats.bundle.source import Array, TensorSource
from toolkit.formats.bundle.transfer import Item, copy_of, write_items
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType


def cast(source: TensorSource, target: str | Path, dtype: DType, wanted: Callable[[str], bool]) -> list[Entry]:
    """Copy a checkpoint with some tensors in another type.

    Args:
        dtype: a number type.
        wanted: which tensors to convert; strings are never.

    Returns:
        What was converted.

    Raises:
        InvalidArgumentError: the type holds no numbers, or complex numbers would lose their imaginary parts.
    """
    if dtype.kind not in "fiucb" or dtype.is_quantized:
        raise InvalidArgumentError(f"tensors cannot be cast to {dtype}; choose a type of numbers")
    items: list[Item] = []
    changed: list[Entry] = []
    for name, entry in source.entries.items():
        if entry.dtype is dtype or entry.dtype.kind in "srv" or entry.dtype.is_quantized or not wanted(name):
            items.append(copy_of(source, name))
            continue
        if entry.dtype.kind == "c" and dtype.kind != "c":
            raise InvalidArgumentError(f"tensor '{name}' is complex; {dtype} would lose half of it", file=source.prefix)
        changed.append(entry)
        items.append(_combined([source], name, entry.dims, dtype, lambda pieces, _: pieces[0]))
    write_items(target, items)
    return changed


class _Work:
    """Arrays that are used again for every piece: fresh ones would be given back to the system and cleared each time,
    which takes longer than the sums."""

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}

    def array(self, name: str, size: int, dtype: Any) -> Array:
        """A flat array with any contents."""
        import numpy as np

        found = self._arrays.get(name)
        if found is None or found.size < size:
            found = self._arrays[name] = np.empty(size, dtype)
        return found[:size]


def _combined(
    sources: Sequence[TensorSource],
    name: str,
    dims: tuple[int, ...],
    dtype: DType,
    combine: Callable[[list[Array], _Work], Array],
) -> Item:
    """A tensor computed element by element from those of the same name, a piece at a time.

    Args:
        combine: from flat pieces of the tensors to a piece of the result, in any type; it is cast to `dtype`.
    """
    entries = [source.entry(name) for source in sources]

    def pieces() -> Iterator[bytes]:
        import numpy as np

        work = _Work()
        streams = [source.chunks(entry) for source, entry in zip(sources, entries, strict=True)]
        for chunks in zip(*streams, strict=True):
            arrays = [np.frombuffer(c, e.dtype.numpy) for c, e in zip(chunks, entries, strict=True)]
            with np.errstate(over="ignore", invalid="ignore"):
                result = combine(arrays, work)
                out = work.array("result", result.size, dtype.numpy)
                np.copyto(out, result, casting="unsafe")
            yield out.tobytes()

    return Item(name, dtype, dims, pieces=pieces)


def average(
    sources: Sequence[TensorSource],
    target: str | Path,
    weights: Sequence[float] | None = None,
    decay: float | None = None,
) -> list[str]:
    """Average the floating-point tensors of several checkpoints of one model.

    Sums are kept in float64 (complex128), a piece of a tensor at a time. Everything else (counters, strings) is
    taken from the last checkpoint.

    Args:
        weights: of each checkpoint; they are scaled to sum to 1. Equal by default.
        decay: instead of weights, an exponential moving average over the checkpoints in order:
            average = decay * average + (1 - decay) * next.

    Returns:
        The names that were averaged.

    Raises:
        InvalidArgumentError: the checkpoints do not have the same tensors, or the weights do not fit.
    """
    if weights is not None and decay is not None:
        raise InvalidArgumentError("give weights or a decay, not both")
    if weights is not None and len(weights) != len(sources):
        raise InvalidArgumentError(f"there are {len(weights)} weights for {len(sources)} checkpoints")
    if decay is not None:
        if not 0 <= decay <= 1:
            raise InvalidArgumentError(f"the decay must be between 0 and 1, not {decay}")
        shares = [(1 - decay) * decay ** (len(sources) - 1 - at) for at in range(len(sources))]
        shares[0] = decay ** (len(sources) - 1)
    else:
        given = [1.0] * len(sources) if weights is None else list(weights)
        if not all(map(math.isfinite, given)):
            raise InvalidArgumentError(f"the weights must be finite, not {', '.join(map(str, given))}")
        total = sum(given)
        if total == 0:
            raise InvalidArgumentError("the weights sum to 0")
        shares = [weight / total for weight in given]
    last = sources[-1]
    _check_alike(sources)
    items: list[Item] = []
    averaged: list[str] = []
    for name, entry in last.entries.items():
        if entry.dtype.kind not in "fc":
            items.append(copy_of(last, name))
            continue
        averaged.append(name)
        items.append(
            _combined(sources, name, entry.dims, entry.dtype, lambda pieces, work: _weighted(pieces, shares, work))
        )
    write_items(target, items)
    return averaged


def _weighted(arrays: list[Array], shares: Sequence[float], work: _Work) -> Array:
    import numpy as np

    wide: Any = np.complex128 if arrays[0].dtype.kind == "c" else np.float64
    total = work.array("total", arrays[0].size, wide)
    total[...] = 0
    for array, share in zip(arrays, shares, strict=True):
        if share:  # what does not count may be infinite
            # Types of numpy's own are widened on the way through the multiplication, without a copy.
            given = array if array.dtype.num < USER_DEFINED else array.astype(wide)
            total += np.multiply(given, share, dtype=wide, out=work.array("term", array.size, wide))
    return total


def _check_alike(sources: Sequence[TensorSource]) -> None:
    first = sources[0]
    for other in sources[1:]:
        lost = sorted(set(first).symmetric_difference(other))
        if lost:
            where = other.prefix if lost[0] in first else first.prefix
            raise InvalidArgumentError(
                f"the checkpoints do not have the same tensors: '{lost[0]}'"
                f"{f' and {len(lost) - 1} more are' if len(lost) > 1 else ' is'} missing",
                file=where,
            )
        for name, a in first.entries.items():
            b = other.entry(name)
            if name != KEY and (a.dtype is not b.dtype or a.shape != b.shape):
                raise InvalidArgumentError(
                    f"tensor '{name}' is {a.dtype}{a.shape} in '{first.prefix}' and {b.dtype}{b.shape} here",
                    file=other.prefix,
                )


def import_arrays(
    source: TensorSource, target: str | Path, arrays: Mapping[str, Array], allow_new: bool = False
) -> None:
    """Copy a checkpoint with some tensors replaced by arrays.

    Args:
        arrays: tensor name to array; it is converted to the tensor's type where that loses nothing.
        allow_new: names that the checkpoint lacks are added.

    Raises:
        NotFoundError: a name is not in the checkpoint.
        InvalidArgumentError: an array has another shape, or values that the tensor's type cannot hold.
    """
    items = [copy_of(source, name) for name in source if name not in arrays]
    for name, array in arrays.items():
        if name not in source and allow_new:
            items.append(_literal(name, array, dtypes.from_numpy(array.dtype)))
            continue
        entry = source.entry(name)
        if tuple(array.shape) != entry.dims:
            raise InvalidArgumentError(
                f"tensor '{name}' has shape {entry.shape}, the array {list(array.shape)}", file=source.prefix
            )
        items.append(_literal(name, _fit(name, array, entry.dtype), entry.dtype))
    write_items(target, items)


def _literal(name: str, array: Array, dtype: DType) -> Item:
    return Item(name, dtype, tuple(array.shape), make=lambda: array)


def _fit(name: str, array: Array, dtype: DType) -> Array:
    import numpy as np

    if dtype.kind in "srv" or array.dtype == dtype.numpy:
        return array
    if array.dtype.kind in "OSU":
        raise InvalidArgumentError(f"tensor '{name}' is {dtype}, the array holds {array.dtype}")
    with np.errstate(over="ignore", invalid="ignore"):
        converted = array.astype(dtype.numpy)
        back = converted.astype(array.dtype)
    if dtype.kind in "iub" and not np.array_equal(back, array):
        raise InvalidArgumentError(f"tensor '{name}' is {dtype}, which cannot hold all values of the array")
    return converted
