"""Networks whose numbers are rounded to 8 bits and back (FakeQuant, QuantizeAndDequantize) computed in 8 bits.

Where what is convolved or multiplied is rounded and the weights are whole multiples of a step, sums of whole numbers
are exact, and one scale for each output makes the float of them that the graph asks for: nearer to its definition than
float32. What follows, up to the next rounding, is done to the sums while they are in registers: bias, activation, the
rounding itself, and a residual that was rounded. Between such layers there are only 8-bit numbers. A residual that was
not rounded is added in float32, and such a layer makes floats.

A number that lies between two steps, but for an error of float32's size, may come out as the other one
(`tests/compiler/integers/test_round_trips.py` gives each output the one or two numbers that it may be).
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.compiler.backends.cpu.integers.conversions import Dequantize, Quantize
from toolkit.compiler.backends.cpu.integers.forms import Form, MatrixForm
from toolkit.compiler.backends.cpu.integers.grids import ROUND_TRIPS, Grid, grid_of, whole_multiples
from toolkit.compiler.backends.cpu.integers.products import U8, Int8Product, int8_product, largest_sum
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.memory import Alias
from toolkit.compiler.ir.operations.pools import Pool, PoolFunction
from toolkit.compiler.ir.operations.products import Convolution, MatMul
from toolkit.compiler.ir.post_ops import Apply, BinaryFunction, Combine, PostOp, UnaryFunction
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import ADDS, posts_of
from toolkit.errors import GraphmillError
from toolkit.kernels.registry import Kind
from toolkit.kernels.tensors import F32

_LIMIT = 1 << 31
_WHOLE = (0, 255)


def has_round_trips(block: Block) -> bool:
    """Whether there is a node that rounds to a few bits and back."""
    return any(operation.op in ROUND_TRIPS for operation in block.operations)


@dataclass(slots=True)
class _Weights:
    """Constant weights in 8 bits.

    Attributes:
        numbers: int8, in the shape of the weights.
        steps: float32, one for each output.
        sums: of the numbers that make an output, float64.
    """

    form: Form
    numbers: Any
    steps: Any
    sums: Any


def lower_round_trips(block: Block, refused: Callable[[Operation], bool]) -> None:
    """Compute in 8 bits what can be; the processor must add products of them exactly."""
    pass_ = _RoundTrips(block, refused)
    pass_.find()
    if pass_.products:
        pass_.lower()
        pass_.fuse()
        pass_.tidy()


class _RoundTrips:
    """The state of the pass.

    Attributes:
        grids: of floats that are rounded, what they are rounded to.
        products: those whose input is rounded, with their weights.
        joined: those of them that add a rounded tensor and are rounded themselves: all of it in 8 bits.
        numbers: of floats, the 8-bit numbers that stand for them.
    """

    def __init__(self, block: Block, refused: Callable[[Operation], bool]):
        self.block = block
        self.refused = refused
        self.grids: dict[Value, Grid] = {}
        self.products: dict[Operation, _Weights] = {}
        self.joined: set[Operation] = set()
        self.numbers: dict[Value, Value] = {}

    # -- what there is ---------------------------------------------------------------------------------------------

    def find(self) -> None:
        """Find rounded tensors and products of them."""
        for operation in self.block.operations:
            if operation.predicates or not operation.outputs or self.refused(operation):
                continue
            if operation.op in ROUND_TRIPS:
                grid = self._grid(operation)
                if grid is not None:
                    self.grids[operation.output] = grid
            elif _keeps_numbers(operation) and operation.inputs[0] in self.grids:
                self.grids[operation.output] = self.grids[operation.inputs[0]]
            elif isinstance(operation, Convolution | MatMul):
                found = self._weights(operation)
                if found is not None:
                    self.products[operation] = found

    @staticmethod
    def _grid(operation: Operation) -> Grid | None:
        shape = operation.output.shape
        if operation.step.kind is not Kind.PURE or not shape or 0 in shape or operation.inputs[0].shape != shape:
            return None
        try:
            return grid_of(operation)
        except GraphmillError:  # it is wrong: the kernel says so when it runs
            return None

    def _weights(self, operation: Convolution | MatMul) -> _Weights | None:
        x, weights = operation.inputs[0], operation.weights
        if x not in self.grids or weights is None or not self._can_follow(operation):
            return None
        if isinstance(operation, MatMul):
            if operation.left is not x or len(x.shape or ()) != 2 or operation.first_column is not None:
                return None
            form: Form = MatrixForm(operation.transpose_left)
            flat = weights
        else:
            if operation.gates is not None or operation.input is not x:
                return None
            form = operation.windows
            flat = weights.reshape(-1, weights.shape[-1] * (weights.shape[-2] if form.depthwise else 1))
        whole = whole_multiples(flat)
        if whole is None:
            return None
        numbers, steps = whole
        if len(numbers) * 128 * 255 >= _LIMIT and largest_sum(numbers.astype(np.int64), 255) >= _LIMIT:
            return None
        sums = numbers.sum(axis=0, dtype=np.int64).astype(np.float64)
        return _Weights(form, numbers.reshape(weights.shape), steps, sums)

    def _can_follow(self, operation: Convolution | MatMul) -> bool:
        """Whether what is done to the sums can be done by a product of 8-bit numbers."""
        added = [post for post in operation.post_ops if isinstance(post, Combine)]
        if not added:
            return True
        if len(added) > 1 or added[0].function is not BinaryFunction.ADD:
            return False
        if (
            operation.post_ops[0] is added[0]
            and all(map(_is_clip, operation.post_ops[1:]))
            and added[0].other in self.grids
            and self._is_rounded(operation.output)
        ):
            self.joined.add(operation)
        other = added[0].other
        return other.dtype == F32 and not other.is_constant and other.shape == operation.output.shape

    def _is_rounded(self, value: Value) -> bool:
        """Whether it is but a tensor to be rounded: a sum in 8 bits is made in the place of what is added."""
        user = value.sole_user
        if user is None or user.op not in ROUND_TRIPS or user.predicates or self.refused(user):
            return False
        return user.inputs[0] is value and self._grid(user) is not None

    def _needed(self) -> set[Value]:
        """Rounded tensors that products take, or are rounded to, and those that these are made of."""
        found: set[Value] = set()
        for product in self.products:
            taken = [value for value in product.inputs if value in self.grids]
            user = product.output.sole_user
            if user is not None and user.outputs and user.output in self.grids:
                taken.append(user.output)
            for value in taken:
                while value not in found:
                    found.add(value)
                    producer = value.producer
                    if producer is not None and _keeps_numbers(producer):
                        value = producer.inputs[0]
        for operation in self.block.operations:
            if operation.op in ROUND_TRIPS and operation.output in self.grids:
                added = self._sum_behind(operation.inputs[0])
                if added is not None and all(value in found for value in added[0].inputs):
                    found.add(operation.output)
        return found

    def _sum_behind(self, value: Value) -> tuple[Operation, list[Operation], list[Apply]] | None:
        """The sum of two tensors that is clipped to a value, the operations that clip it, the last first, and how.

        Returns:
            None where there is none, or anybody else takes something in between.
        """
        passed: list[Operation] = []
        posts: list[Apply] = []
        while True:
            operation = value.producer
            if operation is None or value.sole_user is None or operation.predicates or self.refused(operation):
                return None
            if operation.op in ADDS:
                return operation, passed, posts
            made = posts_of(operation, operation.inputs[0]) if len(operation.inputs) == 1 else None
            if made is None or not all(map(_is_clip, made)):
                return None
            passed.append(operation)
            posts = [*(each for each in made if isinstance(each, Apply)), *posts]
            value = operation.inputs[0]

    # -- 8-bit numbers beside their floats -------------------------------------------------------------------------

    def lower(self) -> None:
        """Let products take 8-bit numbers; whoever takes floats gets them from these."""
        needed = self._needed()
        for operation in self.block.operations:
            if operation in self.products:
                self._product(operation, self.products[operation])
            elif operation.outputs and operation.output in needed:
                value = operation.output
                grid = self.grids[value]
                made = Value(U8, value.shape)
                if _keeps_numbers(operation):
                    fields = {**operation.own_fields(), "input": self.numbers[operation.inputs[0]]}
                    same = type(operation)(**fields, **self._on_behalf(operation), outputs=[made])
                else:
                    same = Quantize(
                        input=operation.inputs[0], unit=grid.step, zero=grid.zero, low=grid.low, high=grid.high,
                        **self._on_behalf(operation), outputs=[made],
                    )  # fmt: skip
                self.block.insert_before(operation, [same])
                self.numbers[value] = made
                operation.become(Dequantize, input=made, unit=grid.step, zero=grid.zero)

    @staticmethod
    def _on_behalf(operation: Operation) -> dict[str, Any]:
        return {"steps": operation.steps, "conditions": operation.conditions}

    def _product(self, operation: Operation, weights: _Weights) -> None:
        assert isinstance(operation, Convolution | MatMul)
        x = operation.inputs[0]
        grid = self.grids[x]
        scales = weights.steps.astype(np.float64) * grid.step
        bias = np.zeros(len(scales)) if operation.bias is None else operation.bias.reshape(-1).astype(np.float64)
        # padding is 0, not the number that stands for 0: where there is any, oneDNN must know that number
        is_padded = isinstance(operation, Convolution) and any(map(any, operation.windows.padding))
        if not is_padded:
            bias = bias - grid.zero * weights.sums * scales
        summand, unit = None, 1.0
        before: list[Apply] = []
        after: list[Apply] = []
        for post in operation.post_ops:
            if isinstance(post, Combine):
                summand, before, after = post.other, after, []
            else:
                after.append(post)
        if summand is not None and operation in self.joined:
            grid_of_it = self.grids[summand]
            summand, unit = self.numbers[summand], grid_of_it.step
            bias = bias - grid_of_it.zero * unit
        operation.become(
            int8_product, form=weights.form, input=self.numbers[x], weights=weights.numbers, summand=summand,
            summand_scale=unit, known_zero=grid.zero if is_padded else 0, bias=bias.astype(np.float32),
            weight_scales=scales.astype(np.float32), before=tuple(before), after=tuple(after),
        )  # fmt: skip

    # -- what follows goes into the products -----------------------------------------------------------------------

    def fuse(self) -> None:
        """Let products give 8-bit numbers, and add rounded tensors to what they have rounded."""
        for operation in self.block.operations:
            if not isinstance(operation, Quantize) or operation.input.sole_user is not operation:
                continue
            producer = operation.input.producer
            if isinstance(producer, Int8Product):
                adds_floats = producer.summand is not None and producer.summand.dtype == F32
                is_float = producer.output.dtype == F32 and not adds_floats
                if is_float and producer.conditions == operation.conditions:
                    self._finish(producer, operation)
            else:
                self._add(operation)

    def _finish(self, product: Int8Product, last: Quantize) -> None:
        """Sums in the steps of the result, which is written as 8-bit numbers."""
        unit = last.unit
        if not all(map(_is_clip, product.after)):  # a function of floats, then to steps
            product.before = (*product.after, Apply(UnaryFunction.LINEAR, 1.0 / unit, float(last.zero)))
            product.after = _clipped((), last)
            self._take_over(product, last)
            return
        product.weight_scales = (product.weight_scales.astype(np.float64) / unit).astype(np.float32)
        product.bias = (product.bias.astype(np.float64) / unit + last.zero).astype(np.float32)
        if product.summand is not None:
            product.summand_scale /= unit
        product.after = _clipped(product.after, last)
        self._take_over(product, last)

    def _take_over(self, product: Int8Product, last: Quantize) -> None:
        product.set_outputs([last.output])
        product.steps = product.steps + last.steps
        self.block.erase(last)

    def _add(self, last: Quantize) -> None:
        """round(clip(a + b)), a product's result and another rounded tensor, by the product."""
        found = self._sum_behind(last.input)
        if found is None or last.predicates:
            return
        operation, passed, posts = found
        one, two = operation.inputs[0], operation.inputs[1]
        for value, other in ((one, two), (two, one)):
            back, beside = value.producer, other.producer
            if not isinstance(back, Dequantize) or not isinstance(beside, Dequantize) or one.shape != two.shape:
                return
            product = back.input.producer
            if (
                isinstance(product, Int8Product)
                and product.summand is None
                and not product.before
                and value.sole_user is operation
                and back.input.sole_user is back
                and value is not other
            ):
                self._add_to(product, back, beside, posts, last)
                passed.append(operation)
                product.steps = product.steps + [step for each in reversed(passed) for step in each.steps]
                self.block.move_before(last, product)
                self._take_over(product, last)
                for each in (*passed, back):
                    self.block.erase(each)
                return

    @staticmethod
    def _add_to(product: Int8Product, back: Dequantize, beside: Dequantize, posts: list[Apply], last: Quantize) -> None:
        """The product's numbers, clipped and rounded, in the steps of the result; then the other ones."""
        low, high = _ends(product.after)
        factor, unit = back.unit / last.unit, beside.unit / last.unit
        offset = last.zero - back.zero * factor - beside.zero * unit
        product.before = (
            Apply(UnaryFunction.CLIP, low, high),
            Apply(UnaryFunction.ROUND),
            Apply(UnaryFunction.LINEAR, factor, offset),
        )
        product.summand, product.summand_scale = beside.input, unit
        product.after = _clipped(posts, last)

    def tidy(self) -> None:
        """Floats that nobody takes are not made."""
        for operation in reversed(self.block.operations):
            is_ours = isinstance(operation, Quantize | Dequantize) or _keeps_numbers(operation)
            if is_ours and not operation.output.is_needed:
                self.block.erase(operation)


def _keeps_numbers(operation: Operation) -> bool:
    """Whether what it gives are some of the numbers that it takes: rounded ones stay so."""
    if isinstance(operation, Pool):
        return operation.function is PoolFunction.MAX
    return isinstance(operation, Alias) and operation.start is None


def _is_clip(post: PostOp) -> bool:
    """Whether it is relu, or clips."""
    if not isinstance(post, Apply):
        return False
    is_relu = post.function is UnaryFunction.RELU and post.alpha == 0.0
    return is_relu or post.function in (UnaryFunction.CLIP, UnaryFunction.CLIP_V2)


def _clipped(posts: Sequence[Apply], last: Quantize) -> tuple[Apply, ...]:
    """Relus and clips of floats, then to the steps that there are, as one clip of numbers in these steps."""
    low, high = float(last.low), float(last.high)
    for post in posts:
        bottom, top = (0.0, np.inf) if post.function is UnaryFunction.RELU else (post.alpha, post.beta)
        low = max(low, bottom / last.unit + last.zero)
        high = min(high, top / last.unit + last.zero)
    low = min(low, high)
    return () if (low, high) == _WHOLE else (Apply(UnaryFunction.CLIP, low, high),)


def _ends(after: Sequence[Apply]) -> tuple[float, float]:
    """Between which numbers a product's results are: what 8 bits hold, where nothing clips them."""
    (clip,) = after or (Apply(UnaryFunction.CLIP, *map(float, _WHOLE)),)
    return clip.alpha, clip.beta
