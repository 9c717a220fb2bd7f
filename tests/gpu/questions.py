"""What no documentation says and only a GPU can answer, one line each: `python -m tests.gpu.questions [NAME...]`.

The first thing to run behind the smoke test: each question takes a moment, and what was assumed stands beside what was
found. Nothing is judged here; tests are. An error that loses the context is answered in a process of its own, so that
the others are asked nevertheless. With `GRAPHMILL_CUDA=fake` the fake driver answers, whose times say nothing.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from tests.gpu import speed_questions
from tests.gpu.answers import Question, in_a_line, is_fake, numbers
from tests.kernels.cuda import test_matrix as matrices
from toolkit.kernels.cuda.device import CudaDevice, device
from toolkit.kernels.cuda.libraries import reference, reference_attention
from toolkit.kernels.cuda.libraries.attention import Attention, AttentionSizes, packed_strides
from toolkit.kernels.cuda.libraries.base import EIGHT_BITS, Convolution, Product
from toolkit.kernels.cuda.simt import matrix

BFLOAT16: Any = np.dtype(ml_dtypes.bfloat16)


def _attention(gpu: CudaDevice, mask: Any, dtype: str = "bfloat16") -> tuple[Any, Any]:
    """cuDNN's attention of 2 heads of 64 with a mask [1, 1, 64, 64], and the definition's, in float64."""
    sizes, kind = AttentionSizes(1, 2, 64, 64, 64, 64), reference.dtype_of(dtype)
    places: dict[str, Any] = {part: packed_strides(sizes.shape(part)) for part in ("q", "k", "v", "out")}
    a = Attention(sizes, dtype, 0.125, **places, mask=(4096, 0, 64, 1), statistics=True)
    host = [numbers(*sizes.shape(part), dtype=kind) for part in ("q", "k", "v")]
    there = [gpu.to_device(each) for each in (*host, mask)]
    out, statistics = gpu.empty(sizes.shape("out"), kind), gpu.empty(sizes[:3], np.dtype(np.float32))
    gpu.context.dnn.attend(a, *there[:3], out, gpu.compute, mask=there[3], statistics=statistics)
    wanted, kept = np.empty(sizes.shape("out"), kind), np.empty((1, 2, 64, 1), np.float32)
    with np.errstate(invalid="ignore", divide="ignore"):
        reference_attention.attention(a, *host, wanted, mask, kept)
    return gpu.to_host(out).astype(np.float64), wanted.astype(np.float64)


def _float32_mask(gpu: CudaDevice) -> str:
    found, wanted = _attention(gpu, numbers(1, 1, 64, 64))
    return f"taken; {np.abs(found - wanted).max():.1e} apart of {np.abs(wanted).max():.1f}"


def _hidden_rows(gpu: CudaDevice) -> str:
    mask = np.zeros((1, 1, 64, 64), np.float32)
    mask[..., 3, :] = -np.inf
    mask[..., 5, 1:] = -np.inf
    found, _ = _attention(gpu, mask)
    rows = {"all hidden": found[0, :, 3], "one seen": found[0, :, 5], "others": found[0, :, 8:]}
    return ", ".join(f"{name}: {_kind(row)}" for name, row in rows.items()) + " (ours: NaN for rows that see nothing)"


def _kind(row: Any) -> str:
    if np.isnan(row).any():
        return "NaN" if np.isnan(row).all() else "some NaN"
    return "numbers" if row.any() else "zeros"


def _rounding(gpu: CudaDevice) -> str:
    """1 + n addends below its last place, and an addend that is half of it and a bit."""
    said: list[str] = []
    for name, kind in matrix.MATRIX_KINDS.items():
        dtype = reference.dtype_of({"tf32": "float32", "bfloat": "bfloat16"}.get(name, "float16"))
        left, right = np.zeros((16, kind.depth), np.float32), np.zeros((kind.depth, 8), np.float32)
        right[:, 0], sums = 2.0**-12, np.zeros((16, 8), np.float32)
        sums[:, 0] = 1.0
        left[0], left[1, 0], left[2, 0], left[3, :2] = 2.0**-14, 2.0**-12 * 1.5, -(2.0**-14), 2.0**-13
        registers = matrices._registers(name, left.astype(dtype), right.astype(dtype), sums)
        given = [gpu.to_device(np.concatenate([each] * matrices._WARPS)) for each in registers]
        out = gpu.empty((matrices._WARPS * 32 * 4,), np.float32)
        gpu.launch(matrices._product(name), 1, *given, out)
        made = gpu.to_host(out)[:128].reshape(32, 4)
        first = [(float(made[4 * row, 0]) - 1.0) * 2.0**23 for row in range(4)]
        said.append(f"{name} {first[0]:g} {first[1]:g} {first[2]:g} {first[3]:g}")
    exact = "exactly 2^-3 x depth, 0.75, -0.125, 0.5; cut off towards zero: 1 (2 of depth 16), 0, -0.5, 0"
    return f"{'; '.join(said)} (last places of 1; {exact})"


def _factors(gpu: CudaDevice) -> str:
    """Whether a replay reads the factors of 8-bit operands anew."""
    p = Product(32, 48, 64, EIGHT_BITS, "N", "T", made="float32")
    blas = gpu.context.blas
    if not blas.supports(p):
        return "no plan"
    host = [numbers(rows, 64).astype(ml_dtypes.float8_e4m3fn) for rows in (32, 48)]
    a, b = (gpu.to_device(each.view(np.uint8)) for each in host)
    factors = [gpu.to_device(np.array([value], np.float32)) for value in (0.5, 2.0)]
    exact = host[0].astype(np.float64) @ host[1].astype(np.float64).T
    blas.matmul(p, a, b, gpu.empty((32, 48), np.float32), gpu.compute, factors=(factors[0], factors[1]))
    with gpu.recording() as recording:
        out = gpu.empty((32, 48), np.float32)
        blas.matmul(p, a, b, out, gpu.compute, factors=(factors[0], factors[1]))
    apart: list[float] = []
    for value in (1.0, 3.0):
        gpu.refill(factors[1], np.array([value], np.float32))
        recording.replay()
        apart.append(float(np.abs(gpu.to_host(out) - 0.5 * value * exact).max()))
    size = float(np.abs(exact).max())
    del out
    recording.close()
    return f"{apart[0]:.1e} and {apart[1]:.1e} apart of {size:.0f} after two changes"


def _bias_stride(gpu: CudaDevice) -> str:
    said: list[str] = []
    for dtype in ("float32", "bfloat16"):
        p = Product(
            48, 64, 40, dtype, batch=3, stride_b=64, stride_out=3072, lead_b=192, stride_bias=64, epilogue="bias"
        )
        if not gpu.context.blas.supports(p):
            said.append(f"{dtype}: no plan")
            continue
        kind = reference.dtype_of(dtype)
        a, b, bias = (numbers(*shape, dtype=kind) for shape in ((48, 40), (40, 192), (192,)))
        out = gpu.empty((3, 48, 64), kind)
        there = [gpu.to_device(each) for each in (a, b, bias)]
        gpu.context.blas.matmul(p, *there[:2], out, gpu.compute, bias=there[2])
        wide = [each.astype(np.float64) for each in (a, b, bias)]
        wanted = (wide[0] @ wide[1] + wide[2]).reshape(48, 3, 64).transpose(1, 0, 2)
        said.append(f"{dtype}: {np.abs(gpu.to_host(out).astype(np.float64) - wanted).max():.1e} apart")
    return ", ".join(said)


_KINDS: list[tuple[str, tuple[str, ...]]] = [
    ("forward", ()), ("forward", ("bias",)), ("forward", ("bias", "relu")), ("input", ()), ("filter", ()),
]  # fmt: skip


def _wide_convolutions(gpu: CudaDevice) -> str:
    """float32 of 16-bit operands, with epilogues."""
    said: list[str] = []
    base = Convolution(
        "forward", "bfloat16", 2, 16, 32, 1, (9, 9), (3, 3), (9, 9), (1, 1), (1, 1), ((1, 1), (1, 1)), made="float32"
    )
    for dtype in ("bfloat16", "float16"):
        for kind, epilogue in _KINDS:
            of = replace(base, dtype=dtype, kind=kind, epilogue=epilogue)
            try:
                found = "yes" if gpu.context.dnn.supports(of) else "no"
            except Exception as error:
                found = in_a_line(error)
            said.append(f"{dtype} {' '.join((kind, *epilogue))}: {found}")
    return ", ".join(said)


def _conditions(gpu: CudaDevice) -> str:
    from tests.gpu.smoke import CHECKS

    return CHECKS["conditions"](gpu)


#: what is assumed stands in the question
QUESTIONS: dict[str, Question] = {
    "conditions": Question("does the driver's compiler know cudaGraphSetConditional?", _conditions),
    "mask": Question("does cuDNN's attention of 16 bits take a float32 mask?", _float32_mask),
    "hidden rows": Question("what are rows whose mask is -inf everywhere, by cuDNN?", _hidden_rows),
    "rounding": Question("how does mma round sums (assumed: cut off)?", _rounding),
    "factors": Question("are factors of 8-bit operands read anew in a replay?", _factors),
    "bias stride": Question("does cuBLASLt take a bias for each product of a batch?", _bias_stride),
    "float32 of 16 bits": Question("which convolutions of 16 bits give float32?", _wide_convolutions),
    **speed_questions.QUESTIONS,
}


def main(names: Sequence[str], ask: Callable[[], CudaDevice] = lambda: device(0)) -> int:
    """Ask all or some; returns how many had no answer."""
    unanswered, rest = 0, list(names or QUESTIONS)
    while rest:
        name = rest.pop(0)
        question, begun = QUESTIONS[name], time.perf_counter()
        try:
            said, passed = question.answer(ask()), True
        except Exception as error:
            said, passed = f"no answer: {in_a_line(error)}", False
            unanswered += 1
            if "context is lost" in said and rest and not is_fake():
                print(f"{name}: {question.asked} {said}", flush=True)
                return unanswered + subprocess.run([sys.executable, "-m", "tests.gpu.questions", *rest]).returncode
        taken = time.perf_counter() - begun
        print(f"{'ok' if passed else 'FAILED':6} {name}: {question.asked} {said} [{taken:.1f} s]", flush=True)
    print(f"{unanswered} questions without an answer", flush=True)
    return unanswered


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 100))
