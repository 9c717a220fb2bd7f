"""Softmax and LogSoftmax of rows: the last axis of any tensor.

A row is in registers, read once and written once, up to 16384 numbers; longer ones are walked along twice. half and
bfloat16 are computed in float and rounded once.
"""

from __future__ import annotations

import functools
import math

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.gpu.primitives.number_types import index_type, load_vector, number_of, store_vector, vector_of
from toolkit.kernels.gpu.primitives.reduce_code import State
from toolkit.kernels.gpu.primitives.row_code import ExponentialSum, RowTeam, TeamShape, softmax_of, team_for
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode


@gpu_kernel("Softmax", "LogSoftmax")
def softmax(op: KernelNode) -> Compute:
    device, logarithm = device_of(op.node), op.op == "LogSoftmax"

    def compute(x: GpuArray) -> GpuArray:
        if x.ndim == 0:
            raise InvalidArgumentError("logits must have at least one dimension", node=op.name)
        y = device.empty(x.shape, x.dtype)
        if not x.nbytes:
            return y
        columns = x.shape[-1]
        rows = math.prod(x.shape[:-1])
        number = number_of(x.dtype)
        shape = team_for(columns, vector_of(number, columns, x, y), index_type(rows * columns), number.words)
        made = softmax_kernel(number.name, shape, logarithm)
        device.launch(made, shape.blocks(rows), x, y, rows, columns // shape.vector)
        return y

    return compute


@functools.cache
def softmax_kernel(name: str, shape: TeamShape, logarithm: bool) -> SimtKernel:
    """Scalars: rows, columns (in vectors)."""
    number = number_of(name)
    k = KernelBuilder(f"{'log_' if logarithm else ''}softmax_{name}_{shape.threads}x{shape.slots}", shape.block)
    x, y = k.buffer("x", number.memory), k.buffer("y", number.memory, written=True)
    rows, columns = k.scalar("rows", shape.index), k.scalar("columns", shape.index)
    team = RowTeam(k, shape, rows, columns)
    if shape.slots:
        team.store(number, y, softmax_of(k, team, team.load(number, x, -math.inf), logarithm=logarithm))
        return k.finish()

    def read(place: Lanes) -> State:
        at = k.add(team.begin, place)
        return (at, *load_vector(k, number, x, at, shape.vector))

    found = ExponentialSum(k, number.compute)
    team.walk(read, lambda values: found.take(values[1:]))
    top, total = found.finish(team)
    rest = functions.log(k, total) if logarithm else k.div(k.number(1.0, number.compute), total)

    def write(values: State) -> None:
        made: list[Lanes] = []
        for value in values[1:]:
            shifted = k.sub(value, top)
            made.append(k.sub(shifted, rest) if logarithm else k.mul(functions.exp(k, shifted), rest))
        store_vector(k, number, y, values[0], made)

    team.walk(read, write)
    return k.finish()
