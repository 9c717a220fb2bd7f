"""What a user may choose about compiled segments."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from toolkit.errors import UsageError, did_you_mean
from toolkit.target import rows
from toolkit.target.target import Target

#: threads that one thing of a session may be given; more than any machine has processors
MAX_THREADS = 1024
PRECISIONS = ("f32", "tf32", "bf16", "fp16", "fp8", "exact")
_NARROW = {"bf16": "BF16", "fp16": "F16", "fp8": "BF16"}


@dataclass(frozen=True, slots=True)
class Settings:
    """Attributes:
    segments: compile programs; else they run node by node.
    onednn: use oneDNN where it is installed.
    native: compile chains of elementwise operations to machine code where LLVM is installed.
    winograd: convolutions with 3x3 windows may take a quarter of the multiplications, with errors of a few 1e-6.
    panels: products with constant weights, depthwise convolutions and some activations are compiled functions.
    strict: a failure of the compiler itself is an error; else the program runs node by node.
    round_trip: make sure that the text form of every program, before its passes and behind them, is read as the same.
    verify: make sure behind every pass that the program is well-formed; where it is not, that is an error.
    precision: "f32"; "bf16" for convolutions and matrix products with half the memory and twice the speed where
        the processor or the GPU has it, and two or three significant digits; "fp16", which on GPUs is bf16 in float16,
        with a digit more and nothing beyond 65504, and elsewhere f32; "fp8", which on GPUs is bf16 but for products
        with weights, of floats of 8 bits with a factor for each tensor and one digit, and elsewhere f32; "tf32", which
        is f32 but for convolutions and matrix products on GPUs, whose tensor cores take 10 bits of the mantissa and are
        several times as fast; or
        "exact" for the kernels that define the ops and nothing that computes otherwise: no oneDNN, no machine code, no
        Winograd, no folded weights (numerics.txt).
    stages: a folder that programs are written to, in text form, after each pass.
    once: no program is asked for a second time, as a rule: large ones that work on little need not be compiled.
    threads: of a kernel; None for one for each processor that nothing else keeps busy (`target.load`).
    target: the processor that code is made for, with what decides between ways to compute something.
    """

    segments: bool = True
    onednn: bool = True
    native: bool = True
    winograd: bool = True
    panels: bool = True
    strict: bool = False
    verify: bool = False
    round_trip: bool = False
    precision: str = "f32"
    threads: int | None = None
    stages: str | None = None
    once: bool = False
    target: Target = field(default_factory=rows.current)

    def __post_init__(self) -> None:
        check_precision(self.precision)
        if self.threads is not None and not 1 <= self.threads <= MAX_THREADS:
            raise UsageError(f"there cannot be {self.threads} threads; expected 1 to {MAX_THREADS}")

    @property
    def defines(self) -> bool:
        """Whether ops are computed by the kernels that define them."""
        return self.precision == "exact"

    @property
    def allows_tf32(self) -> bool:
        """Whether tensor cores may multiply float32 numbers with 10 bits of their mantissas."""
        return self.precision in ("tf32", *_NARROW)

    @property
    def narrow(self) -> Any:
        """The 16-bit type that products take on GPUs; None where they take float32."""
        if self.precision not in _NARROW:
            return None
        from toolkit.kernels import tensors

        return getattr(tensors, _NARROW[self.precision])

    @property
    def float8(self) -> bool:
        """Whether products with weights may take 8-bit floats on GPUs."""
        return self.precision == "fp8"

    @staticmethod
    def current(
        precision: str = "f32", threads: int | None = None, stages: str | None = None, target: Target | None = None,
        *, once: bool = False,
    ) -> Settings:  # fmt: skip
        """The defaults, changed by the environment.

        Args:
            target: None for the processor that this runs on.

        GRAPHMILL_SEGMENTS is off or strict; _ONEDNN, _NATIVE, _WINOGRAD and _PANELS are off; _VERIFY and _ROUND_TRIP
        are on.

        Raises:
            UsageError: GRAPHMILL_CPU names no level; said here, or the first node that is compiled would be blamed.
        """
        segments = os.environ.get("GRAPHMILL_SEGMENTS", "")
        otherwise = precision != "exact"  # what computes otherwise than the definition may do so
        return Settings(
            segments=segments != "off",
            strict=segments == "strict",
            verify=os.environ.get("GRAPHMILL_VERIFY", "") == "on",
            round_trip=os.environ.get("GRAPHMILL_ROUND_TRIP", "") == "on",
            onednn=otherwise and os.environ.get("GRAPHMILL_ONEDNN", "") != "off",
            native=otherwise and os.environ.get("GRAPHMILL_NATIVE", "") != "off",
            winograd=otherwise and os.environ.get("GRAPHMILL_WINOGRAD", "") != "off",
            panels=otherwise and os.environ.get("GRAPHMILL_PANELS", "") != "off",
            precision=precision,
            threads=threads,
            stages=stages,
            once=once,
            target=rows.current() if target is None else target,
        )


def check_precision(name: str) -> None:
    """Make sure that numbers can be computed so.

    Raises:
        UsageError: there is no such precision; a near name is suggested.
    """
    if name not in PRECISIONS:
        hint = did_you_mean(name, PRECISIONS, then=f"expected {', '.join(PRECISIONS)}")
        raise UsageError(f"'{name}' is not a precision{hint}")
