"""Fourier transforms of real tensors, over chosen axes, and shifts of their results."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.graph import dtypes

_COMPLEX = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}


def _checked(x: TensorLike, inverse: bool, rank: int) -> Tensor:
    """The tensor, of a type and a rank that the transform takes.

    Raises:
        ValueError: it is of another.
    """
    allowed = list(_COMPLEX.values()) if inverse else list(_COMPLEX)
    tensor = convert_to_tensor(x, name=None, preferred_dtype=allowed[0])
    if tensor.dtype.base not in allowed:
        raise ValueError(f"input_tensor: expected {allowed[0]} or {allowed[1]}, got {tensor.dtype.base}")
    known = tensor.static_shape.rank
    if known is not None and known < rank:
        raise ValueError(f"input_tensor: expected {rank} axes or more, got shape {tensor.static_shape}")
    return tensor


def _lengths(x: Tensor, rank: int, inverse: bool) -> Tensor:
    """What is transformed where the program does not say: all there is."""
    known = [None] * rank if x.static_shape.rank is None else list(x.static_shape)[-rank:]
    if None not in known:
        sizes: list[Any] = list(known)
        if inverse:
            sizes[-1] = max(0, 2 * (sizes[-1] - 1))
        return convert_to_tensor(np.array(sizes, np.int32), dtypes.int32)
    shape = array_ops.shape(x)[-rank:]
    if not inverse:
        return shape
    parts: list[Any] = list(array_ops.unstack(shape, rank))
    parts[-1] = ops.maximum(0, 2 * (parts[-1] - 1))
    return array_ops.stack(parts)


def _padded(x: Tensor, rank: int, lengths: Tensor, inverse: bool = False) -> Tensor:
    """Zeros behind what is shorter than the transform."""
    known = list(x.static_shape) if x.static_shape.rank is not None else None
    if known is not None and 0 in known:
        return x
    wanted = static_value(lengths)
    if wanted is not None and known is not None:
        own = known[-len(wanted) :]
        if None not in own:
            sizes = [int(size) for size in wanted]
            if inverse:
                sizes[-1] = sizes[-1] // 2 + 1
            missing = [max(size - have, 0) for size, have in zip(sizes, own, strict=True) if have is not None]
            if not any(missing):
                return x
            return array_ops.pad(x, [[0, 0]] * (len(known) - len(sizes)) + [[0, size] for size in missing])
    count = array_ops.rank(x)
    own_sizes = array_ops.shape(x)[-rank:]
    outer = array_ops.zeros([ops.maximum(0, count - rank)], lengths.dtype.base)
    if inverse:
        lengths = array_ops.concat([lengths[:-1], lengths[-1:] // 2 + 1], 0)
    behind = array_ops.concat([outer, ops.maximum(0, lengths - own_sizes)], 0)
    return array_ops.pad(x, array_ops.stack([array_ops.zeros_like(behind), behind], axis=1))


def _known(lengths: Tensor) -> Any:
    found = static_value(lengths)
    return lengths if found is None else found


Transform = Callable[..., Tensor]


def _real(op: str, rank: int, scope: str, inverse: bool = False) -> Transform:
    """The transform over the last `rank` axes."""

    def transform(input_tensor: TensorLike, fft_length: TensorLike = None, name: str | None = None) -> Tensor:
        with name_scope(name, scope, [input_tensor, fft_length]) as entered:
            x = _checked(input_tensor, inverse, rank)
            if fft_length is None:
                lengths = _lengths(x, rank, inverse)
            else:
                lengths = convert_to_tensor(fft_length, dtypes.int32)
            x = _padded(x, rank, lengths, inverse)
            if inverse:
                return ops.function(op)(x, _known(lengths), Treal=math_ops.real_type(x.dtype), name=entered)
            return ops.function(op)(x, _known(lengths), Tcomplex=_COMPLEX[x.dtype.base], name=entered)

    transform.__name__ = transform.__qualname__ = scope
    transform.__doc__ = f"{op} over the last axes, [{rank}] lengths; shorter tensors are filled up with zeros."
    return transform


rfft = _real("RFFT", 1, "rfft")
rfft2d = _real("RFFT2D", 2, "rfft2d")
rfft3d = _real("RFFT3D", 3, "rfft3d")
irfft = _real("IRFFT", 1, "irfft", inverse=True)
irfft2d = _real("IRFFT2D", 2, "irfft2d", inverse=True)
irfft3d = _real("IRFFT3D", 3, "irfft3d", inverse=True)


def _over_axes(op: str, scope: str) -> Transform:
    """The transform over any axes, with NumPy's norms."""
    inverse = op.startswith("I")
    real = "RFFT" in op

    def transform(
        input_tensor: TensorLike, fft_length: TensorLike = None, axes: TensorLike = None, norm: str | None = None,
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        listed = [input_tensor, fft_length] if op == "IRFFTND" else [input_tensor, fft_length, axes]
        with name_scope(name, scope, listed) as entered:
            given = input_tensor if isinstance(input_tensor, Tensor) else convert_to_tensor(input_tensor)
            rank = given.static_shape.rank
            if rank is None and (axes is None or fft_length is None):
                raise ValueError(f"input_tensor: '{given.name}' has an unknown rank; set_shape says it")
            chosen = convert_to_tensor(np.arange(rank or 0) if axes is None else axes, dtypes.int32)
            count = chosen.static_shape[0] or 0
            x = _checked(given, inverse, count) if real else given
            lengths = _all_lengths(x, op == "IRFFTND") if fft_length is None else fft_length
            lengths = convert_to_tensor(lengths, dtypes.int32)
            x = _padded(x, count, lengths, op == "IRFFTND")
            computed = fft_length is None and op != "IRFFTND"  # TensorFlow does not look through the slice of a shape
            sizes = lengths if computed else _known(lengths)
            x = _normalized(x, _known(lengths), norm, inverse)
            attrs: dict[str, Any] = {}
            if real:
                kind = x.dtype.base
                attrs = {"Treal": math_ops.real_type(kind)} if inverse else {"Tcomplex": _COMPLEX[kind]}
            return ops.function(op)(x, sizes, chosen, name=entered, **attrs)

    transform.__name__ = transform.__qualname__ = scope
    transform.__doc__ = f"{op} over `axes`, all where it is None; norm: None or 'backward', 'ortho', 'forward'."
    return transform


def _all_lengths(x: Tensor, inverse: bool) -> Any:
    rank = len(x.static_shape)
    if not inverse:
        return array_ops.shape(x)[-rank:]
    sizes = list(x.static_shape)
    sizes[-1] = max(0, 2 * ((sizes[-1] or 0) - 1))
    return sizes


def _normalized(x: Tensor, sizes: Any, norm: str | None, inverse: bool) -> Tensor:
    """Divided by how many numbers are transformed, or its root; multiplied on the way back.

    Raises:
        ValueError: an unknown norm.
    """
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f"norm: expected None, 'backward', 'ortho' or 'forward', got {norm!r}")
    if norm in (None, "backward"):
        return x
    if isinstance(sizes, Tensor):  # where TensorFlow fails
        count = math_ops.cast(math_ops.reduce_prod(sizes), x.dtype.base)
        factor: Any = ops.sqrt(count) if norm == "ortho" else count
    else:
        product = math.prod(int(size) for size in sizes)
        factor = math.sqrt(product) if norm == "ortho" else product
    return x * factor if inverse else x / factor


fftnd = _over_axes("FFTND", "fftnd")
ifftnd = _over_axes("IFFTND", "ifftnd")
rfftnd = _over_axes("RFFTND", "rfftnd")
irfftnd = _over_axes("IRFFTND", "irfftnd")


def _shifted(x: TensorLike, axes: Any, name: str | None, scope: str, back: bool) -> Tensor:
    with name_scope(name, scope) as entered:
        x = convert_to_tensor(x)
        if axes is None:
            axes = tuple(range(len(x.static_shape)))
            shift = array_ops.shape(x) // 2
        elif isinstance(axes, int):
            shift = array_ops.shape(x)[axes] // 2
        else:
            rank = array_ops.rank(x)
            axes = array_ops.where(ops.less(axes, 0), axes + rank, axes)
            shift = array_ops.gather(array_ops.shape(x), axes) // 2
        return ops.roll(x, -shift if back else shift, axes, name=entered)


def fftshift(x: TensorLike, axes: Any = None, name: str | None = None) -> Tensor:
    """Frequency 0 moved to the middle of the axes (of all, where none are given)."""
    return _shifted(x, axes, name, "fftshift", False)


def ifftshift(x: TensorLike, axes: Any = None, name: str | None = None) -> Tensor:
    """`fftshift` undone."""
    return _shifted(x, axes, name, "ifftshift", True)
