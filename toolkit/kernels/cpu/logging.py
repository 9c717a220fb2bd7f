"""What tells the user: Assert, Print, PrintV2; and the clock."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import itertools
import sys
import time
from typing import Any, TextIO

from toolkit.errors import GivenUpError, InvalidArgumentError
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import np, require, shape_text
from toolkit.kernels.cpu.files.file_io import file_error
from toolkit.kernels.encodings.text import summarize
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel
from toolkit.kernels.types import Array
from toolkit.policy.outside import Reach
from toolkit.printable import printable


@kernel("Assert", kind=Kind.STATEFUL)
def assert_(op: KernelNode) -> Compute:
    limit = op.int32("summarize")

    def compute(step: StepContext, condition: Array, *data: Any) -> None:
        require(condition.ndim == 0, f"In[0] should be a scalar: {shape_text(condition)}")
        if not condition:
            shown = " ".join(f"[{summarize(value, limit, nested=False)}]" for value in data)
            raise InvalidArgumentError(f"assertion failed: {shown}", node=op.name)

    return compute


def _write(text: str, stream: TextIO) -> None:
    """What a model prints: as it is where a program reads it, with nothing that a terminal would act upon on one."""
    print(printable(text, keep="\n\t") if stream.isatty() else text, end="", file=stream)


@kernel("Print", kind=Kind.STATEFUL)
def print_(op: KernelNode) -> Compute:
    """Passes its input on; writes the message and the data to standard error the first `first_n` times."""
    message, first, limit = op.text("message"), op.attr("first_n"), op.int32("summarize")
    op.files.require(Reach.OUTPUT)
    calls = itertools.count()

    def compute(step: StepContext, x: Any, *data: Any) -> Any:
        if first < 0 or next(calls) < first:
            shown = "".join(f"[{summarize(value, limit, nested=False)}]" for value in data)
            _write(message + shown + "\n", sys.stderr)
        return x

    return compute


@kernel("PrintV2", kind=Kind.STATEFUL)
def print_v2(op: KernelNode) -> Compute:
    stream, end = op.text("output_stream"), op.text("end")
    streams = {
        "stdout": lambda: sys.stdout, "stderr": lambda: sys.stderr, "log(info)": lambda: sys.stderr,
        "log(warning)": lambda: sys.stderr, "log(error)": lambda: sys.stderr,
    }  # fmt: skip
    if not stream.startswith("file://") and stream not in streams:
        raise InvalidArgumentError(
            f"Unknown output stream: {stream}, stream should be file:// or one of {', '.join(streams)}", node=op.name
        )
    files = op.files
    if stream in streams:
        files.require(Reach.OUTPUT)

    def compute(step: StepContext, text: Array) -> None:
        require(text.ndim == 0, f"Input is expected to be scalar, but got {shape_text(text)}")
        shown = text.item().decode("utf-8", "replace") + end
        if stream.startswith("file://"):
            try:
                with files.open(stream, "ab") as file:
                    file.write(shown.encode())
            except OSError as error:
                raise file_error(error, stream) from None
        else:
            _write(shown, streams[stream]())

    return compute


@kernel("Timestamp", kind=Kind.STATEFUL)
def timestamp(op: KernelNode) -> Compute:
    """Seconds since 1970, float64."""
    return lambda step: np.array(time.time(), np.float64)


@kernel("Abort", kind=Kind.STATEFUL)
def abort(op: KernelNode) -> Compute:
    """TensorFlow ends the process, with `exit_without_error` as if all were well; here the step fails either way.

    A model does not decide that the program around it is over.
    """
    message = op.text("error_msg") or "Abort was run"
    if op.attr("exit_without_error"):
        message += " (with exit_without_error, which would end the process: a step that does not finish is an error)"
    op.files.require(Reach.EXIT)

    def compute(step: StepContext) -> None:
        raise GivenUpError(message, node=op.name)

    return compute
