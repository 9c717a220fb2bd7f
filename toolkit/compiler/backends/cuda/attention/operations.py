"""Attention as one operation: what the product of queries and keys, its softmax and the product with values become."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from toolkit.compiler.ir import relations
from toolkit.compiler.ir.fields import operand
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cuda.libraries.attention import (
    KEPT_TYPES,
    Attention,
    AttentionGradient,
    AttentionSizes,
    FourStrides,
    extent,
)
from toolkit.kernels.tensors import F32


def _misplaced(
    values: Sequence[Value], parts: Sequence[str], places: Sequence[FourStrides], sizes: AttentionSizes
) -> Iterator[str]:
    """What does not fit into its tensor, a sentence each."""
    for value, part, strides in zip(values, parts, places, strict=True):
        if min(strides) < 0 or extent(sizes.shape(part), strides) > value.size:
            yield f"{part} of an attention, {list(sizes.shape(part))} at {list(strides)}, in {relations.text(value)}"


def _misplaced_beside(operation: AttentionCall | AttentionGradientCall, sizes: AttentionSizes) -> Iterator[str]:
    """What of masks and dropouts does not fit into its tensor, or is of another type."""
    places = (operation.mask_strides, operation.bias_strides, operation.keep_strides)
    given = (operation.mask, operation.bias, operation.keep)
    for value, strides in zip(given, places, strict=True):
        if value is not None and strides is not None:
            yield from _misplaced([value], ("scores",), [strides], sizes)
    if any((value is None) != (strides is None) for value, strides in zip(given[1:], places[1:], strict=True)):
        yield "a bias or a dropout of an attention lies nowhere"
    if any(value is not None and value.dtype != F32 for value in (operation.mask, operation.bias)):
        yield "a mask of an attention is not float32"
    if operation.keep is not None and operation.keep.dtype.name not in KEPT_TYPES:
        yield f"what is left of an attention's shares is {relations.text(operation.keep)}"
    if operation.group < 1 or sizes.heads % operation.group:
        yield f"{sizes.heads} heads of an attention have keys for {operation.group} each"


def _beside(operation: AttentionCall | AttentionGradientCall) -> dict[str, Any]:
    """What an `Attention` has of masks and dropouts."""
    keep = operation.keep
    return {
        "bias": operation.bias_strides, "chosen": operation.chosen, "keep": operation.keep_strides,
        "keep_type": "" if keep is None else keep.dtype.name,
        "kept_scale": operation.kept_scale, "group": operation.group,
    }  # fmt: skip


def is_apart(statistics: Value) -> bool:
    """Whether statistics are two numbers of a row."""
    return len(relations.shape(statistics)) > len(AttentionSizes._fields[:3])


class AttentionCall(Operation, mnemonic="gpu_attention"):
    """(keep * softmax(scale * q @ k^T + mask + bias)) @ v for each of batch and heads, without the scores in memory.

    What is launched is `toolkit.kernels.gpu.nn.attention.attend(device, attention, q, k, v, out, mask=, statistics=)`
    with `attention` of this class's property: all tensors are seen as [batch, heads, rows, columns] with four strides
    in elements each, so that heads lie within the results of projections as these wrote them. q, k and v have one type,
    float32 or 16 bits; the mask is float32. The outputs are the result and, in programs that learn, the logarithm of
    each row's sum of exponentials: float32 [batch, heads, rows], or as two numbers that are added (`Attention.apart`).

    Attributes:
        q, k, v: what holds queries, keys and values.
        mask: what is added to the scores, where something is, or (`chosen`) is in the place of those where it is not 0.
        bias: what is added besides.
        keep: what the softmax is multiplied with before the values, and with `kept_scale`: float32, or conditions.
        sizes: batch, heads, rows (queries), keys, numbers of a key, numbers of a value.
        q_strides, k_strides, v_strides, out_strides, mask_strides: of batch, heads, rows and columns; the mask's are 0
            along what it is broadcast.
        scale: of the scores.
        causal: row r sees keys 0 to r only.
        bias_strides, keep_strides: likewise.
        group: heads that have the same keys and values.
    """

    q: Value = operand()
    k: Value = operand()
    v: Value = operand()
    mask: Value | None = operand(default=None)
    bias: Value | None = operand(default=None)
    keep: Value | None = operand(default=None)
    sizes: tuple[int, int, int, int, int, int]
    q_strides: FourStrides
    k_strides: FourStrides
    v_strides: FourStrides
    out_strides: FourStrides
    mask_strides: FourStrides
    scale: float
    causal: bool
    bias_strides: FourStrides | None = None
    keep_strides: FourStrides | None = None
    kept_scale: float = 1.0
    chosen: bool = False
    group: int = 1

    @property
    def multiplied(self) -> tuple[Value, ...]:
        """What is multiplied in 16 bits where the program's products are."""
        return self.q, self.k, self.v

    @property
    def attention(self) -> Attention:
        """What is launched."""
        return Attention(
            AttentionSizes(*self.sizes), self.q.dtype.name, self.scale, self.q_strides, self.k_strides, self.v_strides,
            self.out_strides, None if self.mask is None else self.mask_strides, self.causal, len(self.outputs) > 1,
            **_beside(self), made="" if self.output.dtype == self.q.dtype else self.output.dtype.name,
            apart=len(self.outputs) > 1 and is_apart(self.outputs[1]),
        )  # fmt: skip

    def computed_by(self) -> str | None:
        batch, heads, rows, keys, *_ = self.sizes
        parts = ["a mask"] if self.mask is not None else []
        parts += ["a bias"] if self.bias is not None else []
        parts += ["a dropout"] if self.keep is not None else []
        parts += ["keys up to the query's own"] if self.causal else []
        what = f" with {' and '.join(parts)}" if parts else ""
        return f"one kernel for {batch * heads} attentions of {rows} queries and {keys} keys{what}"

    def verify(self) -> Iterator[str]:
        sizes = AttentionSizes(*self.sizes)
        values, places = [self.q, self.k, self.v], [self.q_strides, self.k_strides, self.v_strides]
        yield from _misplaced([*values, self.output], ("q", "k", "v", "out"), [*places, self.out_strides], sizes)
        yield from _misplaced_beside(self, sizes)
        if any(value.dtype != self.q.dtype for value in values):
            yield f"{', '.join(map(relations.text, values))} of an attention are of several types"
        if len(self.outputs) > 1 and self.outputs[1].shape != self.attention.kept:
            yield f"statistics of {list(sizes[:3])} rows are {relations.text(self.outputs[1])}"


class AttentionGradientCall(Operation, mnemonic="gpu_attention_gradient"):
    """The gradients of an attention by queries, keys and values, in this order, without scores in memory.

    What is launched is `toolkit.kernels.gpu.nn.attention.attend_back`.

    Attributes:
        q, k, v, mask, bias, keep: as the attention takes them.
        out, statistics: what it made.
        d_out: the gradient by its result.
        sizes, q_strides, k_strides, v_strides, out_strides, mask_strides, scale, causal, bias_strides, keep_strides,
            kept_scale, chosen, group: those of the attention.
        d_out_strides, dq_strides, dk_strides, dv_strides: of batch, heads, rows and columns.
    """

    q: Value = operand()
    k: Value = operand()
    v: Value = operand()
    out: Value = operand()
    d_out: Value = operand()
    statistics: Value = operand()
    mask: Value | None = operand(default=None)
    bias: Value | None = operand(default=None)
    keep: Value | None = operand(default=None)
    sizes: tuple[int, int, int, int, int, int]
    q_strides: FourStrides
    k_strides: FourStrides
    v_strides: FourStrides
    out_strides: FourStrides
    mask_strides: FourStrides
    scale: float
    causal: bool
    bias_strides: FourStrides | None = None
    keep_strides: FourStrides | None = None
    kept_scale: float = 1.0
    chosen: bool = False
    group: int = 1
    d_out_strides: FourStrides
    dq_strides: FourStrides
    dk_strides: FourStrides
    dv_strides: FourStrides

    @property
    def multiplied(self) -> tuple[Value, ...]:
        """What is multiplied in 16 bits where the program's products are."""
        return self.q, self.k, self.v, self.out, self.d_out

    @property
    def gradient(self) -> AttentionGradient:
        """What is launched."""
        forward = Attention(
            AttentionSizes(*self.sizes), self.q.dtype.name, self.scale, self.q_strides, self.k_strides, self.v_strides,
            self.out_strides, None if self.mask is None else self.mask_strides, self.causal, True,
            **_beside(self), apart=is_apart(self.statistics),
        )  # fmt: skip
        return AttentionGradient(forward, self.d_out_strides, self.dq_strides, self.dk_strides, self.dv_strides)

    def computed_by(self) -> str | None:
        batch, heads, rows, keys, *_ = self.sizes
        return f"the gradients of {batch * heads} attentions of {rows} queries and {keys} keys, together"

    def verify(self) -> Iterator[str]:
        sizes = AttentionSizes(*self.sizes)
        values = [self.q, self.k, self.v, self.out, self.d_out]
        places = [self.q_strides, self.k_strides, self.v_strides, self.out_strides, self.d_out_strides]
        yield from _misplaced(values, ("q", "k", "v", "out", "out"), places, sizes)
        made = [self.dq_strides, self.dk_strides, self.dv_strides]
        yield from _misplaced(self.outputs, ("q", "k", "v"), made, sizes)
        yield from _misplaced_beside(self, sizes)
        if self.statistics.shape != self.gradient.forward.kept:
            yield f"statistics of {list(sizes[:3])} rows are {relations.text(self.statistics)}"
        if any(value.dtype != self.q.dtype for value in values):
            yield f"{', '.join(map(relations.text, values))} of an attention are of several types"
