"""Quantized graphs: integer sums by oneDNN, all that is elementwise by tiles, ranges worked out beforehand.

Each quantized tensor of TensorFlow comes with its range, two scalars that are computed as tensors are. Where they
follow from constants they become constants here, which lets what takes them be settled too. Results are the same bits
as those of the kernels.
"""

from __future__ import annotations

from collections.abc import Callable

from toolkit.compiler.backends.cpu.elementwise.tiles import chain_tiled
from toolkit.compiler.backends.cpu.integers import convolutions as quantized_products
from toolkit.compiler.backends.cpu.integers import elements as quantized_elements
from toolkit.compiler.backends.cpu.integers import uniform as quantized_uniform
from toolkit.compiler.backends.cpu.integers.rewriting import Rewriter, Rule
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.errors import GraphmillError
from toolkit.kernels.registry import Kind
from toolkit.target.target import Target


def _joined(*tables: dict[str, Rule]) -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    for table in tables:
        twice = rules.keys() & table.keys()
        if twice:
            raise ValueError(f"two rules for {sorted(twice)}")
        rules |= table
    return rules


_RULES = _joined(quantized_elements.RULES, quantized_products.RULES, quantized_uniform.RULES)


def lower_quantized(block: Block, refused: Callable[[Operation], bool], target: Target) -> None:
    """Rewrite every operation on quantized numbers that can be."""
    found = [operation for operation in block.operations if operation.op in _RULES and not refused(operation)]
    if not found:
        return
    rewriter = Rewriter(block, target)
    for operation in found:
        values = [*operation.inputs, *operation.outputs]
        if operation.step.kind is not Kind.PURE:
            continue
        if any(value.dtype is None or value.shape is None or 0 in value.shape for value in values):
            continue
        try:
            _RULES[operation.op](rewriter, operation)
        except (GraphmillError, ArithmeticError, ValueError):  # it is wrong: the kernel says so when it runs
            continue
    block.weave(rewriter.before)
    block.remove(rewriter.replaced)
    chain_tiled(block)
