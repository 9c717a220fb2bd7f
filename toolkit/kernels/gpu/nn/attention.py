"""Attention on a GPU: by cuDNN where it is and has a plan, by a kernel of our own, or by products and a softmax."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast
from weakref import WeakKeyDictionary

from toolkit.kernels.cuda.conversions import convert_into
from toolkit.kernels.cuda.libraries.attention import (
    Attention,
    AttentionGradient,
    extent,
    library_takes,
    with_every_row,
)
from toolkit.kernels.cuda.libraries.precision import is_tf32_allowed
from toolkit.kernels.cuda.nn.flash_gradient_launch import launch_gradient
from toolkit.kernels.cuda.nn.flash_launch import FlashMasks, launch_flash, takes_sizes
from toolkit.kernels.cuda.nn.strided import gathered
from toolkit.kernels.gpu.elementwise.row_nests import LONGEST_ROW
from toolkit.kernels.gpu.nn import attention_parts
from toolkit.kernels.tensors import F32

#: by context's library: what it is asked for; None where it has no plan
_known: WeakKeyDictionary[Any, dict[Attention | AttentionGradient, Any]] = WeakKeyDictionary()
_MOST_KNOWN = 4096  # shapes change without end in few programs


def as_one_kernel(attention: Attention, *, library: bool, in_rows: bool = True) -> Attention | None:
    """An attention as one operation of a program; None where neither the library nor we have kernels for it.

    What the library refuses when it is asked for a plan, and has no kernel of ours, is computed by parts, whose rows
    have to fit into registers.

    Args:
        attention: with statistics where it has gradients.
        library: whether there is one.
        in_rows: whether the numbers of all rows, gradients' too, lie one behind the other, as the library wants them.

    Returns:
        the attention, whose statistics are `apart` where it is ours, and whose masks are one with a row for each query
        where it is the library's.
    """
    taken, ours = in_rows and library_takes(with_every_row(attention)), _is_ours(attention)
    if taken and (ours or attention.sizes.keys <= LONGEST_ROW):
        if not library:
            return replace(attention, apart=attention.statistics and ours)
        one = attention.bias is None and not _is_spread(attention)
        return attention if one else with_every_row(attention)
    return replace(attention, apart=attention.statistics) if ours else None


def attend(
    device: Any, attention: Attention, q: Any, k: Any, v: Any, out: Any, *, mask: Any = None, bias: Any = None,
    keep: Any = None, statistics: Any = None,
) -> None:  # fmt: skip
    """out = (keep * softmax(scale * q @ k^T + mask + bias)) @ v, put into the device's compute stream.

    Args:
        attention: sizes, strides and types; all sizes above 0.
        q, k, v: of its type.
        out: of its result's type.
        mask, bias: float32, where it has them.
        keep: of its type, where it has one.
        statistics: float32, `Attention.kept`, to be written, where it has them.
    """
    asked = replace(attention, tf32=is_tf32_allowed(), deterministic=device.deterministic)
    dnn = device.context.dnn
    of = None if dnn is None or bias is not None else _asked(dnn, with_every_row(asked))
    if dnn is not None and of is not None:
        given = mask if mask is None or of.mask == asked.mask else _every_row(device, asked, of, mask)
        dnn.attend(of, q, k, v, out, device.compute, mask=given, statistics=statistics)
        return
    if _is_ours(asked):
        strides = (asked.q, asked.k, asked.v, asked.out)
        launch_flash(
            device, (q, k, v, out), asked.sizes, strides, asked.scale, beside=_beside(asked, mask, bias, keep),
            causal=asked.causal, statistics=statistics, keeps=_keeps(asked),
        )  # fmt: skip
        return
    attention_parts.attend(device, asked, q, k, v, out, mask, statistics)


def attend_back(
    device: Any,
    gradient: AttentionGradient,
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    d_out: Any,
    statistics: Any,
    made: tuple[Any, Any, Any],
    *,
    mask: Any = None,
    bias: Any = None,
    keep: Any = None,
) -> None:
    """The gradients of an attention, put into the device's compute stream.

    Args:
        q, k, v, out, mask, bias, keep, statistics: what the attention took and made.
        d_out: the gradient by its result.
        made: those by q, k and v, to be written.
    """
    forward = replace(gradient.forward, tf32=is_tf32_allowed(), deterministic=device.deterministic)
    asked = replace(gradient, forward=forward)
    dnn = device.context.dnn
    taken = dnn is not None and bias is None  # of two masks, the library would have been given their sum
    of = _asked(dnn, replace(asked, forward=with_every_row(forward))) if taken else None
    if dnn is not None and of is not None:
        given = mask
        if mask is not None and of.forward.mask != forward.mask:
            given = _every_row(device, forward, of.forward, mask)
        narrow = [x if x.dtype == q.dtype else device.empty(x.shape, q.dtype) for x in made]
        dnn.attend_back(of, q, k, v, out, d_out, statistics, narrow, device.compute, mask=given)
        convert_into(device, [(x, y) for x, y in zip(narrow, made, strict=True) if x is not y])
        return
    if _is_ours(forward):
        launch_gradient(
            device, (q, k, v, out, d_out), made, statistics, forward.sizes,
            (forward.q, forward.k, forward.v, forward.out, gradient.d_out), (gradient.dq, gradient.dk, gradient.dv),
            forward.scale, beside=_beside(forward, mask, bias, keep), causal=forward.causal, keeps=_keeps(forward),
        )  # fmt: skip
        return
    attention_parts.attend_back(device, asked, q, k, v, d_out, statistics, made, mask)


def _beside(a: Attention, mask: Any, bias: Any, keep: Any) -> FlashMasks:
    return FlashMasks(mask, a.mask, bias, a.bias, keep, a.keep, a.chosen, a.kept_scale, a.group)


def _is_spread(a: Attention) -> bool:
    """Whether a mask is broadcast along queries or keys."""
    return a.mask is not None and ((a.sizes.rows > 1 and not a.mask[2]) or (a.sizes.keys > 1 and not a.mask[3]))


def _is_ours(a: Attention) -> bool:
    """Whether kernels of our own compute it, and its gradients; what was planned so stays so."""
    return takes_sizes(a.dtype, a.sizes.size, a.sizes.value_size, tf32=a.tf32 or a.apart)


def _keeps(a: Attention) -> int:
    """How many numbers of a row are statistics."""
    return a.statistics * (1 + a.apart)


def _asked(dnn: Any, of: Any) -> Any:
    """What the library is asked for; None if it has no plan."""
    forward = of.forward if isinstance(of, AttentionGradient) else of
    if not library_takes(forward):
        return None
    known = _known.setdefault(dnn, {})
    try:
        return known[of]
    except KeyError:
        if len(known) >= _MOST_KNOWN:
            known.clear()
        found = known[of] = of if dnn.attends(of) else None
        return found


def _every_row(device: Any, given: Attention, wanted: Attention, mask: Any) -> Any:
    """A mask with a row for each query; axes along which it is broadcast otherwise stay one place."""
    sizes = given.sizes
    before, after = cast(Any, given.mask), cast(Any, wanted.mask)
    shape = [size if stride else 1 for size, stride in zip(sizes.shape("scores"), after, strict=True)]
    assert extent(sizes.shape("scores"), after) == shape[0] * shape[1] * shape[2] * shape[3]
    made = gathered(device, mask, shape, list(before), [], [])
    assert made.dtype == F32
    return made
