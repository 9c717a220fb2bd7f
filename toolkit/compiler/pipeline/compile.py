"""Blocks compiled: their passes applied and their functions made, by what a program's device has for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from toolkit.compiler.backends.base import Executable
from toolkit.compiler.context import RunningStep
from toolkit.compiler.ir.block import Block
from toolkit.compiler.pipeline.cpu import compile_block
from toolkit.compiler.pipeline.passes import Compilation, apply_passes
from toolkit.compiler.program import Program
from toolkit.compiler.settings import Settings

if TYPE_CHECKING:
    from toolkit.compiler.backends.kernels.function import KernelFunction


def compile_calls(block: Block, settings: Settings, excluded: dict[str, str], running: RunningStep) -> KernelFunction:
    """Generate the function of a block that leaves everything to the kernels of a device.

    Raises:
        NotSupportedError: there is an operation in it that no kernel is behind.
    """
    from toolkit.compiler.backends.kernels.emit import emit

    apply_passes(block, Compilation(block, settings, excluded, running), ())
    return emit(block)


def compile_cuda(block: Block, settings: Settings, excluded: dict[str, str], running: RunningStep) -> Executable:
    """Generate the function of a block that runs on an NVIDIA GPU.

    Raises:
        NotSupportedError: there is an operation in it that nothing is behind.
    """
    from toolkit.compiler.backends.cuda.emit import emit
    from toolkit.compiler.pipeline.cuda import CUDA_PASSES

    passes = () if settings.defines else CUDA_PASSES
    apply_passes(block, Compilation(block, settings, excluded, running), passes)
    return emit(block, tf32=settings.allows_tf32)


Backend = Callable[[Block, Settings, dict[str, str], RunningStep], Executable]


def backend_of(program: Program) -> Backend:
    """What compiles the blocks of a program: for its device, if it makes code for that."""
    if program.memory is None:
        return compile_block
    return compile_cuda if program.device_type == "GPU" else compile_calls
