"""Values of pictures in other types: integers up to the largest of their type, floats from 0 to 1."""

from __future__ import annotations

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import DTypeLike, as_dtype, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.client.math.casts import limits, saturate_cast
from toolkit.graph import dtypes

#: types of pictures that are changed without a conversion
_FLOATS = (dtypes.float16, dtypes.float32)


def convert_image_dtype(image: TensorLike, dtype: DTypeLike, saturate: bool = False, name: str | None = None) -> Tensor:
    """Another type, scaled so that the largest value stays the largest.

    Args:
        saturate: keeps to the range of the new type.

    Raises:
        AttributeError: one of the types has no numbers of a picture.
    """
    image = convert_to_tensor(image, name="image")
    own, wanted = image.dtype.base, as_dtype(dtype).base
    for kind in (wanted, own):
        if not (kind.is_floating or kind.is_integer):
            raise AttributeError(f"values of pictures are integers or floats, not {kind}")
    if own is wanted:
        return array_ops.identity(image, name=name)

    def cast(x: Tensor, name: str | None = None) -> Tensor:
        return saturate_cast(x, wanted, name) if saturate else math_ops.cast(x, wanted, name)

    with name_scope(name, "convert_image", [image]) as scope:
        if own.is_floating and wanted.is_floating:
            return math_ops.cast(image, wanted, name=scope)
        if own.is_floating:
            return cast(ops.mul(image, limits(wanted)[1] + 0.5), scope)
        if wanted.is_floating:
            return ops.mul(math_ops.cast(image, wanted), 1.0 / limits(own)[1], name=scope)
        levels, wanted_levels = limits(own)[1], limits(wanted)[1]
        if levels > wanted_levels:
            return cast(image // ((levels + 1) // (wanted_levels + 1)), scope)
        return ops.mul(cast(image), (wanted_levels + 1) // (levels + 1), name=scope)


def as_floats(image: Tensor) -> Tensor:
    """The picture in a type that is computed in."""
    return image if image.dtype.base in _FLOATS else convert_image_dtype(image, dtypes.float32)
