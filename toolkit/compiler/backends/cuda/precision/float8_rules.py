"""Which products take floats of 8 bits: a table of why others do not.

What cuBLASLt cannot take is one part of it, what does not pay the other. A factor that the step computes has to be read
twice and written once more before the product reads it, by two launches; or once, by one, where the kernel that makes
it finds the largest number of each row. What an elementwise kernel makes for such products alone is not written in 16
bits, but computed twice. All that has to be less than what the product saves by half the bytes and twice the speed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from toolkit.compiler.backends.cuda.layout.strided_operations import Four, Three
from toolkit.compiler.backends.cuda.precision.float8_operations import product_of
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cuda.libraries.base import Product


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a card is, for what is weighed here.

    Attributes:
        bytes: of memory, a second.
        operations: of products of 16-bit factors, a second; those of 8-bit factors are twice as fast.
        launch: seconds that a kernel takes, however small it is.
    """

    bytes: float
    operations: float
    launch: float


#: an H100's (its data sheet, SXM5); 2 us is what `tests.bench.cuda_roofline` assumes of a launch within a graph. Others
#: that have 8 bits have a similar ratio of operations to bytes: 206 (H200) to 419 (L40S) beside 295
HOPPER = Pace(3.35e12, 989.4e12, 2e-6)
#: elements: rows of 8-bit floats begin at multiples of 16 bytes
ALIGNED = 16


@dataclass(eq=False, slots=True)
class Candidate:
    """A product that may take 8 bits.

    Attributes:
        operation: as it is, with factors of 16 bits.
        a, b: what is quantized: float32, or 16 bits where it is stored so.
        turned: b is stored [k, n] and has to be transposed.
        bias, activation, sizes, count, leads, strides: as `Float8Product` has them.
        refusal: why it cannot, as far as its form tells; "" where it can.
        shares: how many products take the same first factor.
        has_maxima: the kernel that makes the first factor can find the largest number of each row.
        nest: bytes that the elementwise kernel reads which makes the first factor, where nobody else takes it; 0 where
            somebody does, or another kernel makes it.
    """

    operation: Operation
    a: Value
    b: Value
    turned: bool = False
    bias: Value | None = None
    activation: str = "Identity"
    sizes: Three = (0, 0, 0)
    count: int = 1
    leads: Three = (0, 0, 0)
    strides: Four = (0, 0, 0, 0)
    refusal: str = ""
    shares: int = 1
    has_maxima: bool = False
    nest: int = 0

    @property
    def product(self) -> Product:
        """What the library would be asked for."""
        made = self.operation.output.dtype.name
        return product_of(self.sizes, self.count, self.leads, self.strides, made)

    def saved(self, pace: Pace) -> tuple[float, float]:
        """Seconds that the product takes less, and those that quantizing takes more."""
        m, n, k = self.sizes
        # what is stored once is read once, however many products take it
        first = self.a.size
        second = self.b.size
        out = self.operation.output.nbytes
        work = 2.0 * m * n * k * self.count / pace.operations
        wide = max(work, (2 * (first + second) + out) / pace.bytes)
        narrow = max(work / 2, (first + second + out) / pace.bytes)
        # each number is read by both kernels, a byte of it is written
        read = self.a.nbytes
        costs = max(pace.launch, (read + first) / pace.bytes)
        if not self.has_maxima:
            costs += max(pace.launch, read / pace.bytes)
        if self.nest:  # two kernels in the place of one
            costs = max(pace.launch, self.nest / pace.bytes) + max(pace.launch, (self.nest + first) / pace.bytes)
            costs -= max(pace.launch, (self.nest + read) / pace.bytes)
        return max(wide, pace.launch) - max(narrow, pace.launch), costs / self.shares


Supports = Callable[[Product], bool]
Rule = Callable[[Candidate, Pace, Supports], str]


def _of_form(candidate: Candidate, pace: Pace, supports: Supports) -> str:
    return candidate.refusal


def _of_alignment(candidate: Candidate, pace: Pace, supports: Supports) -> str:
    _, n, k = candidate.sizes
    numbers = {"columns": n, "terms": k, "numbers a row": candidate.leads[0], "numbers a matrix": candidate.strides[0]}
    wrong = next((what for what, number in numbers.items() if number % ALIGNED), "")
    return f"{numbers[wrong]} {wrong} are no multiple of {ALIGNED}" if wrong else ""


def _of_cost(candidate: Candidate, pace: Pace, supports: Supports) -> str:
    saves, costs = candidate.saved(pace)
    return "" if saves > costs else f"it would save {1e6 * saves:.1f} us, and quantizing take {1e6 * costs:.1f}"


def _of_library(candidate: Candidate, pace: Pace, supports: Supports) -> str:
    return "" if supports(candidate.product) else "the library has no algorithm for it"


#: asked in this order: why a product stays as it is, "" where a rule has nothing against it
RULES: tuple[Rule, ...] = (_of_form, _of_alignment, _of_cost, _of_library)


def refusal(candidate: Candidate, pace: Pace, supports: Supports) -> str:
    """Why a product stays in 16 bits; "" where it takes 8."""
    return next((why for rule in RULES if (why := rule(candidate, pace, supports))), "")
