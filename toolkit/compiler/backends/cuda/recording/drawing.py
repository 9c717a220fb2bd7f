"""Which ops draw random numbers, so that whoever replays a recorded step takes them from their generators."""

from __future__ import annotations

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.effects import OWN_DRAWS
from toolkit.compiler.ir.operations.calls import Call

#: ops with generators of their own, which go on in each replay (`kernels.cuda.draws`); what others with a second seed
#: do, kernels do on the host
DRAWS = frozenset({
    "CudnnRNN", "CudnnRNNV2", "CudnnRNNV3",
}) | OWN_DRAWS  # fmt: skip
#: likewise, from the generator in the variable that their first input names
GENERATORS = frozenset({
    "StatefulStandardNormalV2", "StatefulUniform", "StatefulTruncatedNormal", "StatefulUniformFullInt",
    "StatefulUniformInt", "RngSkip", "RngReadAndSkip",
})  # fmt: skip


def draws_numbers(block: Block) -> bool:
    """Whether a block draws random numbers, which each of its replays has to take from their generators."""
    drawing = DRAWS | GENERATORS
    return any(isinstance(operation, Call) and operation.step.node.op in drawing for operation in block.walk())
