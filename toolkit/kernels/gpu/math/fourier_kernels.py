"""Discrete Fourier transforms as kernels: several lines a block, in shared memory.

A line is transformed by Stockham's algorithm (C. Van Loan, "Computational Frameworks for the Fast Fourier Transform",
1992, section 1.7): a stage of radix r takes r numbers from one half of the memory and puts them into the other half,
so that nothing has to be reordered. The roots of one are computed once for a block, in double.
"""

from __future__ import annotations

import cmath
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SIZES, KernelBuffer, SimtKernel, Value
from toolkit.kernels.gpu.operators.complex_numbers import mul
from toolkit.kernels.gpu.operators.trigonometric import sine_and_cosine_of_turn
from toolkit.kernels.gpu.primitives.element_types import ComplexNumber

BLOCK = 256
#: bytes of shared memory that a block has on every GPU without asking for more
_SHARED = 48 << 10
#: numbers that a block should have, four for each thread: a stage of radix 4 then keeps all of them busy
_NUMBERS = 4 * BLOCK
#: lines of a block at most: as many neighbours of complex64 are read together as a warp reads at one time
_LINES = 32
#: radices; a stage of radix r takes r^2 multiplications, so that larger primes are faster as a convolution
_RADICES = (4, 2, 3, 5, 7, 11, 13)

_C = ComplexNumber


def most(type: str) -> int:
    """The longest line: two halves of real and imaginary parts and a root for each number, in shared memory."""
    return _SHARED // (6 * SIZES[type])


@functools.cache
def radices(n: int) -> tuple[int, ...] | None:
    """The stages of a transform; None where there is a larger prime among the factors."""
    found: list[int] = []
    for radix in _RADICES:
        while n % radix == 0:
            found.append(radix)
            n //= radix
    return tuple(found) if n == 1 else None


def lines_of_block(n: int, count: int, type: str) -> int:
    """How many of `count` lines of n numbers a block transforms: a power of two."""
    fit = max((_SHARED // SIZES[type] - 2 * n) // (4 * n), 1)
    wanted = min(fit, max(_NUMBERS // n, 1), _LINES, 1 << (count - 1).bit_length())
    return 1 << (wanted.bit_length() - 1)


@dataclass(frozen=True, slots=True)
class TransformForm:
    """Attributes:
    n: numbers of a line.
    lines: of a block.
    inverse: the exponent is positive.
    source: "complex" numbers; "real" ones; "half" of a spectrum, whose other half is conjugate.
    is_real: of the results, the real part is kept.
    twisted: results are multiplied by roots of one (the first of two passes over a long line).
    near: the numbers of one line lie one behind the other, not those of one place.
    """

    n: int
    lines: int
    inverse: bool
    source: str = "complex"
    is_real: bool = False
    twisted: bool = False
    near: bool = True


def root_of_one(k: KernelBuilder, j: Value, n: Value, type: str, *, inverse: bool) -> ComplexNumber:
    """exp(-2 pi i j / n), or its conjugate; j and n are i64, 0 <= j < n.

    The angle is that to the nearest quarter turn, by integers, so that it is rounded once.
    """
    four, one, two = (k.number(each, "i64") for each in (4, 1, 2))
    turned = k.mul(j, four)
    quarter = k.div(k.add(turned, k.div(n, two)), n)
    rest = k.convert(k.sub(turned, k.mul(quarter, n)), "double")
    angle = k.mul(k.div(rest, k.convert(n, "double")), k.number(math.pi / 2, "double"))
    sine, cosine = sine_and_cosine_of_turn(k, angle)
    swaps = k.compare("ne", k.both(quarter, one), k.number(0, "i64"))
    real, imag = k.select(swaps, sine, cosine), k.select(swaps, cosine, sine)
    # the cosine is negative in the second and third quarter, the sine in the third and fourth
    below = k.compare("ne", k.both(k.add(quarter, one), two), k.number(0, "i64"))
    left = k.compare("ne", k.both(quarter, two), k.number(0, "i64"))
    real = k.select(below, k.neg(real), real)
    imag = k.select(left, k.neg(imag), imag)
    return _C(k.convert(real, type), k.convert(imag if inverse else k.neg(imag), type))


def _times_constant(k: KernelBuilder, z: ComplexNumber, factor: complex) -> ComplexNumber:
    """Without multiplications by 0 and 1."""

    def scaled(value: Value, by: float) -> Value | None:
        if by == 0:
            return None
        if abs(by) == 1:
            return value if by > 0 else k.neg(value)
        return k.mul(value, k.number(by, value.type))

    def total(a: Value | None, b: Value | None) -> Value:
        made = k.add(a, b) if a is not None and b is not None else (a if a is not None else b)
        assert made is not None  # a root of one is not 0
        return made

    return _C(
        total(scaled(z.real, factor.real), scaled(z.imag, -factor.imag)),
        total(scaled(z.real, factor.imag), scaled(z.imag, factor.real)),
    )


def _root(p: int, radix: int, inverse: bool) -> complex:
    """A root of one, exact where its parts are 0 and 1."""
    quarter = 4 * (p % radix)
    if quarter % radix == 0:
        exact = (1, 1j, -1, -1j)[quarter // radix]
        return complex(exact) if inverse else complex(exact).conjugate()
    return cmath.exp((2j if inverse else -2j) * math.pi * (p % radix) / radix)


def butterfly(k: KernelBuilder, numbers: Sequence[ComplexNumber], *, inverse: bool) -> list[ComplexNumber]:
    """A transform of a few numbers in registers."""
    radix = len(numbers)
    found: list[ComplexNumber] = []
    for p in range(radix):
        total = numbers[0]
        for q in range(1, radix):
            term = _times_constant(k, numbers[q], _root(p * q, radix, inverse))
            total = _C(k.add(total.real, term.real), k.add(total.imag, term.imag))
        found.append(total)
    return found


@functools.cache
def transform(type: str, form: TransformForm) -> SimtKernel:
    """Transforms lines. Takes source, result, and the scalars named below; positions are of elements.

    Line l is (a, b, c) of sizes (_, size_b, size_c); its place i is at `a * in_a + b * in_b + c + i * in_step`, and
    likewise for results. The first `have` places of the source are there, the others are zeros; the first `keep`
    results are written, times `scale`. Twisted ones are multiplied by the root of one b * i / `turn`.
    """
    n, lines = form.n, form.lines
    stages = radices(n)
    assert stages is not None
    k = KernelBuilder(_name(type, form), BLOCK)
    x, y = k.buffer("x", type), k.buffer("y", type, written=True)
    count, size_b, size_c = (k.scalar(name, "i64") for name in ("count", "size_b", "size_c"))
    have, keep = k.scalar("have", "i64"), k.scalar("keep", "i64")
    inner, outer = (tuple(k.scalar(f"{side}_{part}", "i64") for part in ("a", "b", "step")) for side in ("in", "out"))
    turn = k.scalar("turn", "i64")
    scale = k.scalar("scale", type)
    halves = [_pair(k, name, type, n * lines) for name in ("one", "other")]
    roots = _pair(k, "roots", type, n)
    first = k.mul(k.convert(k.block_index, "i64"), k.number(lines, "i64"))
    zero = k.number(0.0, type)
    whole = k.number(n * lines, "i32")

    def place(j: Lanes) -> tuple[Value, Value]:
        """The line and the number in it of a place of the block, in the order in which memory is read."""
        by = k.number(n if form.near else lines, "i32")
        a, b = k.div(j, by), k.rem(j, by)
        return (a, b) if form.near else (b, a)

    def base(line: Lanes, steps: tuple[Value, ...]) -> tuple[Value, Value]:
        """Where a line begins, and its b."""
        rest, c = k.div(line, size_c), k.rem(line, size_c)
        a, b = k.div(rest, size_b), k.rem(rest, size_b)
        return k.add(k.add(k.mul(a, steps[0]), k.mul(b, steps[1])), c), b

    with k.loop(k.thread, k.number(n, "i32"), BLOCK) as j:
        root = root_of_one(k, k.convert(j, "i64"), k.number(n, "i64"), type, inverse=form.inverse)
        _put(k, roots, j, root)
    with k.loop(k.thread, whole, BLOCK) as j:
        own, i = place(j)
        line = k.add(first, k.convert(own, "i64"))
        real, imag = k.variable(zero), k.variable(zero)
        wide = k.convert(i, "i64")
        mirrored = k.compare("sgt", i, k.number(n // 2, "i32"))
        if form.source == "half":
            wide = k.select(mirrored, k.sub(k.number(n, "i64"), wide), wide)
        with k.when(k.both(k.compare("slt", line, count), k.compare("slt", wide, have))):
            at = k.add(base(line, inner)[0], k.mul(wide, inner[2]))
            if form.source == "real":
                real.set(k.load(x, at))
            else:
                at = k.add(at, at)
                real.set(k.load(x, at))
                value = k.load(x, k.add(at, k.number(1, "i64")))
                imag.set(k.select(mirrored, k.neg(value), value) if form.source == "half" else value)
        _put(k, halves[0], k.add(k.mul(own, k.number(n, "i32")), i), _C(real.get(), imag.get()))
    done = 1
    for radix in stages:
        k.barrier()
        _stage(k, halves, roots, form, radix, done)
        halves.reverse()
        done *= radix
    k.barrier()
    with k.loop(k.thread, whole, BLOCK) as j:
        own, i = place(j)
        line, wide = k.add(first, k.convert(own, "i64")), k.convert(i, "i64")
        with k.when(k.both(k.compare("slt", line, count), k.compare("slt", wide, keep))):
            value = _take(k, halves[0], k.add(k.mul(own, k.number(n, "i32")), i))
            start, b = base(line, outer)
            if form.twisted:
                value = mul(k, value, root_of_one(k, k.mul(b, wide), turn, type, inverse=form.inverse))
            at = k.add(start, k.mul(wide, outer[2]))
            if form.is_real:
                k.store(y, at, k.mul(value.real, scale))
            else:
                at = k.add(at, at)
                k.store(y, at, k.mul(value.real, scale))
                k.store(y, k.add(at, k.number(1, "i64")), k.mul(value.imag, scale))
    return k.finish()


def _name(type: str, form: TransformForm) -> str:
    kinds = [form.source, "inverse" * form.inverse, "real" * form.is_real, "twisted" * form.twisted,
             "far" * (not form.near)]  # fmt: skip
    return "_".join(["fourier", type, f"{form.n}x{form.lines}", *filter(None, kinds)])


_Pair = tuple[KernelBuffer, KernelBuffer]


def _pair(k: KernelBuilder, name: str, type: str, size: int) -> _Pair:
    return k.shared(f"{name}_real", type, size), k.shared(f"{name}_imag", type, size)


def _take(k: KernelBuilder, pair: _Pair, index: Lanes) -> ComplexNumber:
    return _C(k.load(pair[0], index), k.load(pair[1], index))


def _put(k: KernelBuilder, pair: _Pair, index: Lanes, value: ComplexNumber) -> None:
    k.store(pair[0], index, value.real)
    k.store(pair[1], index, value.imag)


def _stage(k: KernelBuilder, halves: Sequence[_Pair], roots: _Pair, form: TransformForm, radix: int, done: int) -> None:
    """One stage, from the first half to the second.

    Args:
        done: numbers of the transforms that there are already.
    """
    n = form.n
    apart = n // radix  # numbers from one of a butterfly to the next
    step = n // (done * radix)  # roots from one twiddle factor to the next
    with k.loop(k.thread, k.number(apart * form.lines, "i32"), BLOCK) as index:
        line = k.mul(k.div(index, k.number(apart, "i32")), k.number(n, "i32"))
        j = k.rem(index, k.number(apart, "i32"))
        within = k.rem(j, k.number(done, "i32"))
        source = k.add(line, j)
        numbers = [_take(k, halves[0], source)]
        for q in range(1, radix):
            value = _take(k, halves[0], k.add(source, k.number(q * apart, "i32")))
            if done > 1:
                value = mul(k, value, _take(k, roots, k.mul(within, k.number(q * step, "i32"))))
            numbers.append(value)
        target = k.add(line, k.add(k.mul(k.sub(j, within), k.number(radix, "i32")), within))
        for p, value in enumerate(butterfly(k, numbers, inverse=form.inverse)):
            _put(k, halves[1], k.add(target, k.number(p * done, "i32")), value)


# -- lines of other lengths, as convolutions ----------------------------------------------------------------------


def _chirp(k: KernelBuilder, i: Value, n: Value, type: str, *, inverse: bool) -> ComplexNumber:
    """exp(-pi i i^2 / n): half of the square, by integers."""
    twice = k.add(n, n)
    return root_of_one(k, k.rem(k.mul(i, i), twice), twice, type, inverse=inverse)


@functools.cache
def chirp_filter(type: str, inverse: bool) -> SimtKernel:
    """What lines are convolved with: y [m], the chirp's conjugate at distances below n on either side of 0.

    Takes y, n, m; a thread a number.
    """
    k = KernelBuilder(f"fourier_filter_{type}{'_inverse' * inverse}", BLOCK)
    y, n, m = k.buffer("y", type, written=True), k.scalar("n", "i64"), k.scalar("m", "i64")
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, m)):
        other = k.sub(m, i)
        distance = k.select(k.compare("slt", other, i), other, i)
        value = _chirp(k, distance, n, type, inverse=not inverse)
        there = k.compare("slt", distance, n)
        for part, number in enumerate(value):
            at = k.add(k.add(i, i), k.number(part, "i64"))
            k.store(y, at, k.select(there, number, k.number(0.0, type)))
    return k.finish()


@functools.cache
def chirped(type: str, inverse: bool, source: str, *, is_real: bool, multiplied: bool) -> SimtKernel:
    """Lines times the chirp: [outer, have, inner] becomes [outer, keep, inner], times `scale`.

    Takes x, y, how many numbers of y, have, keep, inner, n, scale; a thread a number. What is behind `have` or n is 0.

    Args:
        source: as in `TransformForm`.
        is_real: the real part is kept.
        multiplied: else only `source` becomes complex numbers.
    """
    name = "_".join(filter(None, ("fourier_chirp" if multiplied else "fourier_spread", type, source,
                                  "inverse" * inverse, "real" * is_real)))  # fmt: skip
    k = KernelBuilder(name, BLOCK)
    x, y = k.buffer("x", type), k.buffer("y", type, written=True)
    count, have, keep, inner, n = (k.scalar(name, "i64") for name in ("count", "have", "keep", "inner", "n"))
    scale = k.scalar("scale", type)
    zero, one = k.number(0.0, type), k.number(1, "i64")
    index = k.global_thread("i64")
    with k.when(k.compare("slt", index, count)):
        rest, c = k.div(index, inner), k.rem(index, inner)
        a, i = k.div(rest, keep), k.rem(rest, keep)
        where, mirrored = i, k.compare("sgt", i, k.div(n, k.number(2, "i64")))
        if source == "half":
            where = k.select(mirrored, k.sub(n, i), i)
        real, imag = k.variable(zero), k.variable(zero)
        with k.when(k.both(k.compare("slt", i, n), k.compare("slt", where, have))):
            at = k.add(k.mul(k.add(k.mul(a, have), where), inner), c)
            if source == "real":
                real.set(k.load(x, at))
            else:
                at = k.add(at, at)
                real.set(k.load(x, at))
                value = k.load(x, k.add(at, one))
                imag.set(k.select(mirrored, k.neg(value), value) if source == "half" else value)
        value = _C(real.get(), imag.get())
        if multiplied:
            bounded = k.select(k.compare("slt", i, n), i, k.number(0, "i64"))
            value = mul(k, value, _chirp(k, bounded, n, type, inverse=inverse))
        if is_real:
            k.store(y, index, k.mul(value.real, scale))
        else:
            at = k.add(index, index)
            k.store(y, at, k.mul(value.real, scale))
            k.store(y, k.add(at, one), k.mul(value.imag, scale))
    return k.finish()


@functools.cache
def filtered(type: str) -> SimtKernel:
    """Spectra [outer, m, inner] times that of a filter [m], in place. Takes x, filter, count, m, inner."""
    k = KernelBuilder(f"fourier_filtered_{type}", BLOCK)
    x, by = k.buffer("x", type, written=True), k.buffer("by", type)
    count, m, inner = (k.scalar(name, "i64") for name in ("count", "m", "inner"))
    one = k.number(1, "i64")
    index = k.global_thread("i64")
    with k.when(k.compare("slt", index, count)):
        i = k.rem(k.div(index, inner), m)
        at, there = k.add(index, index), k.add(i, i)
        value = _C(k.load(x, at), k.load(x, k.add(at, one)))
        value = mul(k, value, _C(k.load(by, there), k.load(by, k.add(there, one))))
        k.store(x, at, value.real)
        k.store(x, k.add(at, one), value.imag)
    return k.finish()
