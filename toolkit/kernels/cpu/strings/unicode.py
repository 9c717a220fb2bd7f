"""Unicode: decoding to code points, encoding, transcoding, scripts.

Encodings are named as ICU names them; Python's codecs know the same ones. Malformed input is replaced by the
replacement character (one for each malformed sequence), dropped, or refused.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import codecs
from itertools import pairwise
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import np, require
from toolkit.kernels.cpu.strings.basic import map_strings, strings
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array

#: bytes that are decoded at a time: an error copies all that was to be decoded, and every byte may be one
_WINDOW = 4096
#: codecs that begin anew at each character
_FIXED = frozenset({"utf-8", "utf-16-be", "utf-32-be", "ascii", "iso8859-1"})
_PYTHON = {"UTF-16": "utf-16-be", "UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be", "UTF-8": "utf-8"}


def _codec(op: KernelNode, attribute: str) -> str:
    """The Python codec that an encoding attribute names.

    Raises:
        InvalidArgumentError: there is none.
    """
    name = op.text(attribute)
    try:
        codec = codecs.lookup(_PYTHON.get(name, name)).name
        encoded: object = codecs.encode(" ", codec)
        if isinstance(encoded, bytes):
            codecs.decode(encoded, codec)
            return codec
    except (LookupError, TypeError, ValueError):
        pass
    raise InvalidArgumentError(f"Could not create converter for input encoding: {name}", node=op.name)


class _Decoder:
    """Decodes as the attributes of a node say."""

    def __init__(self, op: KernelNode):
        self.codec = _codec(op, "input_encoding")
        self.errors = op.text("errors")
        self.replacement: int = op.attr("replacement_char")
        self.controls: bool = op.attr("replace_control_characters")
        if not (0 <= self.replacement <= 0x10FFFF) or 0xD800 <= self.replacement <= 0xDFFF:
            raise InvalidArgumentError("replacement_char out of unicode codepoint range", node=op.name)

    def __call__(self, text: bytes) -> list[tuple[int, int]]:
        """(code point, byte where it starts) of each character."""
        out: list[tuple[int, int]] = []
        at, step = 0, _WINDOW if self.codec in _FIXED else len(text)
        while at < len(text):
            window = text[at : at + step]
            try:
                good, bad = window.decode(self.codec), None
            except UnicodeDecodeError as error:
                good, bad = window[: error.start].decode(self.codec), error
                if error.start > 0 and error.end == len(window) and at + step < len(text):
                    bad = None  # it may go on in the next window
            for char in good:
                code = ord(char)
                if not (self.controls and code <= 0x1F):
                    out.append((code, at))
                elif self.errors != "ignore":
                    out.append((self.replacement, at))
                at += len(char.encode(self.codec))
            if bad is None:
                if step == len(text):
                    break
                continue
            if self.errors == "strict":
                raise InvalidArgumentError("Invalid formatting on input string")
            if self.errors == "replace":
                out.append((self.replacement, at))
            at += max(bad.end - bad.start, 1)
        return out


@kernel("UnicodeDecode", "UnicodeDecodeWithOffsets")
def unicode_decode(op: KernelNode) -> Compute:
    decode = _Decoder(op)
    splits_type = op.attr("Tsplits").numpy
    has_offsets = op.op == "UnicodeDecodeWithOffsets"

    def compute(x: Array) -> tuple[Array, ...]:
        rows = [decode(text) for text in x.ravel().tolist()]
        splits = np.cumsum([0, *map(len, rows)]).astype(splits_type)
        flat = [pair for row in rows for pair in row]
        table: Any = np.array(flat, np.int64).reshape(-1, 2)
        values = table[:, 0].astype(np.int32)
        return (splits, values, table[:, 1].copy()) if has_offsets else (splits, values)

    return compute


def _is_character(code: int) -> bool:
    return 0 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF


@kernel("UnicodeEncode")
def unicode_encode(op: KernelNode) -> Compute:
    codec, errors = _codec(op, "output_encoding"), op.text("errors")
    replacement = op.attr("replacement_char")
    require(_is_character(replacement), "replacement_char out of unicode codepoint range")

    def clean(codes: list[int]) -> str:
        out: list[str] = []
        for code in codes:
            if _is_character(code):
                out.append(chr(code))
            elif errors == "strict":
                raise InvalidArgumentError(f"Code point is out of range for Unicode, or a noncharacter: {code}")
            elif errors == "replace":
                out.append(chr(replacement))
        return "".join(out)

    def compute(values: Array, splits: Array) -> Array:
        bounds: list[int] = splits.tolist()
        require(bounds, "Invalid ragged tensor: input_splits must not be empty")
        require(bounds[0] == 0, f"First value in input_splits must be zero. Got {bounds[0]}")
        for before, after in pairwise(bounds):
            require(after >= before, "Values in input_splits must be equal or in ascending order.")
        require(
            bounds[-1] == values.size,
            f"Last value in input_splits must equal the number of values: {bounds[-1]} vs. {values.size}",
        )
        codes: list[int] = values.tolist()
        rows = [clean(codes[a:b]).encode(codec) for a, b in pairwise(bounds)]
        return strings(rows, (len(rows),))

    return compute


@kernel("UnicodeTranscode")
def unicode_transcode(op: KernelNode) -> Compute:
    decode, codec = _Decoder(op), _codec(op, "output_encoding")

    def transcode(text: bytes) -> bytes:
        return "".join(chr(code) for code, _ in decode(text)).encode(codec)

    return lambda x: map_strings(transcode, x)
