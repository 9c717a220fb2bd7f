"""Matrix products and Einsum."""

from __future__ import annotations

from collections import Counter

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import NARROW_FLOATS, check_broadcast, np, require, shape_text, wide
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array


def _adjoint(x: Array) -> Array:
    x = np.swapaxes(x, -1, -2)
    return np.conj(x) if x.dtype.kind == "c" else x


@kernel("MatMul")
def matmul(op: KernelNode) -> Compute:
    """[m, k] x [k, n]; either operand may be stored transposed."""
    transpose_a, transpose_b = bool(op.attr("transpose_a")), bool(op.attr("transpose_b"))
    dtype = op.output_types[0].numpy
    narrow = dtype in NARROW_FLOATS

    def compute(a: Array, b: Array) -> Array:
        if not a.ndim == b.ndim == 2:
            raise InvalidArgumentError(
                f"In[0] and In[1] has different ndims or are not matrices: {shape_text(a)} vs. {shape_text(b)}"
            )
        if a.shape[0 if transpose_a else 1] != b.shape[1 if transpose_b else 0]:
            raise InvalidArgumentError(f"Matrix size-incompatible: In[0]: {shape_text(a)}, In[1]: {shape_text(b)}")
        if transpose_a:
            a = a.T
        if transpose_b:
            b = b.T
        if narrow:
            return np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(dtype)
        return np.matmul(a, b)

    return compute


@kernel("SparseMatMul")
def sparse_matmul(op: KernelNode) -> Compute:
    """MatMul whose operands may be bfloat16 and are expected to hold many zeros; the result is float32."""
    transpose_a, transpose_b = bool(op.attr("transpose_a")), bool(op.attr("transpose_b"))

    def compute(a: Array, b: Array) -> Array:
        require(a.ndim == 2, f"a is not a matrix: {shape_text(a)}")
        require(b.ndim == 2, f"b is not a matrix: {shape_text(b)}")
        a, b = (a.T if transpose_a else a), (b.T if transpose_b else b)
        require(a.shape[1] == b.shape[0], f"Matrix size incompatible: a: {shape_text(a)}, b: {shape_text(b)}")
        return np.matmul(a.astype(np.float32), b.astype(np.float32))

    return compute


@kernel("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_matmul(op: KernelNode) -> Compute:
    """Products over leading batch axes, which broadcast from V2 on."""
    adjoint_x, adjoint_y = bool(op.attr("adj_x")), bool(op.attr("adj_y"))
    dtype = op.output_types[0].numpy
    broadcasts = op.op != "BatchMatMul"

    def compute(x: Array, y: Array) -> Array:
        require(x.ndim >= 2, f"In[0] ndims must be >= 2: {x.ndim}")
        require(y.ndim >= 2, f"In[1] ndims must be >= 2: {y.ndim}")
        if broadcasts:
            check_broadcast(x[..., 0, 0] if x.size else np.empty(x.shape[:-2]), np.empty(y.shape[:-2]))
        else:
            require(
                x.shape[:-2] == y.shape[:-2],
                f"In[0] and In[1] must have compatible batch dimensions: {shape_text(x)} vs. {shape_text(y)}",
            )
        x = _adjoint(x) if adjoint_x else x
        y = _adjoint(y) if adjoint_y else y
        require(x.shape[-1] == y.shape[-2], f"In[0] mismatch In[1] shape: {x.shape[-1]} vs. {y.shape[-2]}")
        if x.dtype in NARROW_FLOATS or y.dtype in NARROW_FLOATS:
            return np.matmul(x.astype(np.float32), y.astype(np.float32)).astype(dtype)
        if x.dtype != dtype:
            x = x.astype(dtype)
        if y.dtype != dtype:
            y = y.astype(dtype)
        return np.matmul(x, y)

    return compute


def parse_equation(text: str, count: int) -> tuple[list[str], str]:
    left, arrow, right = text.replace(" ", "").partition("->")
    require(arrow == "->", f"Expecting exactly one '->' in einsum equation: {text}")
    terms = left.split(",")
    require(
        len(terms) == count,
        f"Expected 1 or 2 inputs as the equation '{text}' says, but got {count} input(s) for {len(terms)} term(s)",
    )
    return terms, right


@kernel("Einsum")
def einsum(op: KernelNode) -> Compute:
    """Sums of products of one or two operands over labelled axes; an ellipsis stands for axes that broadcast.

    A label may stand twice in an operand (its diagonal) or in the result (a diagonal is made).
    """
    equation = op.text("equation")
    terms, result = parse_equation(equation, len(op.input_types))
    repeated = any(n > 1 for n in Counter(result.replace("...", "")).values())
    distinct = "".join(dict.fromkeys(result.replace("...", "."))).replace(".", "...")
    flat_equation = ",".join(terms) + "->" + (distinct if repeated else result)

    def compute(*operands: Array) -> Array:
        sizes: dict[str, int] = {}
        for term, operand in zip(terms, operands, strict=True):
            check_operand(term, operand, sizes, equation)
        dtype = operands[0].dtype
        value = np.asarray(np.einsum(flat_equation, *map(wide, operands), optimize=len(operands) > 1))
        if repeated:
            value = _spread_diagonal(value, distinct, result)
        return value.astype(dtype, copy=False)

    return compute


def check_operand(term: str, operand: Array, sizes: dict[str, int], equation: str) -> None:
    labels = term.replace("...", ".")
    named = len(labels.replace(".", ""))
    fits = operand.ndim >= named if "." in labels else operand.ndim == named
    require(fits, f"Expected input of rank {named} for the term '{term}' of '{equation}', got {shape_text(operand)}")
    before, _, after = labels.partition(".")
    for label, size in [
        *zip(before, operand.shape, strict=False),
        *zip(after[::-1], operand.shape[::-1], strict=False),
    ]:
        require(
            sizes.setdefault(label, size) == size,
            f"Expected dimension {sizes[label]} for label '{label}' of '{equation}' but got {size}",
        )


def _spread_diagonal(value: Array, distinct: str, result: str) -> Array:
    """From the axes of `distinct` to those of `result`, where repeated labels hold a diagonal."""
    free = value.ndim - len(distinct.replace("...", ""))

    def labels(text: str) -> list[str]:
        expanded = [[f".{i}" for i in range(free)] if c == "." else [c] for c in text.replace("...", ".")]
        return [label for group in expanded for label in group]

    axes, wanted = labels(distinct), labels(result)
    sizes = dict(zip(axes, value.shape, strict=True))
    indices: Array = np.indices  # its overloads confuse the checker
    grids = indices(value.shape, sparse=True)
    out = np.zeros([sizes[label] for label in wanted], value.dtype)
    out[tuple(grids[axes.index(label)] for label in wanted)] = value
    return out
