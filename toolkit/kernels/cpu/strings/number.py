"""Strings from and to numbers, and formatting of whole tensors."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.kernels.cpu.common import np, require
from toolkit.kernels.cpu.strings.basic import scalar, strings
from toolkit.kernels.encodings.text import summarize
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array

_SPACE = b" \t\n\v\f\r"
# patterns are compiled with a kernel that asks for them
_INTEGER = rb"[+-]?[0-9]+\Z"
_FLOAT = rb"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan)\Z"
_PLAIN_DIGITS = b"0123456789"
_PLAIN_INTEGERS = b"0123456789+-"
_PLAIN_NUMBERS = b"0123456789+-.eE"
_HEX_FLOAT = rb"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?\Z"


@kernel("StringToNumber")
def string_to_number(op: KernelNode) -> Compute:
    dtype: DType = op.attr("out_type")
    out = dtype.numpy
    whole = dtype.is_integer
    least, most = (int(np.iinfo(out).min), int(np.iinfo(out).max)) if whole else (0, 0)
    convert: Callable[[bytes], Any] = int if whole else float
    plain = _PLAIN_DIGITS if dtype.kind == "u" else _PLAIN_INTEGERS if whole else _PLAIN_NUMBERS
    integer, decimal, hexadecimal = re.compile(_INTEGER), re.compile(_FLOAT, re.IGNORECASE), re.compile(_HEX_FLOAT)

    def parse(text: bytes) -> Any:
        bare = text.strip(_SPACE)
        if whole:
            if integer.match(bare) and not (dtype.kind == "u" and bare.startswith(b"-")):
                value = int(bare)
                if least <= value <= most:
                    return value
        elif decimal.match(bare):
            return float(bare)
        elif hexadecimal.match(bare):
            return float.fromhex(bare.decode())
        shown = text.decode("utf-8", "replace")
        raise InvalidArgumentError(f"StringToNumberOp could not correctly convert string: {shown}")

    wide = out if whole else np.float64

    def read(texts: list[bytes]) -> Array:
        # of texts of these bytes alone Python takes those that the patterns take; which one is wrong, they say
        if not b"".join(texts).translate(None, plain):
            with contextlib.suppress(ValueError, OverflowError):
                return np.fromiter(map(convert, texts), wide, len(texts))
        return np.array([parse(text) for text in texts], wide)

    def compute(x: Array) -> Array:
        with np.errstate(over="ignore"):
            return read(x.ravel().tolist()).astype(out).reshape(x.shape)

    return compute


@kernel("AsString")
def as_string(op: KernelNode) -> Compute:
    """Numbers by C's printf: %d, %f, %e or %g with the width, precision and fill of the attributes."""
    dtype: DType = op.attr("T")
    precision, width = op.attr("precision"), op.attr("width")
    scientific, shortest, fill = op.attr("scientific"), op.attr("shortest"), op.text("fill")
    is_real = dtype.is_floating or dtype.is_complex
    require(not (scientific and shortest), "Cannot select both scientific and shortest notation")
    require(len(fill) <= 1, f"Fill string must be one or fewer characters, got {fill!r}")
    require(fill in ("", " ", "+", "-", "0", "#"), f'Fill argument not supported: "{fill}"')
    if not is_real:
        require(not (scientific or shortest), f"scientific and shortest format not supported for datatype {dtype}")
        require(precision < 0, f"precision not supported for datatype {dtype}")
    if dtype.kind in "sv":
        require(dtype.kind == "s", "variants cannot be printed")
        require(width <= 0, "width not supported for datatype string")
        return lambda x: x
    pattern = f"%{fill}{width if width > -1 else ''}{f'.{precision}' if precision > -1 else ''}"
    pattern += ("g" if shortest else "e" if scientific else "f") if is_real else "d"
    if dtype is dtypes.bool_:
        require(width <= 0 and not fill, "width and fill are not supported for datatype bool")
        return lambda x: strings((b"true" if v else b"false" for v in x.ravel().tolist()), x.shape)
    if dtype.is_complex:
        both = f"({pattern},{pattern})"
        return lambda x: strings(((both % (v.real, v.imag)).encode() for v in x.ravel().tolist()), x.shape)
    if dtype.is_floating:
        return lambda x: strings((_c_float(pattern, v) for v in x.astype(np.float64).ravel().tolist()), x.shape)
    return lambda x: strings(((pattern % v).encode() for v in x.ravel().tolist()), x.shape)


def _c_float(pattern: str, value: float) -> bytes:
    if not math.isfinite(value):  # C pads these with blanks
        pattern = pattern.replace("%0", "%")
    return (pattern % value).encode()


@kernel("StringFormat")
def string_format(op: KernelNode) -> Compute:
    template, placeholder = op.text("template"), op.text("placeholder")
    count = op.int32("summarize")
    parts = template.split(placeholder) if placeholder else [template]
    wanted = len(op.attr("T"))
    require(
        len(parts) - 1 == wanted,
        f"num placeholders in template and num inputs must match: {len(parts) - 1} vs. {wanted}",
    )

    def compute(*inputs: Array) -> Array:
        out = parts[0]
        for value, part in zip(inputs, parts[1:], strict=True):
            out += summarize(value, count, nested=True) + part
        return scalar(out.encode("utf-8", "surrogateescape"))

    return compute
