"""The gradient of a batch norm sums what a kernel before it has just written: that kernel adds it up itself.

Behind a residual block it is the gradient of a relu of two that were added: three tensors are read and one is written,
which the sums over channels would read once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from toolkit.compiler.backends.cuda.operations import ChannelGradients, FusedKernelCall
from toolkit.compiler.ir import relations
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.fields import operand, operands
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.kernels.gpu.elementwise.nests import NestStep, broadcast_strides
from toolkit.kernels.tensors import BF16, F16, F32

#: what the operation gives behind what its nest writes
SUMS = 6
_TYPES = frozenset({F32, F16, BF16})
#: tensors of a kernel: four elements of each are in registers
_MOST_READ = 6


class SummedNest(Operation, mnemonic="gpu_summed_nest"):
    """Elementwise operations over one shape, and the sums of `ChannelGradients` of one of their results.

    Its outputs are what is stored, then those of `ChannelGradients`.

    Attributes:
        shape: of all that is read and written; channels are last.
        reads, members, stores: as of `FusedKernelCall`.
        gradient: which result the sums are of, a position as in `stores`.
        x, scale, mean, variance, epsilon: as of `ChannelGradients`.
    """

    shape: tuple[int, ...]
    reads: tuple[Value, ...] = operands()
    x: Value = operand()
    scale: Value = operand()
    mean: Value = operand()
    variance: Value = operand()
    members: tuple[NestStep, ...]
    stores: tuple[int, ...]
    gradient: int
    epsilon: float

    def computed_by(self) -> str | None:
        return f"one kernel of {len(self.members)} operations, which adds up over channels"

    def verify(self) -> Iterator[str]:
        if len(self.outputs) != len(self.stores) + SUMS:
            yield f"{len(self.outputs)} outputs for {len(self.stores)} stores and {SUMS} sums"
        for value in (*self.reads, self.x, *self.outputs[: len(self.stores)]):
            if value.shape != self.shape or value.dtype != self.x.dtype:
                yield f"{relations.text(value)} of a kernel over {list(self.shape)}"
        for value in (self.scale, self.mean, self.variance, *self.outputs[len(self.stores) :]):
            if value.shape != self.shape[-1:] or value.dtype != F32:
                yield f"{relations.text(value)} of a norm of {self.shape[-1]} channels"
        for index, member in enumerate(self.members):
            if any(not 0 <= source < len(self.reads) + index for source in member.inputs):
                yield f"{member.op} takes what is not there yet"


def sum_where_made(block: Block, refused: Callable[[Operation], bool]) -> None:
    """Have kernels add up what gradients of batch norms take of their results.

    Args:
        refused: whether an operation must stay as it is.
    """
    for operation in block.operations:
        for region in operation.regions():
            sum_where_made(region, refused)
    places = block.positions()
    for operation in block.operations:
        if isinstance(operation, ChannelGradients) and not refused(operation):
            nest = operation.dy.producer
            if isinstance(nest, FusedKernelCall) and not refused(nest) and _fits(nest, operation, places):
                _join(block, nest, operation)


def _fits(nest: FusedKernelCall, sums: ChannelGradients, places: dict[Operation, int]) -> bool:
    """Whether a kernel can add up as well, where it is."""
    if nest.block is not sums.block or nest not in places or nest.conditions != sums.conditions:
        return False
    if sums.factor is not None or sums.channels_first or len(nest.reads) > _MOST_READ:
        return False
    dense = broadcast_strides(nest.shape, nest.shape)
    every = (*nest.reads, *nest.outputs, sums.x)
    if any(strides != dense for strides in nest.strides) or any(value.shape != nest.shape for value in every):
        return False
    if len({value.dtype for value in every}) != 1 or sums.x.dtype not in _TYPES:
        return False
    if any(member.dtype not in ("float32", sums.x.dtype.name) for member in nest.members):
        return False
    made = [value.producer for value in (sums.x, sums.scale, sums.mean, sums.variance)]
    return all(each is None or places.get(each, -1) < places[nest] for each in made)


def _join(block: Block, nest: FusedKernelCall, sums: ChannelGradients) -> None:
    gradient = nest.stores[nest.outputs.index(sums.dy)]
    steps, more = [*nest.steps, *sums.steps], list(sums.outputs)
    x, scale, mean, variance, epsilon = sums.x, sums.scale, sums.mean, sums.variance, sums.epsilon
    block.erase(sums)
    nest.become(
        SummedNest, shape=nest.shape, reads=nest.reads, x=x, scale=scale, mean=mean, variance=variance,
        members=nest.members, stores=nest.stores, gradient=gradient, epsilon=epsilon,
        outputs=[*nest.outputs, *more], steps=steps,
    )  # fmt: skip
