"""Scales of channels moved from an image into the filter that reads it.

Squeeze-and-excite multiplies every pixel of an image by a gate for each channel, and a 1x1 convolution reads the
product and nobody else does. The same sums come from multiplying the filter's rows: of an image of 56 by 56 with 144
channels that goes to 24, that is 3,456 products in place of 451,584, and no copy of the image.

The products are rounded in another order, x * (s * w) for (x * s) * w: a unit in the last place of each. A gate is at
most 1 (it comes from a sigmoid), so no filter overflows that did not before; NaN and infinities meet the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import call_of
from toolkit.compiler.ir.operations.memory import Alias
from toolkit.compiler.ir.operations.products import Convolution
from toolkit.compiler.ir.post_ops import Apply, UnaryFunction, post_ops_of
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import is_float

#: by how much the image must be larger than the filter: a filter is scaled and packed by one thread, in bfloat16
#: element by element
_LARGER = {"f32": 4, "bf16": 8}


def scale_filters(block: Block, precision: str, refused: Callable[[Operation], bool]) -> None:
    """Let convolutions take the gates of their input's channels as an operand."""
    gone: set[Operation] = set()
    for conv in block.operations:
        if not isinstance(conv, Convolution) or conv.filter is not None:
            continue
        product = call_of(conv.input, "Mul")
        if product is None or refused(product) or refused(conv):
            continue
        found = _image_and_gates(product)
        if found is None or product.output.sole_user is not conv or product.conditions != conv.conditions:
            continue
        image, gates = found
        if not conv.is_pointwise or image.size < _LARGER["bf16" if precision == "bf16" else "f32"] * conv.weights.size:
            continue
        conv.input, conv.gates, conv.gating = image, gates, tuple(product.steps)
        conv.steps = product.steps + conv.steps
        gone.add(product)
    block.remove(gone)


def _image_and_gates(product: Operation) -> tuple[Value, Value] | None:
    """The factors of a product: an image channels last, and one number between 0 and 1 for each channel."""
    for image, gates in (product.inputs, product.inputs[::-1]):
        if not (is_float(image) and is_float(gates)) or image.shape != product.output.shape or image.shape is None:
            continue
        channels = image.shape[-1]
        if len(image.shape) == 4 and gates.size == channels == (gates.shape or (0,))[-1] and _is_gate(gates):
            return image, gates
    return None


def _is_gate(value: Value) -> bool:
    """Whether a value is a sigmoid's."""
    if call_of(value, "Sigmoid") is not None:
        return True
    producer = value.producer
    if producer is None:
        return False
    if isinstance(producer, Alias):
        return _is_gate(producer.input)
    posts = post_ops_of(producer)
    last = posts[-1] if posts else None
    return isinstance(last, Apply) and last.function is UnaryFunction.LOGISTIC
