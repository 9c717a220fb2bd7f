"""Matrix products by cuBLASLt, called through ctypes.

The binding is ctypes because a dozen functions of C are all that is called: nvmath-python has them too, but importing
any of its bindings imports its FFTs, solvers and cuda-core with them. Where the library lies is told by
cuda-pathfinder, which finds NVIDIA's wheels and installations of the toolkit alike.

cuBLASLt's matrices are in Fortran's order. A matrix in C order is its own transpose there, and
(a @ b)^T = b^T @ a^T: so the operands are given the other way round, and nothing is transposed.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from ctypes import byref, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any

from toolkit.kernels.cuda.driver.base import Context, Span, Stream
from toolkit.kernels.cuda.libraries.base import (
    EIGHT_BITS,
    EPILOGUES,
    LibraryError,
    Product,
    check_product,
    is_result,
)
from toolkit.kernels.cuda.libraries.choosing import MOST_WAYS, Choosing, Way, is_repeatable
from toolkit.kernels.cuda.libraries.workspaces import Workspace

#: what NVIDIA recommends for Hopper and later, the most that any algorithm of the heuristics asks for
WORKSPACE = 32 << 20
#: an allocation's alignment; addresses that have less get algorithms that do with less
_ALIGNMENT = 256

# values of cublasLt.h and cublas_api.h
_SUCCESS, _NOT_SUPPORTED = 0, 15
_TYPES = {
    "float32": 0, "float64": 1, "float16": 2, "bfloat16": 14, "complex64": 4, "complex128": 5, EIGHT_BITS: 28,
}  # fmt: skip
_SCALES = {"float64": 1, "complex64": 4, "complex128": 5}  # cudaDataType of alpha and beta; else float32
_COMPUTE_32F, _COMPUTE_64F, _COMPUTE_32F_FAST_TF32 = 68, 70, 77
_TURNS = {"N": 0, "T": 1, "C": 2}
_DESC_TRANSA, _DESC_TRANSB, _DESC_EPILOGUE, _DESC_BIAS_POINTER = 3, 4, 7, 8
_DESC_AUX_POINTER, _DESC_AUX_LD, _DESC_AUX_BATCH_STRIDE, _DESC_BIAS_BATCH_STRIDE = 11, 12, 13, 10
_DESC_A_SCALE, _DESC_B_SCALE, _DESC_BIAS_TYPE = 17, 18, 26
_LAYOUT_BATCH_COUNT, _LAYOUT_BATCH_OFFSET = 5, 6
_PREFERENCE_WORKSPACE, _PREFERENCE_REDUCTIONS, _PREFERENCE_ALIGNMENTS = 1, 3, (5, 6, 7, 8)
#: partial sums are added in the type of the sums, never in the output's: 16-bit results are rounded once
_REDUCTION_COMPUTE_TYPE = 2


class _Algorithm(ctypes.Structure):
    _fields_ = [("data", c_uint64 * 8)]


class _Heuristic(ctypes.Structure):
    _fields_ = [
        ("algorithm", _Algorithm),
        ("workspace", c_size_t),
        ("state", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    ]


#: arguments of cublasLtMatmul
_MATMUL = [
    c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p,
    c_void_p, c_void_p, c_void_p, c_size_t, c_void_p,
]  # fmt: skip


def load() -> ctypes.CDLL:
    """
    Raises:
        ImportError: the library, or cuda-pathfinder, is not there; the text says which.
    """
    from cuda import pathfinder

    try:
        found = pathfinder.load_nvidia_dynamic_lib("cublasLt")
    except (pathfinder.DynamicLibNotFoundError, RuntimeError) as error:
        raise ImportError(f"cuBLASLt is not there: {str(error).splitlines()[0]}") from error
    path = found.abs_path
    if path is None:
        raise ImportError("cuBLASLt is not there")
    library = ctypes.CDLL(path)
    library.cublasLtGetStatusString.restype = ctypes.c_char_p
    library.cublasLtGetVersion.restype = c_size_t
    return library


@dataclass(slots=True)
class _Plan:
    """All that is made once for a configuration.

    Attributes:
        operation: cublasLtMatmulDesc_t.
        layouts: of the operands in cuBLASLt's order, and of the result.
        alpha, beta: in host memory.
        algorithm: a pointer to it, which keeps it.
        workspace: bytes.
        ways: all that the heuristics propose, with their workspaces, until one was chosen by measuring.
        takes_bias, takes_auxiliary: what the epilogue needs.
        takes_factors: the operands have factors.
        bias: the address that the descriptor has.
    """

    operation: Any
    layouts: tuple[Any, Any, Any]
    alpha: Any
    beta: Any
    algorithm: Any
    workspace: int
    takes_bias: bool
    takes_auxiliary: bool
    takes_factors: bool
    ways: list[tuple[Any, int]]
    bias: int = 0


class CublasLt:
    """cuBLASLt in one context.

    Args:
        enter: makes the context the calling thread's.

    Raises:
        ImportError: it is not there.
        LibraryError: it does not start.
    """

    def __init__(self, context: Context, enter: Callable[[], Any]):
        self._library = load()
        self._enter = enter
        self._workspace = Workspace(context, WORKSPACE)
        self._choosing = Choosing(context)
        self._plans: dict[tuple[Product, int], _Plan | None] = {}
        self._lock = threading.Lock()
        enter()
        self._scratch = 0
        handle = c_void_p()
        self._call("cublasLtCreate", byref(handle))
        self._handle = handle.value
        self._matmul = self._library.cublasLtMatmul
        self._matmul.argtypes = _MATMUL

    @property
    def version(self) -> str:
        """ "13.1.0"."""
        number = int(self._library.cublasLtGetVersion())
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"

    def supports(self, product: Product) -> bool:
        with self._lock:
            return self._plan(product, _ALIGNMENT) is not None

    def matmul(
        self,
        product: Product,
        a: Span,
        b: Span,
        out: Span,
        stream: Stream,
        *,
        bias: Span | None = None,
        auxiliary: Span | None = None,
        added: Span | None = None,
        factors: tuple[Span, Span] | None = None,
    ) -> None:
        first, second, result = b.address, a.address, out.address
        before = result if added is None else added.address
        bits = (first | second | result | before) & (_ALIGNMENT - 1)
        with self._lock:
            plan = self._plans.get((product, bits & -bits or _ALIGNMENT)) or self._needed(
                product, bits, bias, auxiliary, factors
            )
            takes = plan.takes_bias, plan.takes_auxiliary, plan.takes_factors
            if (bias is not None, auxiliary is not None, factors is not None) != takes:
                check_product(product, bias, auxiliary, factors)
            self._enter()
            if factors is not None:
                self._set(plan.operation, _DESC_A_SCALE, c_uint64(factors[1].address))
                self._set(plan.operation, _DESC_B_SCALE, c_uint64(factors[0].address))
            if bias is not None and bias.address != plan.bias:
                self._set(plan.operation, _DESC_BIAS_POINTER, c_uint64(bias.address))
                plan.bias = bias.address
            if auxiliary is not None:
                self._set(plan.operation, _DESC_AUX_POINTER, c_uint64(auxiliary.address))
            addresses = first, second, before, result
            if plan.ways:
                before_it = out if added is None and product.beta else added
                again = is_repeatable((out, bias, auxiliary), (a, b, before_it, *(factors or ())))
                self._choose(plan, product, addresses, stream, again=again)
            status = self._put(plan, plan.algorithm, plan.workspace, addresses, stream)
        if status != _SUCCESS:
            self._check("cublasLtMatmul", status, product)

    def _put(
        self, plan: _Plan, algorithm: Any, workspace: int, addresses: tuple[int, int, int, int], stream: Stream
    ) -> int:
        """Put a product into a stream; the library's status."""
        first, second, before, result = addresses
        layouts = plan.layouts
        status: int = self._matmul(
            self._handle, plan.operation, plan.alpha, first, layouts[0], second, layouts[1], plan.beta, before,
            layouts[2], result, layouts[2], algorithm, self._scratch, workspace, stream.handle,
        )  # fmt: skip
        return status

    def _choose(
        self, plan: _Plan, product: Product, addresses: tuple[int, int, int, int], stream: Stream, *, again: bool
    ) -> None:
        """Settle which algorithm is used from now on, unless the call is being recorded.

        Args:
            again: the call may be done again and again.
        """
        if self._choosing.is_over or not again:
            plan.ways = []
        elif not self._choosing.is_recorded(stream):

            def ways() -> Iterator[Way]:
                for algorithm, workspace in plan.ways:

                    def run(into: Stream, algorithm: Any = algorithm, workspace: int = workspace) -> None:
                        status = self._put(plan, algorithm, workspace, addresses, into)
                        self._check("cublasLtMatmul", status, product)

                    yield Way((algorithm, workspace), run)

            found = self._choosing.fastest(ways(), stream)
            plan.ways = []
            if found is not None:
                plan.algorithm, plan.workspace = found

    # -- plans

    def _needed(
        self, product: Product, bits: int, bias: Span | None, auxiliary: Span | None,
        factors: tuple[Span, Span] | None,
    ) -> _Plan:  # fmt: skip
        """The plan for operands at such addresses.

        Raises:
            LibraryError: there is none, or what is given is not what the product needs.
        """
        check_product(product, bias, auxiliary, factors)
        plan = self._plan(product, bits & -bits or _ALIGNMENT)
        if plan is None:
            raise LibraryError(f"cuBLASLt has no algorithm for {product}")
        return plan

    def _plan(self, product: Product, alignment: int) -> _Plan | None:
        """The plan for a configuration, None if the library has no algorithm for it."""
        key = product, alignment
        if key not in self._plans:
            self._enter()
            plan = self._plans[key] = self._make(product, alignment) if _is_known(product) else None
            if plan is not None and (plan.workspace or plan.ways):
                self._scratch = self._workspace.of(WORKSPACE).address
        return self._plans[key]

    def _make(self, product: Product, alignment: int) -> _Plan | None:
        p = product
        operation = self._describe(p)
        a, b, out = p.stored
        layouts = (
            self._layout(p, p.dtype, *b), self._layout(p, p.dtype, *a), self._layout(p, p.result, *out)
        )  # fmt: skip
        preference = c_void_p()
        self._call("cublasLtMatmulPreferenceCreate", byref(preference))
        try:
            self._prefer(preference, _PREFERENCE_WORKSPACE, c_uint64(WORKSPACE))
            self._prefer(preference, _PREFERENCE_REDUCTIONS, c_uint32(_REDUCTION_COMPUTE_TYPE))
            for attribute in _PREFERENCE_ALIGNMENTS:
                self._prefer(preference, attribute, c_uint32(alignment))
            most = 1 if self._choosing.is_over else MOST_WAYS
            found, count = (_Heuristic * most)(), c_int()
            first, second, result = layouts
            status = self._library.cublasLtMatmulAlgoGetHeuristic(
                c_void_p(self._handle),
                operation,
                first,
                second,
                result,
                result,
                preference,
                most,
                byref(found),
                byref(count),
            )
        finally:
            self._library.cublasLtMatmulPreferenceDestroy(preference)
        ways = [(byref(one.algorithm), int(one.workspace)) for one in found[: count.value] if one.state == _SUCCESS]
        if status == _NOT_SUPPORTED or (status == _SUCCESS and not ways):
            return None
        self._check("cublasLtMatmulAlgoGetHeuristic", status, product)
        number = _SCALARS.get(p.dtype, c_float)
        parts = 2 if p.dtype.startswith("complex") else 1  # the imaginary part is 0
        epilogue = EPILOGUES[p.epilogue]
        return _Plan(
            operation, layouts, (number * parts)(p.alpha), (number * parts)(p.beta), *ways[0], bool(epilogue.bias),
            bool(epilogue.auxiliary), p.dtype == EIGHT_BITS, ways if len(ways) > 1 else [],
        )  # fmt: skip

    def _describe(self, p: Product) -> Any:
        compute = _COMPUTE_64F if p.dtype in ("float64", "complex128") else _COMPUTE_32F
        if p.dtype == "float32" and p.tf32:
            compute = _COMPUTE_32F_FAST_TF32
        operation = c_void_p()
        self._call("cublasLtMatmulDescCreate", byref(operation), c_int(compute), c_int(_SCALES.get(p.dtype, 0)))
        self._set(operation, _DESC_TRANSA, c_int32(_TURNS[p.turn_b]))
        self._set(operation, _DESC_TRANSB, c_int32(_TURNS[p.turn_a]))
        epilogue = EPILOGUES[p.epilogue]
        self._set(operation, _DESC_EPILOGUE, c_uint32(epilogue.code))
        if epilogue.bias:
            # what it will be is told before each call; the heuristics ask how it is aligned
            self._set(operation, _DESC_BIAS_POINTER, c_uint64(_ALIGNMENT))
            self._set(operation, _DESC_BIAS_BATCH_STRIDE, c_int64(p.stride_bias))
        if p.dtype == EIGHT_BITS:
            # likewise; the bias of a float32 result is bfloat16
            for attribute in (_DESC_A_SCALE, _DESC_B_SCALE):
                self._set(operation, attribute, c_uint64(_ALIGNMENT))
            if epilogue.bias:
                self._set(operation, _DESC_BIAS_TYPE, c_int32(_TYPES[p.bias]))
        if epilogue.auxiliary:
            lead = -(-p.n // 128) * 128 if "relu" in p.epilogue else p.n
            self._set(operation, _DESC_AUX_POINTER, c_uint64(_ALIGNMENT))
            self._set(operation, _DESC_AUX_LD, c_int64(lead))
            self._set(operation, _DESC_AUX_BATCH_STRIDE, c_int64(lead * p.m))
        return operation

    def _layout(self, p: Product, dtype: str, rows: int, columns: int, lead: int, stride: int) -> Any:
        """Of a matrix in C order: the transpose, whose columns are the rows."""
        layout = c_void_p()
        self._call(
            "cublasLtMatrixLayoutCreate", byref(layout), c_int(_TYPES[dtype]), c_uint64(columns), c_uint64(rows),
            c_int64(lead),
        )  # fmt: skip
        if p.batch > 1:
            for attribute, value in ((_LAYOUT_BATCH_COUNT, c_int32(p.batch)), (_LAYOUT_BATCH_OFFSET, c_int64(stride))):
                self._call(
                    "cublasLtMatrixLayoutSetAttribute", layout, c_int(attribute), byref(value),
                    c_size_t(ctypes.sizeof(value)),
                )  # fmt: skip
        return layout

    # -- calls

    def _set(self, operation: Any, attribute: int, value: Any) -> None:
        self._call(
            "cublasLtMatmulDescSetAttribute", operation, c_int(attribute), byref(value), c_size_t(ctypes.sizeof(value))
        )

    def _prefer(self, preference: Any, attribute: int, value: Any) -> None:
        self._call(
            "cublasLtMatmulPreferenceSetAttribute", preference, c_int(attribute), byref(value),
            c_size_t(ctypes.sizeof(value)),
        )  # fmt: skip

    def _call(self, name: str, *arguments: Any, about: object = "") -> None:
        self._check(name, getattr(self._library, name)(*arguments), about)

    def _check(self, name: str, status: int, about: object) -> None:
        if status != _SUCCESS:
            text = self._library.cublasLtGetStatusString(status)
            words = text.decode() if text else "no text"
            raise LibraryError(f"{name} failed: status {status} ({words}){f', for {about}' if about else ''}")


def _is_known(product: Product) -> bool:
    return product.dtype in _TYPES and is_result(product.dtype, product.made)


#: types of alpha and beta in host memory; else float32
_SCALARS = {"float64": c_double, "complex128": c_double}
