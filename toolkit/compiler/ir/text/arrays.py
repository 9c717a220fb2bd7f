"""Arrays in the text form: small ones with their numbers, others by a rule or by a digest of what they hold.

    float32[2,2] [[1.0, 2.0], [3.0, 4.0]]    the numbers themselves
    float32[64,64] all 0.5                   every number is this one
    float32[64,64] seed 7                    numbers that `seeded` makes
    float32[64,64] sha256:0123456789abcdef   the numbers stand beside the text (`SideTable`)

A number of NumPy's that is no array has no brackets: `float32 0.5`.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from toolkit.compiler.ir.text.tokens import Word, WordKind, Words, number_of, plain_text

_INLINE = 16  # elements: larger arrays are told by a digest
_UNIFORM = 4  # elements from which on one number for all of them is shorter
_PERIOD = 251  # of seeded numbers: a prime, so that no two rows of a matrix are the same
_TYPES = {name: np.dtype(name) for name in (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128", "object",
)} | {name: np.dtype(getattr(ml_dtypes, name)) for name in (
    "bfloat16", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz",
    "int4", "uint4", "int2", "uint2", "float4_e2m1fn",
)}  # fmt: skip


class SideTable:
    """What belongs to a program and does not stand in its text.

    Attributes:
        arrays: large arrays by their text, "float32[64,64] sha256:0123456789abcdef".
        rules: how arrays that were read by a rule are written again, by the same text.
        objects: what is no data, such as a variable or a compiled function, by its text, "@Variable('w')".
    """

    def __init__(self) -> None:
        self.arrays: dict[str, Any] = {}
        self.rules: dict[str, str] = {}
        self.objects: dict[str, Any] = {}


def dtype_named(name: str) -> Any:
    """NumPy's type of this name; None where there is none."""
    return _TYPES.get(name)


def seeded(shape: Sequence[int], dtype: Any, seed: int) -> Any:
    """Numbers between -2 and 2, exact in float32, for programs that are written by hand; the same everywhere."""
    numbers = (np.arange(math.prod(shape), dtype=np.int64) * 7919 + seed * 104729) % _PERIOD
    return ((numbers - _PERIOD // 2) / 64).astype(dtype).reshape(tuple(shape))


def type_of(held: Any) -> tuple[Any, tuple[int, ...] | None]:
    """The type and the shape of an array or number; None for each of anything else."""
    return (held.dtype, held.shape) if isinstance(held, np.ndarray | np.generic) else (None, None)


# -- writing -----------------------------------------------------------------------------------------------------------


def write_array(array: Any, beside: SideTable) -> str:
    """The text of an array; what it does not hold is put beside it."""
    kind = f"{array.dtype}[{','.join(map(str, array.shape))}]"
    elements = array.reshape(-1)
    if array.dtype.hasobject:
        if array.size <= _INLINE and all(isinstance(element, bytes | str) for element in elements):
            return f"{kind} {_nested(list(map(repr, elements)), array.shape)}"
        return f"{kind} {_beside(kind, repr(array.tolist()).encode(), array, beside)}"
    if array.size >= _UNIFORM and _is_uniform(elements):
        return f"{kind} all {_number(elements[0])}"
    if array.size <= _INLINE and _is_exact(elements):
        numbers = _nested(list(map(_number, elements)), array.shape)
        return f"{kind} {beside.rules.get(f'{kind} {numbers}', numbers)}"
    return f"{kind} {_beside(kind, np.ascontiguousarray(array), array, beside)}"


def write_number(number: Any, beside: SideTable) -> str:
    """The text of one of NumPy's numbers."""
    array = np.asarray(number)
    if not array.dtype.hasobject and not _is_exact(array.reshape(-1)):
        return f"{number.dtype} {_beside(str(number.dtype), array, number, beside)}"
    return f"{number.dtype} {_number(number)}"


def _beside(kind: str, content: Any, array: Any, beside: SideTable) -> str:
    digest = f"sha256:{hashlib.sha256(content).hexdigest()[:16]}"
    text = f"{kind} {digest}"
    beside.arrays[text] = array
    return beside.rules.get(text, digest)


def _is_uniform(elements: Any) -> bool:
    """Whether all elements are the same, bit by bit."""
    raw = np.ascontiguousarray(elements).view(np.uint8).reshape(len(elements), -1)
    return bool((raw == raw[0]).all()) and _is_exact(elements[:1])


def _is_exact(elements: Any) -> bool:
    """Whether the numbers say all: not where a NaN has bits of its own."""
    with np.errstate(invalid="ignore"):
        odd = elements[elements != elements]
    if not odd.size:
        return True
    usual = np.full(odd.shape, math.nan, odd.dtype)
    return odd.dtype.kind != "c" and odd.tobytes() == usual.tobytes()


def _number(number: Any) -> str:
    if number.dtype.kind == "c":
        return repr(str(complex(number)))
    if number.dtype.kind in "biu" or "int" in number.dtype.name:
        return repr(number.item()) if number.dtype.kind in "biu" else str(int(number))
    return str(number)


def _nested(texts: Sequence[str], shape: Sequence[int]) -> str:
    if not shape:
        return texts[0]
    step = math.prod(shape[1:])
    return f"[{', '.join(_nested(texts[at * step : (at + 1) * step], shape[1:]) for at in range(shape[0]))}]"


# -- reading -----------------------------------------------------------------------------------------------------------


def read_array(words: Words, beside: SideTable) -> Any:
    """The array, number or type that stands at the next word, the name of a type.

    Raises:
        TextError: it is none of them, has another number of elements than its shape, or is not beside the text.
    """
    first = words.expect_kind(WordKind.NAME)
    dtype = _TYPES[first.text]
    if not words.is_next("["):
        if words.next.kind in (WordKind.NUMBER, WordKind.TEXT, WordKind.DIGEST) or words.is_next("True", "False"):
            return _single(words, first, dtype, beside)
        return dtype
    shape = _read_sizes(words)
    kind = f"{first.text}[{','.join(map(str, shape))}]"
    if words.next.kind is WordKind.DIGEST:
        return _found(words, f"{kind} {words.take().text}", first, beside)
    if words.skip("all"):
        return np.full(shape, _element(words, dtype), dtype)
    if words.is_next("seed"):
        words.take()
        seed = words.expect_kind(WordKind.NUMBER)
        array = seeded(shape, dtype, int(seed.text))
        text = write_array(array, beside)
        beside.rules[text] = f"seed {seed.text}"
        return array
    elements: list[Any] = []
    _read_elements(words, dtype, elements)
    if len(elements) != math.prod(shape):
        raise words.wrong(first, f"{len(elements)} elements, where {list(shape)} has {math.prod(shape)}")
    array = np.empty(len(elements), dtype)
    array[:] = elements
    return array.reshape(shape)


def _single(words: Words, first: Word, dtype: Any, beside: SideTable) -> Any:
    if words.next.kind is WordKind.DIGEST:
        return _found(words, f"{first.text} {words.take().text}", first, beside)
    return np.asarray(_element(words, dtype), dtype)[()]


def _found(words: Words, text: str, first: Word, beside: SideTable) -> Any:
    array = beside.arrays.get(text)
    if array is None:
        raise words.wrong(first, f"the numbers of '{text}' are not beside the text; write 'all' or 'seed' there")
    return array


def _read_sizes(words: Words) -> tuple[int, ...]:
    words.expect("[")
    sizes: list[int] = []
    while not words.skip("]"):
        if sizes:
            words.expect(",")
        sizes.append(int(words.expect_kind(WordKind.NUMBER).text))
    return tuple(sizes)


def _read_elements(words: Words, dtype: Any, elements: list[Any]) -> None:
    if not words.skip("["):
        elements.append(_element(words, dtype))
        return
    while not words.skip("]"):
        _read_elements(words, dtype, elements)
        if not words.is_next("]"):
            words.expect(",")


def _element(words: Words, dtype: Any) -> Any:
    if words.is_next("True", "False"):
        return words.take().text == "True"
    if words.next.kind is WordKind.TEXT:
        text = plain_text(words.take())
        return complex(text) if dtype.kind == "c" else text
    return number_of(words.expect_kind(WordKind.NUMBER))
