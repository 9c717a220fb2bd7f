"""From which sizes on which way to compute something pays, by family; a `Target` has one of each.

Defaults are what was measured on processors with AVX-512. A processor on which something else was measured has a row
(`rows`) that says so.
"""

from __future__ import annotations

from typing import NamedTuple


class ThreadThresholds(NamedTuple):
    """From how much work on several threads share it, and other threads of Python's are let in meanwhile.

    Threads meet at the end of each piece of work; where another program has one of their processors, that takes
    milliseconds. So does taking the interpreter's lock back.

    Attributes:
        product: multiplications of a product.
        product_by_loops: the same in programs with loops: threads that met in front of a loop spin into it.
        product_in_loops: the same in loops, whose threads would meet in every iteration.
        product_of_iterations: of a product over many iterations of a loop.
        moved: multiplications that take as long as moving an element.
        nest: instructions on vectors of a fused loop nest.
        mean: elements of an image whose mean is computed in strips.
        released: bytes that a primitive or a compiled function touches.
        released_by_updates: bytes of a gradient.
        released_by_samplers: samples that are drawn.
    """

    product: int = 1 << 18
    product_by_loops: int = 1 << 22
    product_in_loops: int = 1 << 22
    product_of_iterations: int = 1 << 26
    moved: int = 16
    nest: int = 1 << 18
    mean: int = 1 << 15
    released: int = 1 << 17
    released_by_updates: int = 1 << 15
    released_by_samplers: int = 1 << 10


class BatchThresholds(NamedTuple):
    """Large batches in shares, one for each thread (`transforms/batches`).

    Attributes:
        least_examples: in a share; fewer leave the processor's registers empty.
        least_work: multiplications of a batch below which shares are not worth the hand-over.
        large: bytes of a tensor beyond which two pieces after each other take less time than one.
    """

    least_examples: int = 4
    least_work: float = 1e9
    large: int = 1 << 25


class PrimitiveThresholds(NamedTuple):
    """From how many elements on compiled programs use primitives of oneDNN.

    Attributes:
        library: of any tensor, to load the library for it, which takes 30 ms.
        elementwise: of most operations; below, NumPy starts faster.
        product: multiplications of a product.
        reduction: of what is reduced.
        join: of what parts are joined to.
        transpose: of transposed copies.
        softmax: a primitive takes 3 us, NumPy's five passes 15.
        log_softmax: small ones stay NumPy's, for loading LLVM takes 50 ms.
        channels: fewer leave vector registers empty when one number is applied to each channel.
        turned_weights: of a matrix that changes, from which packing it is a good part of the product.
        turned_rows: of such a product that is computed the other way round; fewer leave registers empty as columns.
        turned_moves: elements that are not packed for each number that is turned instead.
        depthwise_pixels: of an image; below, oneDNN's choice of code for depthwise convolutions is as good as another.
        depthwise_channels: that its older code takes in one pass over an image.
        depthwise_image: bytes of an image up to which its older code finds it in the cache; twice that for one image.
    """

    library: int = 1 << 10
    elementwise: int = 4096
    product: int = 4096
    reduction: int = 4096
    join: int = 4096
    transpose: int = 2048
    softmax: int = 64
    log_softmax: int = 1024
    channels: int = 16
    turned_weights: int = 1 << 19
    turned_rows: int = 8
    turned_moves: int = 4
    depthwise_pixels: int = 100
    depthwise_channels: int = 64
    depthwise_image: int = 1 << 20

    def without_calls(self) -> PrimitiveThresholds:
        """The same in code in which the interpreter has no part, where calls cost nothing."""
        return self._replace(product=0, reduction=0, join=0, transpose=0, softmax=0, log_softmax=0)


class KernelThresholds(NamedTuple):
    """From how much work on kernels that run node by node use primitives of oneDNN, or compiled code.

    Attributes:
        product, convolution: multiplications. Products go there from where OpenBLAS would start threads.
        softmax, activation, pool: elements.
        norm, norm_training: elements of a batch norm, and of one with statistics of its own.
        rows, update: elements of rows of a variable that are changed, and of their gradient, for compiled code.
    """

    product: int = 1 << 18
    convolution: int = 1 << 16
    softmax: int = 1 << 13
    activation: int = 1 << 15
    pool: int = 1 << 11
    norm: int = 1 << 15
    norm_training: int = 1 << 12
    rows: int = 1 << 10
    update: int = 1 << 8


class CopyThresholds(NamedTuple):
    """From how many bytes on a tensor is used where it is instead of being copied.

    Attributes:
        pinned: what comes from outside; below, copying is cheaper than telling oneDNN where it is.
        pinned_by_loops: what a loop takes from outside.
        donated: what a variable is assigned; below, copying takes as long as telling compiled code where to write.
        floating: what an iteration pushes or pops; smaller tensors are copied as soon as their addresses are.
    """

    pinned: int = 1 << 14
    pinned_by_loops: int = 1 << 16
    donated: int = 1 << 16
    floating: int = 256


class NestThresholds(NamedTuple):
    """Fused loop nests in machine code (`elementwise/nests`).

    Attributes:
        weight: instructions of one nest at most: LLVM's time grows faster than their number.
        call: instructions that a call of a function takes.
        operands: of one nest at most.
        written_out: instructions of a body; in longer ones functions are called, for LLVM needs a second for 150,000.
        large: elements from which on an operation that NumPy computes with one thread is better a nest.
        separate: elements from which on a loop of its own costs nothing.
        row: numbers of a row of constants that is repeated: they stay in the fastest cache.
        short_row: numbers of a row that is not worth that.
        tile: elements that are computed at a time where NumPy makes several passes.
    """

    weight: int = 600
    call: int = 4
    operands: int = 40
    written_out: int = 250
    large: int = 1 << 15
    separate: int = 1 << 18
    row: int = 4096
    short_row: int = 64
    tile: int = 1 << 14


class LoopThresholds(NamedTuple):
    """Loops that run all of their iterations as machine code (`backends/cpu/loops`).

    Attributes:
        iterations: in one go at first; then somebody may have cancelled.
        most_iterations: in one go.
        seconds: that one go shall take about.
        accumulated_rows: of a product over many iterations; more make it no faster.
    """

    iterations: int = 16
    most_iterations: int = 100_000
    seconds: float = 0.01
    accumulated_rows: int = 512


class TableThresholds(NamedTuple):
    """Rows of tables by number (`learning/rows`).

    Attributes:
        least: elements of what is gathered; below, LLVM is not loaded for it.
        ahead: rows: they lie anywhere in memory, so the processor is told of them early.
        lines: of the cache, that it is told of; it notices by itself how a long row goes on.
    """

    least: int = 1 << 10
    ahead: int = 8
    lines: int = 2


class PoolThresholds(NamedTuple):
    """Max pools that are compiled loops (`learning/pools`).

    Attributes:
        least: elements of the larger tensor.
    """

    least: int = 1 << 14


class WinogradThresholds(NamedTuple):
    """Convolutions by Winograd's algorithm (`networks/windows`, `networks/winograd`).

    Attributes:
        transformed: what a number costs when it is transformed, in multiplications.
        read: what one costs when it is read from the filters, likewise.
        least_work: multiplications of a convolution that is worth the compiler's time.
        gain: of the definition's cost, above which nothing is changed.
        most_sums: bytes of sums for a gradient, of each share.
        block: tiles at a time: they stay in the cache, and filters are read as seldom as may be.
        odd: tiles in a block from which on one more is taken, if need be, to have an odd number of them.
    """

    transformed: float = 15
    read: float = 20
    least_work: float = 1e7
    gain: float = 0.85
    most_sums: int = 1 << 24
    block: int = 64
    odd: int = 16


class RecurrentThresholds(NamedTuple):
    """Layers of recurrent cells by code of our own (`backends/cpu/recurrent`).

    Attributes:
        pays: whether it is faster than oneDNN's at all.
        in_flight: sums that are added to in turns: twice as many additions are begun in a cycle as there are cycles
            until one is done.
        ready: bytes of the product of the input that are made at a time: more leave the second cache, which has the
            weights as well (4 % slower with 1 << 19).
    """

    pays: bool = True
    in_flight: int = 8
    ready: int = 1 << 17


class PackedGemmThresholds(NamedTuple):
    """Products with constant weights by kernels of our own (`networks/panels`).

    Attributes:
        pays: whether they are faster than oneDNN's at all: they want 32 registers.
        tiles: rows and vectors of sums that are in registers.
        depth: rows of a panel that are multiplied at a time: with three vectors they fill the first cache.
        most_depth: rows of a panel that are multiplied at once all the same; a few more do no harm.
        unrolled: rows of a panel in one iteration of the innermost loop.
        block: rows of x, a multiple of every tile's.
        least_rows: below, weights are not used often enough for anything to be done in the meantime.
        least_work: multiplications.
        call, written, read: cycles to call a kernel, to write a vector, to read one that is in a farther cache.
        at_once: products, or loads, of vectors in a cycle.
        latency: cycles until a sum can be added to again.
        large: bytes of an output that no cache holds.
        resident: bytes of weights that the second cache holds beside all else.
    """

    pays: bool = True
    tiles: tuple[tuple[int, int], ...] = ((8, 3), (6, 4), (8, 2), (8, 1))
    depth: int = 256
    most_depth: int = 576
    unrolled: int = 4
    block: int = 240
    least_rows: int = 16
    least_work: int = 1 << 20
    call: float = 40
    written: float = 5
    read: float = 3
    at_once: int = 2
    latency: float = 4.0
    large: int = 8 << 20
    resident: int = 1 << 18


class DepthwiseThresholds(NamedTuple):
    """Convolutions of each channel by itself by code of our own (`networks/depthwise`).

    Attributes:
        pays: whether it is faster than oneDNN's at all.
        tiles: outputs at a time, at least and at most: sums, weights and inputs are in registers.
        strip: tiles: with three or five rows of the window they are in the fastest cache.
        pixel: bytes of a pixel that are done at a time: long enough for the processor to see what comes next.
    """

    pays: bool = True
    tiles: tuple[int, int] = (4, 8)
    strip: int = 4
    pixel: int = 512


class StripThresholds(NamedTuple):
    """1x1 convolutions and depthwise ones strip by strip (`networks/strips`).

    Attributes:
        least: bytes of what is in between; less stays in the cache by itself.
        strip: bytes of a strip: it is in the second cache, beside inputs and outputs.
    """

    least: int = 3 << 19
    strip: int = 3 << 18


class ActivationThresholds(NamedTuple):
    """Activations that leave oneDNN's primitives (`networks/activations`).

    Attributes:
        pays: whether code of our own is faster at all.
        least: elements below which the call costs more than it saves.
        weight: instructions of one, roughly: what makes it worth a second thread.
    """

    pays: bool = True
    least: int = 1 << 14
    weight: int = 60
