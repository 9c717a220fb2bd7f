"""Fourier transforms on a GPU beside exact ones: lengths of all kinds, axes, halves of spectra, two launches."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.kernels.cuda.assembler import assembled
from tests.kernels.op_suite import Case, run_ours
from toolkit.kernels.cuda.simt import ptx
from toolkit.kernels.gpu.math import fourier, fourier_kernels
from toolkit.kernels.gpu.math.fourier_kernels import TransformForm

_RNG = np.random.default_rng(23)


def _bound(x: np.ndarray, n: int, *, is_chirp: bool = False) -> float:
    """How far results of a transform of n numbers may be off.

    Each of log2 n stages rounds a few times, relative to the root of the sum of squares (N. J. Higham, "Accuracy and
    Stability of Numerical Algorithms", 2002, theorem 24.2: eta = mu + gamma_4 (sqrt 2 + mu), about 7 units a stage of
    radix 2; one of radix r adds r numbers, r <= 13). A convolution with a chirp is three transforms of up to 4 n.
    """
    unit = float(np.finfo(x.real.dtype).eps) / 2
    stages = max(1.0, math.log2(n)) if not is_chirp else 3 * math.log2(4 * n) + 3
    return 13 * unit * stages * float(np.sqrt((np.abs(x.astype(complex)) ** 2).sum(axis=-1).max()))


def _complex(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return (_RNG.normal(size=shape) + 1j * _RNG.normal(size=shape)).astype(dtype)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 12, 17, 64, 143, 210, 1000])
def test_lengths(n: int, dtype: str) -> None:
    x = _complex((3, n), dtype)
    is_chirp = fourier_kernels.radices(n) is None
    for op, exact in (("FFT", np.fft.fft), ("IFFT", np.fft.ifft)):
        (y,) = run_ours(Case(op, [x]), "GPU")
        scale = n if op == "IFFT" else 1
        wanted = exact(x.astype(complex)) * scale
        np.testing.assert_allclose(y.astype(complex) * scale, wanted, rtol=0, atol=_bound(x, n, is_chirp=is_chirp))


@pytest.mark.parametrize("n", [4, 5, 17, 30])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_real_ones_there_and_back(n: int, rank: int) -> None:
    """An axis in the middle is transformed where it lies; odd lengths have no frequency of their own at the end."""
    shape = (2, 3, 6, 5)[: 4 - rank] + (6, 3, n)[3 - rank :]
    lengths = np.int32(shape[-rank:])
    x = _RNG.normal(size=shape)
    name = {1: "", 2: "2D", 3: "3D"}[rank]
    axes = tuple(range(-rank, 0))
    bound = _bound(x.reshape(*shape[:-rank], -1), int(lengths.prod()), is_chirp=True)
    (y,) = run_ours(Case("RFFT" + name, [x, lengths], {"Tcomplex": "complex128"}), "GPU")
    np.testing.assert_allclose(y, np.fft.rfftn(x, axes=axes), rtol=0, atol=bound)
    (back,) = run_ours(Case("IRFFT" + name, [y, lengths], {"Treal": "float64"}), "GPU")
    np.testing.assert_allclose(back, x, rtol=0, atol=bound)


@pytest.mark.parametrize("seed", range(6))
def test_axes_cut_and_filled_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(size) for size in rng.integers(1, 7, 3))
    axes = [int(each) for each in rng.permutation(3)[: rng.integers(1, 4)]]
    lengths = [int(each) for each in rng.integers(1, 9, len(axes))]
    x = _complex(shape, "complex128")
    given = [np.int32(lengths), np.int32(axes)]
    bound = _bound(x.reshape(1, -1), 8**3, is_chirp=True)
    for op, exact in (("FFTND", np.fft.fftn), ("IFFTND", np.fft.ifftn)):
        (y,) = run_ours(Case(op, [x, *given]), "GPU")
        np.testing.assert_allclose(y, exact(x, s=lengths, axes=axes), rtol=0, atol=bound)
    (y,) = run_ours(Case("RFFTND", [x.real.copy(), *given], {"Tcomplex": "complex128"}), "GPU")
    np.testing.assert_allclose(y, run_ours(Case("RFFTND", [x.real.copy(), *given], {"Tcomplex": "complex128"}))[0],
                               rtol=0, atol=bound)  # fmt: skip
    (y,) = run_ours(Case("IRFFTND", [x, *given], {"Treal": "float64"}), "GPU")
    np.testing.assert_allclose(y, run_ours(Case("IRFFTND", [x, *given], {"Treal": "float64"}))[0], rtol=0, atol=bound)


@pytest.mark.parametrize(("op", "shape", "given", "attrs"), [
    ("FFT", (0, 4), [], {}),
    ("FFT2D", (2, 0, 4), [], {}),
    ("RFFT", (0, 4), [np.int32([4])], {"Tcomplex": "complex128"}),
    ("IRFFT", (0, 3), [np.int32([4])], {"Treal": "float64"}),
    ("RFFT", (2, 4), [np.int32([0])], {"Tcomplex": "complex128"}),
])  # fmt: skip
def test_of_nothing(op: str, shape: tuple[int, ...], given: list[np.ndarray], attrs: dict[str, str]) -> None:
    case = Case(op, [np.zeros(shape, "float64" if op == "RFFT" else "complex128"), *given], attrs)
    for ours, wanted in zip(run_ours(case, "GPU"), run_ours(case), strict=True):
        np.testing.assert_array_equal(ours, wanted, strict=True)


@pytest.mark.parametrize("inner", [(), (3,)])
@pytest.mark.parametrize("n", [96, 97])
def test_two_launches(n: int, inner: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that do not fit into shared memory, next to each other and not."""
    monkeypatch.setattr(fourier_kernels, "most", lambda _: 16)
    fourier._split.cache_clear()
    x = _complex((2, n, *inner), "complex128")
    given = [np.int32([n]), np.int32([1])]
    bound = _bound(np.moveaxis(x, 1, -1), n, is_chirp=True)
    try:
        (y,) = run_ours(Case("FFTND", [x, *given]), "GPU")
        np.testing.assert_allclose(y, np.fft.fft(x, axis=1), rtol=0, atol=bound)
        (y,) = run_ours(Case("RFFTND", [x.real.copy(), *given], {"Tcomplex": "complex128"}), "GPU")
        np.testing.assert_allclose(y, np.fft.rfft(x.real, axis=1), rtol=0, atol=bound)
        (y,) = run_ours(Case("IRFFTND", [y, *given], {"Treal": "float64"}), "GPU")
        np.testing.assert_allclose(y, x.real, rtol=0, atol=bound)
    finally:
        fourier._split.cache_clear()


def test_what_is_too_long_is_the_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fourier, "is_long", lambda n, dtype: n > 4)
    x = _complex((2, 5), "complex64")
    np.testing.assert_array_equal(*(run_ours(Case("FFT", [x]), device)[0] for device in ("GPU", "CPU")))


def test_which_lengths_are_too_long() -> None:
    """Twice a square of what fits is not: 2048 numbers of complex64, 1024 of complex128."""
    assert [fourier.is_long(n, np.complex64) for n in (2048, 2048**2, 2048**2 + 1, 2**21 - 9)] == [0, 0, 1, 0]
    assert [fourier.is_long(n, np.complex128) for n in (1024**2, 1024**2 + 4)] == [False, True]


@pytest.mark.parametrize("capability", [(8, 0), (9, 0), (10, 0)], ids=str)
@pytest.mark.parametrize("type", ["float", "double"])
def test_kernels_are_assembled(type: str, capability: tuple[int, int]) -> None:
    most = fourier_kernels.most(type)
    kernels = [
        fourier_kernels.transform(type, TransformForm(most, 1, inverse=False)),
        fourier_kernels.transform(type, TransformForm(360, 2, inverse=True, source="half", is_real=True, near=False)),
        fourier_kernels.transform(type, TransformForm(693, 1, inverse=False, source="real")),
        fourier_kernels.transform(type, TransformForm(64, 8, inverse=True, twisted=True)),
        fourier_kernels.chirp_filter(type, inverse=True),
        fourier_kernels.filtered(type),
        fourier_kernels.chirped(type, inverse=False, source="half", is_real=True, multiplied=True),
    ]
    for kernel in kernels:
        found = assembled(ptx.write(kernel, capability), capability)
        assert found.spills == 0, kernel.name
        assert found.shared <= 48 << 10, kernel.name
