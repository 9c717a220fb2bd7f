"""Shapes that may be partly or wholly unknown (TensorShapeProto)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from toolkit.errors import GraphmillError

Dim = int | None

#: the most dimensions and the largest size of one that TensorFlow's shapes have
MAX_RANK = 254
MAX_SIZE = 2**63 - 1


class Shape:
    """A tensor shape: `dims` is a tuple with None for an unknown size, or None for an unknown rank.

    Immutable and hashable.

    Raises:
        GraphmillError: there are more than `MAX_RANK` dimensions, or one is larger than `MAX_SIZE`.
    """

    __slots__ = ("dims",)

    def __init__(self, dims: Iterable[Dim] | None):
        self.dims: tuple[Dim, ...] | None
        if dims is None:
            object.__setattr__(self, "dims", None)
        else:
            sizes = tuple(None if d is None or d < 0 else int(d) for d in dims)
            if len(sizes) > MAX_RANK:
                raise GraphmillError(f"a shape of {len(sizes)} dimensions; a tensor has at most {MAX_RANK}")
            for d in sizes:
                if d is not None and d > MAX_SIZE:
                    raise GraphmillError(f"a size of {d}; a tensor has at most 2^63-1 along an axis")
            object.__setattr__(self, "dims", sizes)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Shape does not change")

    @property
    def rank(self) -> int | None:
        return None if self.dims is None else len(self.dims)

    @property
    def is_fully_defined(self) -> bool:
        return self.dims is not None and None not in self.dims

    @property
    def num_elements(self) -> int | None:
        """The product of the sizes, or None when a size is unknown."""
        if self.dims is None:
            return None
        product = 1
        for d in self.dims:
            if d is None:
                return None
            product *= d
        return product

    def as_list(self) -> list[int]:
        """The sizes as ints.

        Raises:
            GraphmillError: a size is unknown.
        """
        if self.dims is None:
            raise GraphmillError("the shape is unknown; a fully defined one is needed")
        known = [d for d in self.dims if d is not None]
        if len(known) != len(self.dims):
            raise GraphmillError(f"the shape {self} has unknown sizes; a fully defined one is needed")
        return known

    def with_rank(self, rank: int) -> Shape:
        """This shape, refined to `rank` dimensions.

        Raises:
            GraphmillError: the rank is known and another.
        """
        if self.dims is None:
            return of_rank(rank)
        if len(self.dims) != rank:
            raise GraphmillError(f"shape {self} must have rank {rank}")
        return self

    def is_compatible_with(self, other: Shape) -> bool:
        if self.dims is None or other.dims is None:
            return True
        return len(self.dims) == len(other.dims) and all(
            a is None or b is None or a == b for a, b in zip(self.dims, other.dims, strict=True)
        )

    def merge(self, other: Shape) -> Shape:
        """What both know together.

        Raises:
            GraphmillError: the two contradict each other.
        """
        if self.dims is None:
            return other
        if other.dims is None:
            return self
        if not self.is_compatible_with(other):
            raise GraphmillError(f"shapes {self} and {other} do not fit together")
        return Shape([b if a is None else a for a, b in zip(self.dims, other.dims, strict=True)])

    def most_specific_common(self, other: Shape) -> Shape:
        """The narrowest shape that both are instances of."""
        if self.dims is None or other.dims is None or len(self.dims) != len(other.dims):
            return UNKNOWN
        return Shape([a if a == b else None for a, b in zip(self.dims, other.dims, strict=True)])

    def concatenate(self, other: Shape) -> Shape:
        if self.dims is None or other.dims is None:
            return UNKNOWN
        return Shape(self.dims + other.dims)

    def __len__(self) -> int:
        if self.dims is None:
            raise GraphmillError("the rank of the shape is unknown")
        return len(self.dims)

    def __iter__(self) -> Iterator[Dim]:
        if self.dims is None:
            raise GraphmillError("the rank of the shape is unknown")
        return iter(self.dims)

    def __getitem__(self, index: int) -> Dim:
        """The size of one dimension; None when it or the rank is unknown.

        Raises:
            GraphmillError: the shape has no such dimension.
        """
        try:
            return None if self.dims is None else self.dims[index]
        except IndexError:
            raise GraphmillError(f"shape {self} has no dimension {index}") from None

    def slice(self, start: int | None, stop: int | None = None) -> Shape:
        """The dimensions start:stop, or an unknown shape when the rank is unknown."""
        return UNKNOWN if self.dims is None else Shape(self.dims[start:stop])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shape) and self.dims == other.dims

    def __hash__(self) -> int:
        return hash(self.dims)

    def __str__(self) -> str:
        if self.dims is None:
            return "<unknown>"
        return "[" + ",".join("?" if d is None else str(d) for d in self.dims) + "]"

    def __repr__(self) -> str:
        return f"Shape({None if self.dims is None else list(self.dims)})"


UNKNOWN = Shape(None)
SCALAR = Shape(())


def of_rank(rank: int) -> Shape:
    """A shape of which only the number of dimensions is known.

    Raises:
        GraphmillError: no tensor has that many.
    """
    if not 0 <= rank <= MAX_RANK:
        raise GraphmillError(f"a rank of {rank}; a tensor has 0 to {MAX_RANK} dimensions")
    return Shape([None] * rank)


def broadcast(a: Shape, b: Shape) -> Shape:
    """The static result of numpy broadcasting.

    Raises:
        GraphmillError: two known sizes differ and neither is 1.
    """
    if a.dims is None or b.dims is None:
        return UNKNOWN
    rank = max(len(a.dims), len(b.dims))
    left: Sequence[Dim] = (1,) * (rank - len(a.dims)) + a.dims
    right: Sequence[Dim] = (1,) * (rank - len(b.dims)) + b.dims
    out: list[Dim] = []
    for x, y in zip(left, right, strict=True):
        if x == 1:
            out.append(y)
        elif y == 1 or x == y:
            out.append(x)
        elif x is None:
            out.append(y)
        elif y is None:
            out.append(x)
        else:
            raise GraphmillError(f"shapes {a} and {b} cannot be broadcast together")
    return Shape(out)
