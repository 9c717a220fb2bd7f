"""Strings: joining, case, length, parts, splitting, n-grams.

A string tensor is an object array of bytes. Work is done element by element on Python's bytes: NumPy has no
vector form for strings of any length.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable
from itertools import chain, pairwise
from typing import Any

from toolkit.errors import InvalidArgumentError, OutOfRangeError, UnimplementedError
from toolkit.kernels.cpu.common import np, require, require_room, require_scalar, require_vector, shape_text
from toolkit.kernels.registry import Compute, KernelNode, kernel, simple
from toolkit.kernels.types import Array

_SPACE = b" \t\n\v\f\r"


def strings(values: Iterable[Any], shape: tuple[int, ...]) -> Array:
    """An object array of that shape."""
    flat = list(values)
    out = np.empty(len(flat), object)
    out[:] = flat
    return out.reshape(shape)


def scalar(value: bytes) -> Array:
    out = np.empty((), object)
    out[()] = value
    return out


def map_strings(function: Callable[[bytes], Any], x: Array, dtype: Any = object) -> Array:
    """`function` of each element."""
    if dtype is object:
        return strings(map(function, x.ravel().tolist()), x.shape)
    return np.fromiter(map(function, x.ravel().tolist()), dtype, x.size).reshape(x.shape)


@kernel("StringJoin")
def string_join(op: KernelNode) -> Compute:
    separator: bytes = op.attr("separator")

    def compute(*inputs: Array) -> Array:
        shape: tuple[int, ...] = ()
        for x in inputs:
            if x.ndim:
                require(
                    not shape or shape == x.shape,
                    f"Input shapes do not match: {shape_text(shape)} vs. {shape_text(x)}",
                )
                shape = x.shape
        if not any(x.ndim for x in inputs):
            return scalar(separator.join(x.item() for x in inputs))
        count = int(np.prod(shape))
        columns = [x.ravel().tolist() if x.ndim else [x.item()] * count for x in inputs]
        return strings(map(separator.join, zip(*columns, strict=True)), shape)

    return compute


def _case(op: KernelNode, ascii_only: Callable[[bytes], bytes], full: Callable[[str], str]) -> Compute:
    encoding = op.attr("encoding")
    if encoding not in (b"", b"utf-8"):
        raise InvalidArgumentError(
            f"only utf-8 or '' (no encoding) is supported, received encoding={encoding!r}", node=op.name
        )
    if encoding == b"":
        return lambda x: map_strings(ascii_only, x)
    return lambda x: map_strings(lambda s: full(s.decode("utf-8", "replace")).encode(), x)


@kernel("StringLower")
def string_lower(op: KernelNode) -> Compute:
    return _case(op, bytes.lower, str.lower)


@kernel("StringUpper")
def string_upper(op: KernelNode) -> Compute:
    return _case(op, bytes.upper, str.upper)


@simple("StringStrip")
def string_strip(x: Array) -> Array:
    return map_strings(lambda s: s.strip(_SPACE), x)


def _utf8_starts(text: bytes) -> list[int]:
    """Where characters begin: at every byte that continues none."""
    return [i for i, byte in enumerate(text) if byte & 0xC0 != 0x80]


@kernel("StringLength")
def string_length(op: KernelNode) -> Compute:
    if op.text("unit") == "BYTE":
        return lambda x: map_strings(_length, x, np.int32)
    return lambda x: map_strings(lambda s: _length(s.translate(None, _CONTINUATION)), x, np.int32)


#: bytes of UTF-8 that begin no character
_CONTINUATION = bytes(range(0x80, 0xC0))


def _length(text: bytes) -> int:
    """The length of a string, where the op's int32 can say it; TensorFlow would return a wrong number."""
    length = len(text)
    require(length < 1 << 31, f"a string has length {length}, out of range for an int32")
    return length


@kernel("Substr")
def substr(op: KernelNode) -> Compute:
    """Parts of strings by position and length; a negative position counts from the end."""
    in_bytes = op.text("unit") == "BYTE"

    def part(text: bytes, position: int, length: int) -> bytes:
        starts = range(len(text)) if in_bytes else _utf8_starts(text)
        count = len(starts)
        start = position + count if position < 0 else position
        require(
            0 <= start <= count,
            f"pos {position} out of range for string b'{text.decode('utf-8', 'backslashreplace')}'",
        )
        stop = min(start + length, count) if length >= 0 else count
        if in_bytes:
            return text[start:stop]
        bounds = [*starts, len(text)]
        return text[bounds[start] : bounds[max(stop, start)]]

    def compute(x: Array, position: Array, length: Array) -> Array:
        require(
            position.shape == length.shape,
            f"pos and len should have the same shape, got: {shape_text(position)} vs. {shape_text(length)}",
        )
        try:
            shape = np.broadcast_shapes(x.shape, position.shape)
        except ValueError:
            raise InvalidArgumentError(
                f"pos/len must broadcast with the input: {shape_text(x)} vs. {shape_text(position)}"
            ) from None
        if len(shape) > 2 and x.shape != position.shape and position.ndim:
            raise UnimplementedError(f"Substr broadcast not implemented for {len(shape)} dimensions")
        columns = (np.broadcast_to(a, shape).ravel().tolist() for a in (x, position, length))
        return strings((part(*row) for row in zip(*columns, strict=True)), shape)

    return compute


# -- splitting -----------------------------------------------------------------------------------------------


def _sparse(rows: list[list[bytes]]) -> tuple[Array, Array, Array]:
    """The sparse tensor of ragged rows: indices [n, 2], values [n], dense shape [2]."""
    sizes = [len(row) for row in rows]
    total, widest = sum(sizes), max(sizes, default=0)
    indices = np.empty((total, 2), np.int64)
    if len(rows) * widest == total:  # all of one length
        whole = indices.reshape(len(rows), widest, 2)
        whole[..., 0] = np.arange(len(rows))[:, None]
        whole[..., 1] = np.arange(widest)
    else:
        lengths = np.array(sizes, np.int64)
        indices[:, 0] = np.repeat(np.arange(len(rows)), lengths)
        np.subtract(np.arange(total), np.repeat(np.cumsum(lengths) - lengths, lengths), out=indices[:, 1])
    return indices, strings(chain.from_iterable(rows), (total,)), np.array([len(rows), widest], np.int64)


@kernel("StringSplit")
def string_split(op: KernelNode) -> Compute:
    """Split at any of the delimiter's bytes; into single bytes when it is empty."""
    skip_empty = op.attr("skip_empty")

    def compute(x: Array, delimiter: Array) -> tuple[Array, Array, Array]:
        require(x.ndim == 1, f"input must be a vector, got shape: {shape_text(x)}")
        require_scalar(delimiter, "delimiter")
        at: bytes = delimiter.item()
        if len(at) == 1:
            rows = [text.split(at) if text else [] for text in x.tolist()]
        elif at:
            cut = re.compile(b"[" + re.escape(at) + b"]")
            rows = [cut.split(text) if text else [] for text in x.tolist()]
        else:
            rows = [[text[i : i + 1] for i in range(len(text))] for text in x.tolist()]
        return _sparse([list(filter(None, row)) for row in rows] if skip_empty else rows)

    return compute


@kernel("StringSplitV2")
def string_split_v2(op: KernelNode) -> Compute:
    """Split at a separator, or at runs of white space when it is empty (Python's str.split)."""
    limit = op.attr("maxsplit")

    def compute(x: Array, separator: Array) -> tuple[Array, Array, Array]:
        require(x.ndim == 1, f"input must be a vector, got shape: {shape_text(x)}")
        require_scalar(separator, "sep")
        at = separator.item()
        if at:
            return _sparse([text.split(at, limit) for text in x.tolist()])
        return _sparse([_split_space(text, limit) for text in x.tolist()])

    return compute


def _split_space(text: bytes, limit: int) -> list[bytes]:
    """Split at white space; after `limit` parts comes the rest, which may be empty (Python leaves that out)."""
    if limit == 0:
        return [text]
    parts = text.split(None, max(limit, -1))
    if limit > 0 and len(parts) == limit:
        parts.append(b"")
    return parts


# -- joining along axes --------------------------------------------------------------------------------------


@kernel("ReduceJoin")
def reduce_join(op: KernelNode) -> Compute:
    keep_dims, separator = op.attr("keep_dims"), op.attr("separator")

    def compute(x: Array, axes: Array) -> Array:
        rank = x.ndim
        chosen: list[int] = []
        for axis in axes.ravel().tolist():
            if not -rank <= axis < rank:
                raise OutOfRangeError(f"Invalid reduction dimension {axis} for input with {rank} dimension(s)")
            wrapped = axis % rank
            require(wrapped not in chosen, f"Duplicate reduction dimension {axis}")
            chosen.append(wrapped)
        if not chosen:
            return x
        kept = [axis for axis in range(rank) if axis not in chosen]
        moved = x.transpose(kept + chosen[::-1])  # the axis named first varies fastest
        rows = moved.reshape(int(np.prod([x.shape[a] for a in kept])), int(np.prod([x.shape[a] for a in chosen])))
        shape = tuple(1 if a in chosen else x.shape[a] for a in range(rank) if keep_dims or a in kept)
        return strings((separator.join(row) for row in rows.tolist()), shape)

    return compute


@kernel("UnsortedSegmentJoin")
def unsorted_segment_join(op: KernelNode) -> Compute:
    separator = op.attr("separator")

    def compute(x: Array, ids: Array, count: Array) -> Array:
        require_scalar(count, "num_segments")
        total = int(count)
        require(total >= 0, "Number of segments should be non-negative")
        require(
            x.shape[: ids.ndim] == ids.shape,
            f"data.shape must start with segment_ids.shape: {shape_text(x)} vs. {shape_text(ids)}",
        )
        require(ids.ndim > 0, "Number of segment ids should be greater than zero")
        flat = ids.ravel()
        bad = (flat < 0) | (flat >= total)
        require(not bad.any(), "segment_ids are not allowed to exceed num_segments or to have negative values.")
        rows = x.reshape(len(flat), -1)
        groups: list[list[list[bytes]]] = [[[] for _ in range(rows.shape[1])] for _ in range(total)]
        for segment, row in zip(flat.tolist(), rows.tolist(), strict=True):
            for column, text in enumerate(row):
                groups[segment][column].append(text)
        joined = [separator.join(cell) for group in groups for cell in group]
        return strings(joined, (total, *x.shape[ids.ndim :]))

    return compute


@kernel("StringNGrams")
def string_ngrams(op: KernelNode) -> Compute:
    """Runs of neighbouring strings of each row, for each width, joined by the separator."""
    separator, left, right = op.attr("separator"), op.attr("left_pad"), op.attr("right_pad")
    widths: list[int] = op.attr("ngram_widths")
    pad_width, keep_short = op.attr("pad_width"), op.attr("preserve_short_sequences")
    require(all(width > 0 for width in widths), f"ngram_widths must contain only positive values: {widths}")

    def grams(row: list[bytes]) -> list[bytes]:
        out: list[bytes] = []
        for width in widths:
            pad = width - 1 if pad_width < 0 else min(pad_width, width - 1)
            padded = [left] * pad + row + [right] * pad
            out += [separator.join(padded[i : i + width]) for i in range(len(padded) - width + 1)]
        if not out and keep_short and row:
            # what padding there is around all of the row
            pad = max(pad_width, 0)
            out.append(separator.join([left] * pad + row + [right] * pad))
        return out

    def count(size: int) -> int:
        """How many a row of so many strings has, before any is made: widths have no limit."""
        pads = (width - 1 if pad_width < 0 else min(pad_width, width - 1) for width in widths)
        return sum(max(0, size + 2 * pad - width + 1) for width, pad in zip(widths, pads, strict=True))

    def compute(data: Array, splits: Array) -> tuple[Array, Array]:
        require_vector(splits, "data_splits")
        if splits.size:
            bounds = splits.tolist()
            require(bounds[0] == 0, f"First split value must be 0, got {bounds[0]}")
            for before, after in pairwise(bounds):
                require(after >= before, f"Invalid split value {after}, must be in [{before}, {data.size}]")
            require(
                bounds[-1] == data.size, f"Last split value must be data size. Expected {data.size}, got {bounds[-1]}"
            )
        else:
            bounds = [0]
        if data.size == 0:
            return strings([], (0,)), np.zeros(splits.shape, splits.dtype)
        texts = data.reshape(-1).tolist()
        require_room((sum(count(b - a) for a, b in pairwise(bounds)),), object)
        rows = [grams(texts[a:b]) for a, b in pairwise(bounds)]
        out = np.cumsum([0, *map(len, rows)]).astype(splits.dtype)
        return strings([gram for row in rows for gram in row], (int(out[-1]),)), out

    return compute


# -- base64 --------------------------------------------------------------------------------------------------


@kernel("EncodeBase64")
def encode_base64(op: KernelNode) -> Compute:
    pad = op.attr("pad")

    def encode(text: bytes) -> bytes:
        coded = base64.urlsafe_b64encode(text)
        return coded if pad else coded.rstrip(b"=")

    return lambda x: map_strings(encode, x)


_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9_\-]")


@simple("DecodeBase64")
def decode_base64(x: Array) -> Array:
    def decode(text: bytes) -> bytes:
        bare = text.rstrip(b"=")
        padding = len(text) - len(bare)
        try:
            require(
                not _NOT_BASE64.search(bare)
                and len(bare) % 4 != 1
                and (not padding or (padding <= 2 and len(text) % 4 == 0)),
                "Invalid character found in base64.",
            )
            return base64.urlsafe_b64decode(bare + b"=" * (-len(bare) % 4))
        except binascii.Error as error:
            raise InvalidArgumentError(f"Invalid base64: {error}") from None

    return map_strings(decode, x)
