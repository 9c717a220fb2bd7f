"""What attention is, as one configuration that is run on new memory each time: for the library and for our own kernels.

Every tensor is seen as [batch, heads, rows, columns], with a stride in elements for each of these four axes, so that
heads may lie anyhow within larger tensors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from toolkit.kernels.cuda.libraries.base import SIXTEEN_BITS, LibraryError

#: elements from one place of an axis to the next: batch, heads, rows, columns; 0 where the same one is read again
FourStrides = tuple[int, int, int, int]
#: head sizes that cuDNN's attention takes on every card from sm_80 on, forward and backward: multiples of 8 up to 128
#: (its table of what is supported)
_LIBRARY_STEP, _LIBRARY_SIZE = 8, 128


#: types of what a softmax is multiplied with by a dropout: numbers, or 1 where a condition is true
KEPT_TYPES = ("float32", "bool")


class AttentionSizes(NamedTuple):
    """Attributes:
    batch, heads: how many attentions there are, which know nothing of each other.
    rows: queries of each.
    keys: keys and values of each.
    size: numbers of a query and of a key.
    value_size: numbers of a value and of a row of the result.
    """

    batch: int
    heads: int
    rows: int
    keys: int
    size: int
    value_size: int

    def shape(self, part: str) -> tuple[int, int, int, int]:
        """Of "q", "k", "v", "out" or "scores"."""
        rows = self.keys if part in ("k", "v") else self.rows
        columns = {"q": self.size, "k": self.size, "scores": self.keys}.get(part, self.value_size)
        return self.batch, self.heads, rows, columns


@dataclass(frozen=True, slots=True)
class Attention:
    """out = (keep * softmax(scale * q @ k^T + mask + bias)) @ v, for each of batch and heads.

    Scores, their softmax and both sums are float32; the softmax is rounded to the type of q, k and v before it is
    multiplied with v. A NaN in a query, a key or the mask is in all of the rows that see it; a row whose mask is -inf
    everywhere is NaN.

    Attributes:
        dtype: NumPy's name of the type of q, k and v, and of out if not said otherwise: "float32", "float16",
            "bfloat16".
        q, k, v, out: how each lies.
        mask: how what is added to the scores lies, which is float32; None where nothing is. Batch, heads and rows may
            have the stride 0, columns have 1 or 0.
        causal: row r sees keys 0 to r only.
        statistics: the logarithm of each row's sum of exponentials of its scores (mask included) is written as well:
            float32 [batch, heads, rows], one behind the other.
        apart: as two numbers, [batch, heads, rows, 2]: the largest score, and the logarithm of the sum of exponentials
            of scores less that one. Where all keys of a row have -1e9 in the mask, one number would have lost the
            second, and gradients would be of shares of 1. The library has one number.
        tf32: as for products.
        deterministic: the same bits each time.
        made: the type of out, where that is another one: "float32" of 16-bit q, k and v.
        bias: how what is added besides the mask lies.
        chosen: the mask is not added: where it is not 0, it is in the place of the score, which then counts for
            nothing, in gradients neither.
        keep: how what the softmax is multiplied with lies: what a dropout leaves. Sums of exponentials are without it.
        keep_type: NumPy's name of its type, of `KEPT_TYPES`.
        kept_scale: what it is multiplied with as well.
        group: so many heads that follow each other have the same keys and values; k and v, and their gradients, have a
            head for each group, of which `AttentionSizes.heads` counts `group`.
    """

    sizes: AttentionSizes
    dtype: str
    scale: float
    q: FourStrides
    k: FourStrides
    v: FourStrides
    out: FourStrides
    mask: FourStrides | None = None
    causal: bool = False
    statistics: bool = False
    tf32: bool = False
    deterministic: bool = False
    made: str = ""
    apart: bool = False
    bias: FourStrides | None = None
    chosen: bool = False
    keep: FourStrides | None = None
    keep_type: str = ""
    kept_scale: float = 1.0
    group: int = 1

    @property
    def kept(self) -> tuple[int, ...]:
        """The shape of the statistics."""
        return (*self.sizes[:3], 2) if self.apart else self.sizes[:3]

    @property
    def result(self) -> str:
        """NumPy's name of the result's type."""
        return self.made or self.dtype


@dataclass(frozen=True, slots=True)
class AttentionGradient:
    """The gradients of an attention by q, k and v.

    With P = exp(scale * q @ k^T + mask - statistics): dv = P^T @ d_out, dP = d_out @ v^T,
    dS = P * (dP - the row's sum of d_out * out), dq = scale * dS @ k, dk = scale * dS^T @ q. P and dS are rounded to
    the type of the operands before they are multiplied.

    Attributes:
        forward: the attention; its statistics are read.
        d_out, dq, dk, dv: how each lies.
    """

    forward: Attention
    d_out: FourStrides
    dq: FourStrides
    dk: FourStrides
    dv: FourStrides


def library_takes(attention: Attention) -> bool:
    """Whether cuDNN may have an engine, by what its documentation says; whether it has, a plan tells."""
    a = attention
    if a.dtype not in SIXTEEN_BITS or a.made not in ("", a.dtype) or a.apart:
        return False
    if a.bias is not None or a.chosen or a.keep is not None or a.group != 1:
        return False
    if any(size % _LIBRARY_STEP or not 0 < size <= _LIBRARY_SIZE for size in (a.sizes.size, a.sizes.value_size)):
        return False
    if a.mask is not None and a.sizes.rows > 1 and a.mask[2] == 0:
        return False
    places = (a.q, a.k, a.v, a.out)
    return all(strides[3] == 1 for strides in places) and all(0 not in strides[2:] for strides in places)


def with_every_row(attention: Attention) -> Attention:
    """The attention with one mask that has a row for each query, one behind the other, as the library takes it."""
    a = attention
    masks = [each for each in (a.mask, a.bias) if each is not None]
    if not masks or a.chosen:
        return a
    rows, keys = a.sizes.rows, a.sizes.keys
    batch, head = (any(each[axis] for each in masks) for axis in (0, 1))
    heads = a.sizes.heads if head else 1
    mask = (heads * rows * keys if batch else 0, rows * keys if head else 0, keys, 1)
    return replace(a, mask=mask, bias=None)


def extent(shape: tuple[int, int, int, int], strides: FourStrides) -> int:
    """Elements from the first to the last one of a tensor."""
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def packed_strides(shape: tuple[int, int, int, int]) -> FourStrides:
    """Of a tensor in C order."""
    _, heads, rows, columns = shape
    return heads * rows * columns, rows * columns, columns, 1


def check_attention(attention: Attention, mask: Any, statistics: Any) -> None:
    """
    Raises:
        LibraryError: what is given is not what the attention needs.
    """
    for name, needs, value in (
        ("mask", attention.mask is not None, mask),
        ("statistics", attention.statistics, statistics),
    ):
        if needs != (value is not None):
            raise LibraryError(f"an attention {'needs' if needs else 'takes no'} {name}: {attention}")
