"""Products that take the same rows, with matrices that stay, as one call: those of queries, keys and values above all.

The matrices lie one behind the other in a copy that is made once, the results in one piece of memory of which each is
a part. A call of the library is saved for each, and the rows are read once; but what counts is that a product of few
tiles leaves most multiprocessors idle: 1024 x 768 numbers are 48 tiles, of which an H100 computes 132 at once. Where
each product fills the card by itself nothing is put together, for matrices are in memory twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from toolkit.compiler.backends.cuda.fusion.chains import learns, times_of
from toolkit.compiler.backends.cuda.fusion.convolutions import stays
from toolkit.compiler.backends.cuda.fusion.products import PRODUCT_TYPES
from toolkit.compiler.backends.cuda.operations import LibraryProduct
from toolkit.compiler.backends.cuda.precision.operations import NarrowCopies, ProductsCall
from toolkit.compiler.ir import relations
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.fields import operand, operands
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cuda.libraries.base import Product

Refused = Callable[[Operation], bool]
#: numbers of a tile of results that a multiprocessor computes, as libraries choose it for large products
_TILE = 128 * 128
#: tiles from which on a product fills the largest card: four rounds of 132 multiprocessors lose less than an eighth in
#: the last one
_FULL = 4 * 132
_MATRIX = 2
#: of each result's first number, in bytes: kernels are told that tensors begin so
_ALIGNED = 256


class SharedProducts(Operation, mnemonic="gpu_shared_products"):
    """activation(a @ op(b) + bias) for each of several matrices b of one size; the results are parts of one tensor.

    Attributes:
        a: [..., k]; its rows of all axes are those of one matrix.
        matrices: [k, n] each, or [n, k] where they are turned; axes before these have one element.
        biases: [n], one for each matrix, or none at all.
        turn_b: the matrices are stored transposed.
        activation: as TensorFlow's `fused_ops` name it: "Identity", "Relu", "GeluApproximate" (by tanh).
    """

    a: Value = operand()
    matrices: tuple[Value, ...] = operands()
    biases: tuple[Value, ...] = operands()
    turn_b: bool
    activation: str

    @property
    def product(self) -> Product:
        """What the library is asked for, but for the epilogue: results are apart so that each is aligned."""
        shape = relations.shape(self.output)
        k, n = relations.shape(self.a)[-1], shape[-1]
        m, dtype, made = math.prod(shape[:-1]), self.a.dtype.name, self.output.dtype
        step = -(-m * n * made.itemsize // _ALIGNED) * _ALIGNED // made.itemsize
        return Product(
            m, n, k, dtype, "N", "T" if self.turn_b else "N", len(self.matrices), 0, k * n, step,
            made="" if made.name == dtype else made.name, stride_bias=n if self.biases else 0,
        )  # fmt: skip

    def computed_by(self) -> str | None:
        bias = ", with bias" if self.biases else ""
        activation = "" if self.activation == "Identity" else f" and {self.activation}"
        return f"cuBLASLt, {len(self.matrices)} products of the same rows{bias}{activation}"

    def verify(self) -> Iterator[str]:
        shape = relations.shape(self.output)
        k, n = relations.shape(self.a)[-1], shape[-1]
        if len(self.outputs) != len(self.matrices) or len(self.biases) not in (0, len(self.matrices)):
            yield f"{len(self.outputs)} results of {len(self.matrices)} matrices and {len(self.biases)} biases"
        if math.prod(relations.shape(self.a)[:-1]) != math.prod(shape[:-1]):
            yield f"{relations.text(self.a)} has other rows than {relations.text(self.output)}"
        wanted = (n, k) if self.turn_b else (k, n)
        for matrix, out in zip(self.matrices, self.outputs, strict=False):
            if matrix.size != k * n or relations.shape(matrix)[-2:] != wanted or out.shape != shape:
                yield f"{relations.text(self.a)} times {relations.text(matrix)} is {relations.text(out)}"
        for bias in self.biases:
            yield from relations.vector("a product's bias", bias, n)


def share_rows(block: Block, refused: Refused, changes_variables: Refused) -> None:
    """Put products with the same rows together, in programs that do not learn.

    Args:
        refused: whether an operation must stay a call.
        changes_variables: whether arrays that were read may hold something else behind an operation: nothing is moved
            beyond it.
    """
    if learns(block):
        return
    times, groups = times_of(block, changes_variables), dict[object, list[_Found]]()
    for operation in block.operations:
        found = None if refused(operation) else _found(operation)
        if found is not None:
            key = (found.rows, found.kind, operation.conditions, times[operation])
            groups.setdefault(key, []).append(found)
    for group in groups.values():
        if len(group) > 1:
            _join(block, group)


class _Found:
    """A product that may be put together with others.

    Attributes:
        operation: it.
        rows: what it multiplies.
        matrix, bias: with what, and what is added.
        turned: the matrix is stored transposed.
        activation: of the result.
    """

    def __init__(
        self, operation: Operation, rows: Value, matrix: Value, bias: Value | None, *, turned: bool, activation: str
    ):
        self.operation, self.rows, self.matrix, self.bias = operation, rows, matrix, bias
        self.turned, self.activation = turned, activation

    @property
    def kind(self) -> object:
        """What those have in common that are put together."""
        out, matrix = self.operation.output, relations.shape(self.matrix)
        return out.shape, out.dtype, self.matrix.dtype, matrix[-2:], self.bias is None, self.turned, self.activation


def _found(operation: Operation) -> _Found | None:
    """A product of rows with a matrix that stays; None where an operation is none, or has enough to do by itself."""
    found: _Found | None = None
    match operation:
        case LibraryProduct() if not operation.turn_a:
            found = _Found(
                operation, operation.a, operation.b, operation.bias, turned=operation.turn_b,
                activation=operation.activation,
            )  # fmt: skip
        case ProductsCall() if not operation.turn_a:
            found = _Found(operation, operation.a, operation.b, None, turned=operation.turn_b, activation="Identity")
        case Call() if operation.op == "MatMul" and operation.is_plain and not operation.step.node.attr("transpose_a"):
            turned = bool(operation.step.node.attr("transpose_b"))
            rows, matrix = operation.inputs
            found = _Found(operation, rows, matrix, None, turned=turned, activation="Identity")
        case _:
            pass
    if found is None or found.matrix is found.rows:
        return None
    values = [found.rows, found.matrix, operation.output]
    if any(value.shape is None or value.dtype is None or 0 in value.shape for value in values):
        return None
    if found.rows.dtype.name not in PRODUCT_TYPES:
        return None
    if math.prod((found.matrix.shape or ())[:-2]) != 1 or found.rows.dtype != found.matrix.dtype:
        return None
    if operation.output.size >= _FULL * _TILE:
        return None
    kept = [found.matrix, *([] if found.bias is None else [found.bias])]
    return found if all(map(_stays, kept)) else None


def _stays(value: Value) -> bool:
    """Whether something made of it can be kept: a constant, a variable, or the 16-bit copy of one."""
    producer = value.producer
    return stays(value) or (isinstance(producer, NarrowCopies) and producer.stays)


def _join(block: Block, group: Sequence[_Found]) -> None:
    """Put one call in the place of the first."""
    positions = block.positions()
    first, *others = (found.operation for found in group)
    taken = [value for found in group for value in (found.matrix, found.bias) if value is not None]
    if any(value.producer is not None and positions.get(value.producer, -1) >= positions[first] for value in taken):
        return
    made = SharedProducts(
        a=group[0].rows, matrices=tuple(found.matrix for found in group),
        biases=tuple(found.bias for found in group if found.bias is not None), turn_b=group[0].turned,
        activation=group[0].activation, outputs=[found.operation.output for found in group],
        steps=[step for found in group for step in found.operation.steps], conditions=first.conditions,
    )  # fmt: skip
    block.insert_before(first, [made])
    for operation in (*reversed(others), first):
        block.erase(operation)
