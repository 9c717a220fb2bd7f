"""Depthwise convolutions by `native.depthwise`."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.instance import Region, Span, Workspace, whole
from toolkit.compiler.backends.cpu.networks.epilogues import Epilogue, can_follow, epilogue_of, operands_of
from toolkit.compiler.backends.cpu.networks.operations import DepthwiseConvolution
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.products import Convolution
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cpu.native.code import LANES
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.native.depthwise import BFLOAT, FLOAT, DepthwiseWindow, depthwise, pack
from toolkit.kernels.cpu.native.openmp import OPENMP
from toolkit.kernels.cpu.native.panels import OperandForm
from toolkit.kernels.cpu.onednn.library import openmp_symbols
from toolkit.kernels.tensors import BF16, F32
from toolkit.passes.measuring.operations import multiplications
from toolkit.target.target import Target
from toolkit.target.thresholds import DepthwiseThresholds

_MEMORY = {F32: FLOAT, BF16: BFLOAT}


def lower_depthwise(block: Block, threads: int, target: Target) -> None:
    """Find convolutions of each channel by itself that are quicker by code of our own.

    Args:
        threads: that a plan may use.
    """
    if not target.depthwise.pays:
        return
    for operation in block.operations:
        if type(operation) is not Convolution or not _is_plain(operation, target.depthwise):
            continue
        if compiler() is None or (threads > 1 and not openmp_symbols(*OPENMP)):
            return
        work = multiplications(operation.output.size, operation.filter_shape, depthwise=True)
        fields = operation.own_fields()
        operation.become(DepthwiseConvolution, **fields, threads=threads if work >= target.threads.product else 1)


def _is_plain(operation: Convolution, sizes: DepthwiseThresholds) -> bool:
    known, y = operation.weights, operation.output
    return (
        operation.windows.depthwise
        and known is not None
        and known.ndim == 4
        and known.shape[2] % LANES == 0
        and known.shape[3] == 1
        and y.shape is not None
        and y.shape[2] >= sizes.tiles[0]
        and operation.input.dtype in _MEMORY
        and y.dtype in _MEMORY
        and operation.gates is None
        and can_follow(operation, [OperandForm.COLUMNS])
    )


def write_depthwise(emitter: Emitter, operation: Operation) -> None:
    """The call of the compiled function."""
    assert isinstance(operation, DepthwiseConvolution)
    x, y = operation.input, operation.output
    assert x.shape is not None and y.shape is not None
    shares = _shares(y.shape[0] * y.shape[1], y.shape[3] // LANES, operation.threads)
    made = Depthwise(emitter, operation, threads=len(shares) > 1)
    emitter.execute_native(made.function, made.operands(x, y, shares, (0, x.shape[0] * x.shape[1])))


class Depthwise:
    """A depthwise convolution as it is called.

    Args:
        threads: the shares are spread over threads.

    Attributes:
        function: takes `operands`.
    """

    def __init__(self, emitter: Emitter, operation: DepthwiseConvolution, *, threads: bool):
        x, y, known, places = operation.input, operation.output, operation.weights, operation.windows
        assert x.shape is not None and y.shape is not None
        sizes = emitter.target.depthwise
        (_, height, width, channels), (_, down, across, _) = x.shape, y.shape
        (down_by, across_by), (down_apart, across_apart) = places.strides, places.dilations
        window = DepthwiseWindow(
            known.shape[:2],
            (down_by, across_by),
            (down_apart, across_apart),
            _tile(across, sizes.tiles),
            _MEMORY[x.dtype],
            _MEMORY[y.dtype],
        )
        before = [before for before, _ in places.padding]
        tiles, groups = -(-across // window.tile), sizes.pixel // (LANES * x.dtype.itemsize)
        self._emitter = emitter
        self._lines = (width * channels * int(x.dtype.itemsize), across * channels * int(y.dtype.itemsize))
        self._numbers = [height, width, down, across, channels, *before, tiles, sizes.strip, groups]
        self._weights = emitter.kept(pack(known.reshape(known.shape[:3])))
        self._zeros = emitter.kept(np.zeros(LANES, np.float32))
        self._others = operands_of(emitter, operation)
        text = _text(window, epilogue_of(operation), threads=threads)
        machine = compiler()
        assert machine is not None
        self.function = machine.function(text, openmp_symbols(*OPENMP) if threads else {})

    def operands(
        self, x: Value | Workspace, y: Value, shares: Sequence[Share], rows: tuple[int, int], offset: int = 0
    ) -> list[Region]:
        """Where everything is, for some shares.

        Args:
            rows: of all images of x, one below the other, the first that the shares need and the one behind the last.
            offset: bytes from `x` to where its first row would be.
        """
        kept = self._emitter.kept
        numbers = kept(np.array([len(shares), *self._numbers], np.int64))
        own = [whole(kept(np.array(share, np.int64))) for share in shares]
        start, stop = min(share[0] for share in shares), max(share[1] for share in shares)
        given, made = self._lines
        return [
            Span(x, rows[1] * given, rows[0] * given, offset), whole(self._weights),
            Span(y, stop * made, start * made), whole(self._zeros), whole(numbers), *self._others(stop), *own,
        ]  # fmt: skip


@functools.cache
def _text(window: DepthwiseWindow, epilogue: Epilogue, *, threads: bool) -> str:
    return depthwise(window, len(epilogue.kinds), epilogue.write, threads=threads)


def _tile(across: int, tiles: tuple[int, int]) -> int:
    """So many outputs at a time that few are computed twice; more are better, for inputs serve several of them."""
    return min(
        (size for size in range(tiles[0], tiles[1] + 1) if size <= across),
        key=lambda size: (-(-across // size) * size, -size),
    )


#: the first row of all outputs one below the other, the one behind the last, and groups of channels likewise
Share = tuple[int, int, int, int]


def _shares(rows: int, groups: int, threads: int) -> list[Share]:
    """For a thread each, the most even way."""
    by_rows, by_groups = (-(-size // threads) * threads / size for size in (rows, groups))
    if by_groups < by_rows:
        cut = [(0, rows, groups * i // threads, groups * (i + 1) // threads) for i in range(threads)]
    else:
        cut = [(rows * i // threads, rows * (i + 1) // threads, 0, groups) for i in range(threads)]
    return [share for share in cut if share[0] < share[1] and share[2] < share[3]]
