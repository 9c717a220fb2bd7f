"""Rectangular parts of tensors: how partitioned variables are named, keyed and put together."""

from __future__ import annotations

import re
from dataclasses import dataclass

from toolkit.errors import FormatError, InvalidArgumentError
from toolkit.formats.bundle import ordered_code

#: length of an extent that covers its whole dimension
FULL = -1

_EXTENT = re.compile(r"(\d+),(\d+)")


@dataclass(frozen=True, slots=True)
class TensorSlice:
    """One part of a tensor (TensorSliceProto).

    Attributes:
        extents: (start, length) for each dimension; the length is `FULL` where the dimension is taken whole.
    """

    extents: tuple[tuple[int, int], ...]

    @property
    def rank(self) -> int:
        return len(self.extents)

    @property
    def is_full(self) -> bool:
        return all(length == FULL for _, length in self.extents)

    def bounds(self, dims: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """(start, stop) for each dimension of a tensor of sizes `dims`.

        Raises:
            InvalidArgumentError: the rank is another, or a part lies outside.
        """
        if len(dims) != self.rank:
            raise InvalidArgumentError(
                f"slice '{self}' has {self.rank} dimensions, the tensor {list(dims)} {len(dims)}"
            )
        found: list[tuple[int, int]] = []
        for (start, length), size in zip(self.extents, dims, strict=True):
            stop = size if length == FULL else start + length
            if length == FULL:
                start = 0
            if not 0 <= start <= stop <= size:
                raise InvalidArgumentError(f"slice '{self}' reaches outside of shape {list(dims)}")
            found.append((start, stop))
        return tuple(found)

    def shape(self, dims: tuple[int, ...]) -> tuple[int, ...]:
        """The sizes of this part of a tensor of sizes `dims`."""
        return tuple(stop - start for start, stop in self.bounds(dims))

    def __str__(self) -> str:
        """The text form of SaveV2's `shape_and_slices`: "-:0,4"."""
        return ":".join("-" if length == FULL else f"{start},{length}" for start, length in self.extents)


def full(rank: int) -> TensorSlice:
    """The slice that is a whole tensor of that rank."""
    return TensorSlice(((0, FULL),) * rank)


def parse_slice(text: str) -> TensorSlice:
    """Read "-:0,4" (one extent for each dimension; "-" is all of it).

    Raises:
        InvalidArgumentError: it is not in that form.
    """
    extents: list[tuple[int, int]] = []
    for part in text.split(":") if text else []:
        if part == "-":
            extents.append((0, FULL))
            continue
        match = _EXTENT.fullmatch(part)
        if match is None or int(match[2]) == 0:
            raise InvalidArgumentError(
                f"'{text}' is not a slice: expected 'start,length' with a positive length, or '-', for each dimension, "
                "joined by ':'"
            )
        extents.append((int(match[1]), int(match[2])))
    return TensorSlice(tuple(extents))


def parse_spec(spec: str) -> tuple[tuple[int, ...], TensorSlice] | None:
    """Read one of SaveV2's `shape_and_slices`: "" (None, the whole tensor) or "8 4 4,4:0,4".

    Returns:
        The sizes of the full tensor and the part of it.

    Raises:
        InvalidArgumentError: it is not in that form, or the part lies outside.
    """
    if not spec:
        return None
    *sizes, part = spec.split(" ")
    if not all(size.isdigit() for size in sizes):
        raise InvalidArgumentError(f"'{spec}' is not a shape and slice: expected e.g. '8 4 4,4:0,4'")
    dims = tuple(int(size) for size in sizes)
    parsed = parse_slice(part)
    parsed.bounds(dims)
    return dims, parsed


def encode_key(name: str, part: TensorSlice) -> bytes:
    """The key under which a table keeps one part of a tensor."""
    out = [ordered_code.encode_uint(0), ordered_code.encode_string(name.encode("utf-8", "surrogateescape"))]
    out.append(ordered_code.encode_uint(part.rank))
    for start, length in part.extents:
        out += (ordered_code.encode_int(start), ordered_code.encode_int(length))
    return b"".join(out)


def decode_key(key: bytes) -> tuple[str, TensorSlice]:
    """The tensor's name and the part that a table's key stands for.

    Raises:
        FormatError: it is no such key.
    """
    version, at = ordered_code.decode_uint(key, 0)
    if version != 0:
        raise FormatError(f"a slice key of version {version}; only 0 is known")
    name, at = ordered_code.decode_string(key, at)
    rank, at = ordered_code.decode_uint(key, at)
    extents: list[tuple[int, int]] = []
    for _ in range(rank):
        start, at = ordered_code.decode_int(key, at)
        length, at = ordered_code.decode_int(key, at)
        extents.append((start, length))
    if at != len(key):
        raise FormatError("a slice key has bytes after its end")
    return name.decode("utf-8", "surrogateescape"), TensorSlice(tuple(extents))
