"""What is asked of the libraries: one configuration of a product or of a convolution, run on new memory each time.

A configuration is all that a plan is made for: sizes, types, attributes. Plans (descriptors, the algorithm that the
library's heuristics chose, its workspace) are made once for each and kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from toolkit.errors import InternalError
from toolkit.kernels.cuda.driver.base import Span, Stream


class LibraryError(InternalError):
    """A library's call that failed: the call, its status, and what it was asked."""


class Epilogue(NamedTuple):
    """What cuBLASLt does with a product before it is written (its name in a `Product` is a key of EPILOGUES).

    Attributes:
        code: cublasLtEpilogue_t.
        bias: "read" (a vector with a number for each column), "written" (the gradient of one), or "".
        auxiliary: "read", "written" or "": of relu a bit for each number, rows padded to 128 bits; of gelu its
            arguments.
    """

    code: int
    bias: str = ""
    auxiliary: str = ""


#: gelu is the approximation by tanh
EPILOGUES = {
    "": Epilogue(1),
    "bias": Epilogue(4, "read"),
    "relu": Epilogue(2),
    "relu bias": Epilogue(6, "read"),
    "gelu": Epilogue(32),
    "gelu bias": Epilogue(36, "read"),
    "relu keep": Epilogue(130, "", "written"),
    "relu keep bias": Epilogue(134, "read", "written"),
    "gelu keep": Epilogue(160, "", "written"),
    "gelu keep bias": Epilogue(164, "read", "written"),
    "relu gradient": Epilogue(136, "", "read"),
    "relu gradient bias": Epilogue(152, "written", "read"),
    "gelu gradient": Epilogue(192, "", "read"),
    "gelu gradient bias": Epilogue(208, "written", "read"),
    # cuBLASLt's operands are ours the other way round
    "sums of b": Epilogue(256, "written"),
    "sums of a": Epilogue(512, "written"),
}

#: the type of 8-bit factors
EIGHT_BITS = "float8_e4m3fn"
#: how an operand is stored: as it is, transposed, transposed and conjugated
TURNS = ("N", "T", "C")


@dataclass(frozen=True, slots=True)
class Product:
    """out = epilogue(alpha * op(a) @ op(b) + beta * added), of matrices in C order, for each of a batch.

    What is added lies as the result does; where none is given, it is what the result was.

    Attributes:
        m, n, k: op(a) is m x k, op(b) is k x n.
        dtype: NumPy's name: "float32", "float64", "float16", "bfloat16", "complex64", "complex128"; or
            "float8_e4m3fn", whose sums are multiplied by a factor of each operand, and whose bias is bfloat16. Floats
            of 16 and 8 bits are accumulated in float32.
        turn_a, turn_b: of TURNS.
        batch: how many products.
        stride_a, stride_b, stride_out: elements from one matrix to the next; 0 for the same one.
        epilogue: a key of EPILOGUES.
        tf32: float32 may be multiplied with 10 bits of mantissa on tensor cores.
        made: of the result, the bias and what is added, where that is another type than the factors': "float32" of
            16-bit floats, that or "bfloat16" of 8-bit ones.
        lead_a, lead_b, lead_out: elements from one stored row to the next; 0 where rows lie one behind the other.
        stride_bias: elements from the bias of one product to the next one's.
    """

    m: int
    n: int
    k: int
    dtype: str
    turn_a: str = "N"
    turn_b: str = "N"
    batch: int = 1
    stride_a: int = 0
    stride_b: int = 0
    stride_out: int = 0
    alpha: float = 1.0
    beta: float = 0.0
    epilogue: str = ""
    tf32: bool = False
    made: str = ""
    lead_a: int = 0
    lead_b: int = 0
    lead_out: int = 0
    stride_bias: int = 0

    @property
    def result(self) -> str:
        """NumPy's name of the result's type."""
        return self.made or self.dtype

    @property
    def bias(self) -> str:
        """NumPy's name of the bias's type."""
        return "bfloat16" if self.dtype == EIGHT_BITS else self.result

    @property
    def stored(self) -> tuple[tuple[int, int, int, int], ...]:
        """How a, b and the result are stored: rows, columns, elements to the next row, and to the next matrix."""
        a = (self.m, self.k) if self.turn_a == "N" else (self.k, self.m)
        b = (self.k, self.n) if self.turn_b == "N" else (self.n, self.k)
        return (
            (*a, self.lead_a or a[1], self.stride_a),
            (*b, self.lead_b or b[1], self.stride_b),
            (self.m, self.n, self.lead_out or self.n, self.stride_out),
        )

    @property
    def extents(self) -> tuple[int, int, int]:
        """Elements from the first to the last one of a, b and the result."""
        a, b, out = ((self.batch - 1) * step + (rows - 1) * lead + columns for rows, columns, lead, step in self.stored)
        return a, b, out


@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution or one of its gradients, over any number of spatial axes.

    Filters are stored as cuDNN has them, with the filter's number first: (F, kernel..., C / groups) where channels are
    last, (F, C / groups, kernel...) where they are first.

    Attributes:
        kind: "forward" (x, w to y), "input" (w, dy to dx) or "filter" (x, dy to dw).
        dtype: "float32", "float64", "float16" or "bfloat16"; accumulated in float32 or float64.
        batch, channels, filters, groups: groups divide channels and filters.
        sizes, kernel, out: of x, filter and y along the spatial axes.
        strides, dilations, pads: along them; pads as (before, after).
        channels_first: how x and y lie in memory.
        epilogue: of "forward", in this order: "bias", "add", and the name of an activation ("relu", "relu6", "swish",
            "elu", "sigmoid").
        tf32: as for products.
        deterministic: the same bits each time, for which some engines of gradients are passed over.
        made: as for products.
    """

    kind: str
    dtype: str
    batch: int
    channels: int
    filters: int
    groups: int
    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    out: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    channels_first: bool = False
    epilogue: tuple[str, ...] = ()
    tf32: bool = False
    deterministic: bool = False
    made: str = ""

    @property
    def result(self) -> str:
        """NumPy's name of the result's type."""
        return self.made or self.dtype

    @property
    def x_shape(self) -> tuple[int, ...]:
        return self._shape(self.batch, self.channels, self.sizes)

    @property
    def w_shape(self) -> tuple[int, ...]:
        return self._shape(self.filters, self.channels // self.groups, self.kernel)

    @property
    def y_shape(self) -> tuple[int, ...]:
        return self._shape(self.batch, self.filters, self.out)

    def _shape(self, first: int, channels: int, spatial: tuple[int, ...]) -> tuple[int, ...]:
        return (first, channels, *spatial) if self.channels_first else (first, *spatial, channels)


#: types whose products are added in float32, and which may be given as that
SIXTEEN_BITS = ("float16", "bfloat16")


def is_result(dtype: str, made: str) -> bool:
    """Whether the libraries give products of a type in another one; `made` may be "", for the same."""
    if dtype == EIGHT_BITS:
        return made in ("float32", "bfloat16")
    return made in ("", dtype) or (made == "float32" and dtype in SIXTEEN_BITS)


#: activations that a convolution's epilogue may end with; not tanh, for cuDNN's has 11 bits (measured: 1.4e-4 off)
ACTIVATIONS = ("relu", "relu6", "swish", "elu", "sigmoid")


class Blas(Protocol):
    """Matrix products."""

    @property
    def version(self) -> str: ...

    def supports(self, product: Product) -> bool:
        """Whether there is a plan for it; one is made."""
        ...

    def matmul(
        self,
        product: Product,
        a: Span,
        b: Span,
        out: Span,
        stream: Stream,
        *,
        bias: Span | None = None,
        auxiliary: Span | None = None,
        added: Span | None = None,
        factors: tuple[Span, Span] | None = None,
    ) -> None:
        """Put a product into a stream.

        Args:
            factors: of a and b, float32 [1] each, where these are 8-bit floats.

        Raises:
            LibraryError: there is no plan for it, or the library refuses it.
        """
        ...


class Dnn(Protocol):
    """Convolutions; and attention, whose calls have the types of `libraries.attention`."""

    @property
    def version(self) -> str: ...

    def supports(self, convolution: Convolution) -> bool:
        """Whether there is a plan for it; one is made."""
        ...

    def convolve(
        self,
        convolution: Convolution,
        first: Span,
        second: Span,
        out: Span,
        stream: Stream,
        *,
        bias: Span | None = None,
        added: Span | None = None,
    ) -> None:
        """Put a convolution into a stream.

        Args:
            first, second: x and w; w and dy of "input"; x and dy of "filter".
            bias: a number for each filter, of the result's type.
            added: of the shape and type of y.

        Raises:
            LibraryError: there is no plan for it, or the library refuses it.
        """
        ...

    def attends(self, attention: Any) -> bool:
        """Whether there is a plan for an `Attention` or an `AttentionGradient`; one is made."""
        ...

    def attend(
        self,
        attention: Any,
        q: Span,
        k: Span,
        v: Span,
        out: Span,
        stream: Stream,
        *,
        mask: Span | None = None,
        statistics: Span | None = None,
    ) -> None:
        """Put an attention into a stream.

        Raises:
            LibraryError: there is no plan for it, or the library refuses it.
        """
        ...

    def attend_back(
        self,
        gradient: Any,
        q: Span,
        k: Span,
        v: Span,
        out: Span,
        d_out: Span,
        statistics: Span,
        made: Sequence[Span],
        stream: Stream,
        *,
        mask: Span | None = None,
    ) -> None:
        """Put the gradients of an attention into a stream.

        Args:
            made: those by q, k and v, to be written.

        Raises:
            LibraryError: there is no plan for it, or the library refuses it.
        """
        ...


def check_product(product: Product, bias: Any, auxiliary: Any, factors: Any = None) -> None:
    """
    Raises:
        LibraryError: what is given is not what the epilogue, or the type, needs.
    """
    if (product.dtype == EIGHT_BITS) != (factors is not None):
        raise LibraryError(f"a product of {product.dtype} was given {'no ' if factors is None else ''}factors")
    epilogue = EPILOGUES.get(product.epilogue)
    if epilogue is None:
        raise LibraryError(f"{product.epilogue!r} is no epilogue of a product; expected one of {', '.join(EPILOGUES)}")
    for name, needs, value in (("bias", epilogue.bias, bias), ("auxiliary", epilogue.auxiliary, auxiliary)):
        if bool(needs) != (value is not None):
            raise LibraryError(
                f"a product with epilogue {product.epilogue!r} {'needs' if needs else 'takes no'} {name}"
            )
    if epilogue.bias == "written" and product.batch != 1:
        raise LibraryError(f"the gradient of a bias is made by a single product, not by a batch of {product.batch}")


def check_convolution(convolution: Convolution, bias: Any, added: Any) -> None:
    """
    Raises:
        LibraryError: what is given is not what the epilogue needs.
    """
    for name, value in (("bias", bias), ("add", added)):
        if (name in convolution.epilogue) != (value is not None):
            raise LibraryError(f"a convolution with epilogue {convolution.epilogue} was given {name} as {value!r}")
