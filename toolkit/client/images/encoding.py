"""Files of pictures, as strings."""

from __future__ import annotations

from toolkit.client import ops
from toolkit.client.construction.convert import DTypeLike, as_dtype, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.images.value_types import convert_image_dtype
from toolkit.graph import dtypes

#: what the op decodes into; other types are made of the widest
_DECODED = (dtypes.float32, dtypes.uint8, dtypes.uint16)


def encode_png(image: TensorLike, compression: int = -1, name: str | None = None) -> Tensor:
    """A PNG file of [height, width, channels], uint8 or uint16; `compression` 0 to 9, -1 is zlib's choice."""
    return ops.encode_png(convert_to_tensor(image), compression=compression, name=name)


def decode_image(
    contents: TensorLike, channels: int | None = None, dtype: DTypeLike = dtypes.uint8, name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:  # fmt: skip
    """The picture of a BMP, GIF, JPEG or PNG file.

    Args:
        contents: the bytes of the file, a scalar.
        channels: how many; the file's where it is None.
        expand_animations: a GIF becomes [frames, height, width, 3]; otherwise its first frame is taken, and the result
            is known to have three axes.
    """
    with name_scope(name, "decode_image"):
        count = channels or 0
        wanted = as_dtype(dtype).base
        own = wanted if wanted in _DECODED else dtypes.uint16
        image = ops.decode_image(contents, channels=count, expand_animations=expand_animations, dtype=own)
        if own is not wanted:
            image = convert_image_dtype(image, wanted)
        if not expand_animations:
            image.set_shape([None, None, channels or None])
        return image


def is_jpeg(contents: TensorLike, name: str | None = None) -> Tensor:
    """Whether bytes begin as a JPEG file does."""
    with name_scope(name, "is_jpeg"):
        return ops.equal(ops.substr(contents, 0, 3), b"\xff\xd8\xff", name=name)
