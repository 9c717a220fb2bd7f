"""The libraries: what is asked of the real ones, told by stand-ins that write it down, and what the fake ones give."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests import tolerance
from tests.kernels.cuda.frontend import Frontend
from toolkit.kernels.cuda.driver.base import Context, GpuSpan
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.kernels.cuda.libraries import base, cublaslt, cudnn_graphs, reference
from toolkit.kernels.cuda.libraries.base import EPILOGUES, Convolution, LibraryError, Product
from toolkit.kernels.cuda.libraries.workspaces import Workspace

CONVOLUTION = Convolution(
    "forward", "float32", 2, 6, 8, 2, (7, 5), (3, 2), (4, 4), (2, 1), (1, 2), ((1, 1), (0, 1)),
)  # fmt: skip


class _Memory:
    """Arrays in the memory of a fake GPU."""

    def __init__(self) -> None:
        self.context: Any = FakeDriver(1).open(0)
        self.stream = self.context.stream()
        self._hosts: list[Any] = []

    def put(self, array: Any) -> GpuSpan:
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        address = self.context.allocate(max(raw.size, 1))
        self.context.copy_in(address, raw, self.stream)
        self._hosts.append(raw)
        return GpuSpan(address, raw.size)

    def get(self, span: GpuSpan, dtype: Any, shape: tuple[int, ...]) -> Any:
        raw = np.empty(span.nbytes, np.uint8)
        self.context.copy_out(raw, span.address, self.stream)
        self.context.synchronize(self.stream)
        return raw.view(dtype).reshape(shape)


def _numbers(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(dtype)


# -- products ----------------------------------------------------------------------------------------------------


def test_products_of_a_batch_with_an_epilogue() -> None:
    memory = _Memory()
    a, b, bias = _numbers(3, 5, 4), _numbers(4, 6), _numbers(6)
    out = memory.put(np.zeros((3, 5, 6), np.float32))
    p = Product(5, 6, 4, "float32", batch=3, stride_a=20, stride_out=30, epilogue="relu bias")
    memory.context.blas.matmul(p, memory.put(a), memory.put(b), out, memory.stream, bias=memory.put(bias))
    found = memory.get(out, np.float32, (3, 5, 6))
    near = tolerance.of_product(a, b) + tolerance.unit() * np.abs(bias)
    assert np.all(np.abs(found - np.maximum(a @ b + bias, 0)) <= near)


def test_products_of_columns_each_with_its_part_of_the_bias() -> None:
    """As the heads of attention are: columns of one matrix as a batch, and results whose rows lie apart."""
    memory = _Memory()
    a, b, bias = _numbers(5, 4), _numbers(4, 6), _numbers(6)
    out = memory.put(np.zeros((5, 6), np.float32))
    p = Product(
        5, 2, 4, "float32", batch=3, stride_b=2, stride_out=2, lead_b=6, lead_out=6, stride_bias=2, epilogue="bias"
    )
    assert p.extents == (20, 24, 30)
    memory.context.blas.matmul(p, memory.put(a), memory.put(b), out, memory.stream, bias=memory.put(bias))
    near = tolerance.of_product(a, b) + tolerance.unit() * np.abs(bias)
    assert np.all(np.abs(memory.get(out, np.float32, (5, 6)) - (a @ b + bias)) <= near)


@pytest.mark.parametrize("name", ["gelu keep bias", "relu keep bias"])
def test_what_an_epilogue_keeps_is_what_its_gradient_takes(name: str) -> None:
    """d(act(x w + bias)) is dy times the slope, which the kept numbers tell."""
    memory = _Memory()
    x, w, bias, dy, second = _numbers(5, 4), _numbers(4, 6), _numbers(6), _numbers(5, 3), _numbers(3, 6)
    forward = Product(5, 6, 4, "float32", epilogue=name)
    shape, dtype = reference.auxiliary_shape(forward)
    kept, y = memory.put(np.zeros(shape, dtype)), memory.put(np.zeros((5, 6), np.float32))
    blas, stream = memory.context.blas, memory.stream
    blas.matmul(forward, memory.put(x), memory.put(w), y, stream, bias=memory.put(bias), auxiliary=kept)
    backward = Product(5, 6, 3, "float32", epilogue=name.replace("keep bias", "gradient bias"))
    dx, sums = memory.put(np.zeros((5, 6), np.float32)), memory.put(np.zeros(6, np.float32))
    blas.matmul(backward, memory.put(dy), memory.put(second), dx, stream, bias=sums, auxiliary=kept)
    found = memory.get(dx, np.float32, (5, 6))

    inner = x.astype(np.float64) @ w + bias
    step = 1e-4  # of the difference quotient in float64
    write = reference.gelu if "gelu" in name else lambda v: np.maximum(v, 0)
    slope = (write(inner + step) - write(inner - step)) / (2 * step)
    wanted = (dy.astype(np.float64) @ second) * slope
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)  # the quotient's error is of the step's square
    np.testing.assert_array_equal(memory.get(sums, np.float32, (6,)), found.sum(0, dtype=np.float32))


def test_a_product_is_refused_whose_operands_do_not_fit() -> None:
    memory = _Memory()
    blas, span = memory.context.blas, memory.put(np.zeros(6, np.float32))
    with pytest.raises(LibraryError, match="needs bias"):
        blas.matmul(Product(2, 3, 1, "float32", epilogue="bias"), span, span, span, memory.stream)
    with pytest.raises(LibraryError, match="24 bytes"):
        blas.matmul(Product(4, 4, 1, "float32"), span, span, span, memory.stream)
    with pytest.raises(LibraryError, match="is no epilogue"):
        blas.matmul(Product(2, 3, 1, "float32", epilogue="rely"), span, span, span, memory.stream)
    with pytest.raises(LibraryError, match="a batch of 2"):
        base.check_product(Product(2, 3, 1, "float32", batch=2, epilogue="sums of b"), span, None)


class LibraryStandIn:
    """cuBLASLt's functions: each call is written down, and succeeds."""

    def __init__(self, algorithms: int = 1) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self._algorithms = algorithms
        self.status = 0

    def cublasLtGetStatusString(self, status: int) -> bytes:  # noqa: N802
        return b"the words of the library"

    def cublasLtGetVersion(self) -> int:  # noqa: N802
        return 130102

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            self.calls.append((name, arguments))
            if name == "cublasLtMatmulAlgoGetHeuristic":
                arguments[-1]._obj.value = self._algorithms
                for number, each in enumerate(arguments[-2]._obj[: self._algorithms]):
                    each.workspace = 4096 << number
            return self.status if name == "cublasLtMatmul" else 0

        return call

    def named(self, name: str) -> list[tuple[Any, ...]]:
        return [arguments for called, arguments in self.calls if called == name]


@pytest.fixture
def lt(monkeypatch: pytest.MonkeyPatch) -> tuple[LibraryStandIn, cublaslt.CublasLt, Any]:
    library = LibraryStandIn()
    monkeypatch.setattr(cublaslt, "load", lambda: library)
    context: Context = FakeDriver(1).open(0)
    return library, cublaslt.CublasLt(context, lambda: None), context


def test_a_plan_is_made_once(lt: tuple[LibraryStandIn, cublaslt.CublasLt, Any]) -> None:
    library, blas, context = lt
    stream = context.stream()
    p = Product(5, 6, 4, "float32", "T", "N", batch=3, stride_a=20, stride_out=30, epilogue="bias")
    for address in (4096, 8192):
        a, b, out = GpuSpan(address, 240), GpuSpan(address + 256, 96), GpuSpan(address + 512, 360)
        blas.matmul(p, a, b, out, stream, bias=GpuSpan(address + 1024, 24))
    assert len(library.named("cublasLtMatmulAlgoGetHeuristic")) == 1
    runs = library.named("cublasLtMatmul")
    # b comes first, for the library's matrices are in Fortran's order
    assert [(run[3], run[5], run[10]) for run in runs] == [
        (address + 256, address, address + 512) for address in (4096, 8192)
    ]
    layouts = library.named("cublasLtMatrixLayoutCreate")
    assert [tuple(each.value for each in layout[2:]) for layout in layouts] == [(6, 4, 6), (5, 4, 5), (6, 5, 6)]
    assert [each[2]._obj.value for each in library.named("cublasLtMatrixLayoutSetAttribute")] == [3, 0, 3, 20, 3, 30]
    assert blas.version == "13.1.2"


def test_a_plan_says_where_rows_lie(lt: tuple[LibraryStandIn, cublaslt.CublasLt, Any]) -> None:
    library, blas, _ = lt
    p = Product(
        5, 2, 4, "float32", "N", "T", 3, 8, 2, 2, lead_a=24, lead_b=9, lead_out=6, stride_bias=2, epilogue="bias"
    )
    assert blas.supports(p)
    layouts = library.named("cublasLtMatrixLayoutCreate")
    assert [tuple(each.value for each in layout[2:]) for layout in layouts] == [(4, 2, 9), (4, 5, 24), (2, 5, 6)]
    assert [each[2]._obj.value for each in library.named("cublasLtMatrixLayoutSetAttribute")] == [3, 2, 3, 8, 3, 2]
    told = {each[1].value: each[2]._obj.value for each in library.named("cublasLtMatmulDescSetAttribute")}
    assert told[10] == 2  # CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE


def test_the_heuristics_know_how_operands_are_aligned(lt: tuple[LibraryStandIn, cublaslt.CublasLt, Any]) -> None:
    library, blas, context = lt
    stream = context.stream()
    for start in (4096, 4096 + 16, 4096 + 4):
        span = GpuSpan(start, 400)
        blas.matmul(Product(5, 6, 4, "float32"), span, span, span, stream)
    preferences = library.named("cublasLtMatmulPreferenceSetAttribute")
    alignments = [each[2]._obj.value for each in preferences if each[1].value == 5]
    assert alignments == [256, 16, 4]


def test_without_an_algorithm_there_is_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cublaslt, "load", lambda: LibraryStandIn(algorithms=0))
    context = FakeDriver(1).open(0)
    blas = cublaslt.CublasLt(context, lambda: None)
    p, span = Product(5, 6, 4, "float32"), GpuSpan(4096, 400)
    assert not blas.supports(p) and not blas.supports(Product(5, 6, 4, "int32"))
    with pytest.raises(LibraryError, match="no algorithm for Product"):
        blas.matmul(p, span, span, span, context.stream())


def test_what_the_library_refuses_is_told(lt: tuple[LibraryStandIn, cublaslt.CublasLt, Any]) -> None:
    library, blas, context = lt
    library.status = 13
    span = GpuSpan(4096, 400)
    with pytest.raises(LibraryError, match=r"cublasLtMatmul failed: status 13 \(the words of the library\), for Prod"):
        blas.matmul(Product(5, 6, 4, "float64"), span, span, span, context.stream())


def test_tf32_is_asked_for_of_float32_only(lt: tuple[LibraryStandIn, cublaslt.CublasLt, Any]) -> None:
    library, blas, _ = lt
    for dtype, tf32 in (
        ("float32", False),
        ("float32", True),
        ("float16", True),
        ("float64", True),
        ("complex64", True),
    ):
        assert blas.supports(Product(5, 6, 4, dtype, tf32=tf32))
    kinds = [(each[1].value, each[2].value) for each in library.named("cublasLtMatmulDescCreate")]
    assert kinds == [(68, 0), (77, 0), (68, 0), (70, 1), (68, 4)]  # CUBLAS_COMPUTE_*, the type of alpha


def test_factors_of_16_bits_give_float32(lt: tuple[LibraryStandIn, cublaslt.CublasLt, Any]) -> None:
    """The result's layout alone has the other type, which the bias then has too; no other pair is asked for."""
    library, blas, _ = lt
    assert blas.supports(Product(5, 6, 4, "bfloat16", made="float32", epilogue="bias"))
    assert blas.supports(Product(5, 6, 4, "float16", made="float32"))
    types = [each[1].value for each in library.named("cublasLtMatrixLayoutCreate")]
    assert types == [14, 14, 0, 2, 2, 0]  # CUDA_R_16BF, CUDA_R_16F, CUDA_R_32F
    assert [each[1].value for each in library.named("cublasLtMatmulDescCreate")] == [68, 68]
    assert not blas.supports(Product(5, 6, 4, "float32", made="bfloat16"))


def test_factors_of_8_bits(lt: tuple[LibraryStandIn, cublaslt.CublasLt, Any]) -> None:
    """The factors' addresses, the other way round as the operands are; the bias of a float32 result is bfloat16."""
    library, blas, context = lt
    p = Product(16, 48, 32, base.EIGHT_BITS, "N", "T", made="float32", epilogue="bias")
    a, b, out, bias = (GpuSpan(4096 * at, 4096) for at in (1, 2, 3, 4))
    factors = GpuSpan(64, 4), GpuSpan(128, 4)
    for _ in range(2):
        blas.matmul(p, a, b, out, context.stream(), bias=bias, factors=factors)
    assert [each[1].value for each in library.named("cublasLtMatrixLayoutCreate")] == [28, 28, 0]  # CUDA_R_8F_E4M3
    assert [(each[1].value, each[2].value) for each in library.named("cublasLtMatmulDescCreate")] == [(68, 0)]
    told = {each[1].value: each[2]._obj.value for each in library.named("cublasLtMatmulDescSetAttribute")}
    # CUBLASLT_MATMUL_DESC_TRANSA, _TRANSB, _A_SCALE_POINTER, _B_SCALE_POINTER, _BIAS_DATA_TYPE (CUDA_R_16BF)
    assert (told[3], told[4], told[17], told[18], told[26]) == (1, 0, 128, 64, 14)
    (first, second) = library.named("cublasLtMatmul")
    assert (first[3], first[5], first[10]) == (second[3], second[5], second[10]) == (8192, 4096, 12288)
    with pytest.raises(LibraryError, match="was given no factors"):
        blas.matmul(p, a, b, out, context.stream(), bias=bias)
    assert not blas.supports(Product(16, 48, 32, base.EIGHT_BITS, "N", "T"))  # no result of 8 bits is asked for


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("made", ["", "float32"])
def test_fake_products_of_16_bits_are_rounded_once(dtype: str, made: str) -> None:
    memory, narrow = _Memory(), reference.dtype_of(dtype)
    a, b, bias = _numbers(5, 64, dtype=narrow), _numbers(64, 6, dtype=narrow), _numbers(6)
    p = Product(5, 6, 64, dtype, epilogue="bias", made=made)
    result = reference.dtype_of(p.result)
    bias = bias.astype(result)
    out = memory.put(np.zeros((5, 6), result))
    memory.context.blas.matmul(p, memory.put(a), memory.put(b), out, memory.stream, bias=memory.put(bias))
    found = memory.get(out, result, (5, 6)).astype(np.float64)
    wide = [each.astype(np.float64) for each in (a, b, bias)]
    wanted = wide[0] @ wide[1] + wide[2]
    # 64 exact products and the bias are added in float32, then rounded to what the result is kept in
    near = 65 * tolerance.unit() * (np.abs(wide[0]) @ np.abs(wide[1]) + np.abs(wide[2]))
    if not made:
        near = near + float(ml_dtypes.finfo(narrow).eps) / 2 * (np.abs(wanted) + near)
    assert np.all(np.abs(found - wanted) <= near)


def test_the_result_of_the_heuristics_has_the_size_of_the_header() -> None:
    """cublasLtMatmulHeuristicResult_t of cublasLt.h: 64 + 8 + 4 + 4 + 16 bytes."""
    assert ctypes.sizeof(cublaslt._Heuristic) == 96


def test_epilogues_have_the_numbers_of_the_header() -> None:
    """cublasLtEpilogue_t is made of bits: relu 2, bias 4, its gradient 8, gelu 32, its gradient 64, kept 128."""
    for name, epilogue in EPILOGUES.items():
        words, code = name.split(), epilogue.code
        if "of" in words or not words:
            continue
        assert bool(code & 128) == bool(epilogue.auxiliary)
        assert bool(code & 4) == (epilogue.bias == "read")
        assert bool(code & 16) == (epilogue.bias == "written")
        assert bool(code & (2 | 8)) == ("relu" in words) and bool(code & (32 | 64)) == ("gelu" in words)


# -- convolutions ------------------------------------------------------------------------------------------------


class GraphStandIn:
    """A graph of cuDNN's frontend: what is called is written down."""

    def __init__(self, known: CudnnStandIn, **how: Any) -> None:
        self.how = how
        self.known = known

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            self.known.calls.append((name, arguments, named))
            if name == "get_workspace_size":
                return 4096
            if name == "build_plans" and self.known.refuses:
                raise self.known.cudnnGraphNotSupportedError("no engine")
            return self  # of a tensor, too

        return call


class CudnnStandIn(Frontend):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def pygraph(self, **how: Any) -> GraphStandIn:
        return GraphStandIn(self, **how)

    def create_handle(self) -> str:
        return "handle"

    def backend_version(self) -> int:
        return 92801

    def set_stream(self, *, handle: Any, stream: int) -> None:
        self.calls.append(("set_stream", (), {"stream": stream}))

    def named(self, name: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        return [(arguments, named) for called, arguments, named in self.calls if called == name]


@pytest.fixture
def cudnn(monkeypatch: pytest.MonkeyPatch) -> tuple[CudnnStandIn, cudnn_graphs.Cudnn, Any]:
    library = CudnnStandIn()
    monkeypatch.setattr(cudnn_graphs, "load", lambda: library)
    context: Context = FakeDriver(1).open(0)
    return library, cudnn_graphs.Cudnn(context, lambda: None), context


def test_a_graph_is_built_once_and_given_addresses(cudnn: tuple[CudnnStandIn, cudnn_graphs.Cudnn, Any]) -> None:
    library, dnn, context = cudnn
    stream = context.stream()
    for start in (4096, 1 << 20):
        x, w, y, bias = (GpuSpan(start + (n << 12), 4096) for n in range(4))
        of = Convolution(**{**_fields(CONVOLUTION), "epilogue": ("bias", "relu6")})
        dnn.convolve(of, x, w, y, stream, bias=bias)
    assert len(library.named("build_plans")) == 1
    (how,) = (named for _, named in library.named("conv_fprop"))
    assert how["pre_padding"] == [1, 0] and how["post_padding"] == [1, 1]
    assert how["stride"] == [2, 1] and how["dilation"] == [1, 2]
    runs = [arguments[0] for arguments, _ in library.named("execute")]
    assert runs == [{1: s, 2: s + 4096, 3: s + 8192, 4: s + 12288} for s in (4096, 1 << 20)]
    assert library.named("relu")[0][1] == {"lower_clip": 0.0, "upper_clip": 6.0}
    assert dnn.version == "9.28.1"


def test_a_convolution_of_16_bits_gives_float32(cudnn: tuple[CudnnStandIn, cudnn_graphs.Cudnn, Any]) -> None:
    library, dnn, _ = cudnn
    changes = {"dtype": "bfloat16", "made": "float32", "epilogue": ("bias",)}
    assert dnn.supports(Convolution(**{**_fields(CONVOLUTION), **changes}))
    types = {named["uid"]: named["data_type"] for _, named in library.named("tensor")}
    assert types == {1: "BFLOAT16", 2: "BFLOAT16", 4: "FLOAT"}
    assert [arguments for arguments, _ in library.named("set_data_type")] == [("FLOAT",)]
    assert not dnn.supports(Convolution(**{**_fields(CONVOLUTION), "made": "float16"}))


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({}, {"REDUCED_PRECISION_REDUCTION", "TENSOR_CORE", "DOWN_CONVERT_INPUTS", "FFT", "WINOGRAD"}),
        ({"tf32": True}, {"REDUCED_PRECISION_REDUCTION"}),
        ({"dtype": "float16", "deterministic": True}, {"REDUCED_PRECISION_REDUCTION", "NONDETERMINISTIC"}),
    ],
    ids=["float32", "tf32", "deterministic"],
)
def test_engines_that_round_too_much_are_refused(
    cudnn: tuple[CudnnStandIn, cudnn_graphs.Cudnn, Any], changes: dict[str, Any], refused: set[str]
) -> None:
    library, dnn, _ = cudnn
    assert dnn.supports(Convolution(**{**_fields(CONVOLUTION), **changes}))
    ((notes,), _), *_ = library.named("deselect_numeric_notes")
    assert set(notes) == refused


def test_without_an_engine_there_is_no_plan_for_a_convolution(
    cudnn: tuple[CudnnStandIn, cudnn_graphs.Cudnn, Any],
) -> None:
    library, dnn, context = cudnn
    library.refuses = True
    span = GpuSpan(4096, 4096)
    assert not dnn.supports(CONVOLUTION)
    with pytest.raises(LibraryError, match="no engine for Convolution"):
        dnn.convolve(CONVOLUTION, span, span, span, context.stream())
    assert len(library.named("build_plans")) == 1  # that there is none is known, too


def _fields(convolution: Convolution) -> dict[str, Any]:
    return {name: getattr(convolution, name) for name in Convolution.__dataclass_fields__}


@pytest.mark.parametrize(
    ("channels_first", "wanted"), [(False, [210, 1, 30, 6]), (True, [210, 35, 5, 1])], ids=["last", "first"]
)
def test_strides_of_both_layouts(channels_first: bool, wanted: list[int]) -> None:
    """Of (2, 6, 7, 5) as batch, channels, rows, columns."""
    assert cudnn_graphs.strides((2, 6, 7, 5), channels_first) == wanted


# -- memory ------------------------------------------------------------------------------------------------------


def test_a_workspace_stays_where_a_graph_may_know_it() -> None:
    context = FakeDriver(1).open(0)
    workspace = Workspace(context, 1000)
    first = workspace.of(10)
    assert first.nbytes == 1000 and workspace.of(900) == first
    second = workspace.of(1500)
    assert second.nbytes == 2000 and second.address != first.address
    assert workspace.of(10) == second and workspace.nbytes == 3000
