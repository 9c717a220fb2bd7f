"""TensorShape and Dimension: static shapes as TensorFlow 1's programs see them.

The client itself works with `toolkit.graph.shape.Shape`, which a TensorShape holds as `plain`. Sizes are Dimension
objects here, which may be unknown, and comparisons with an unknown size have no answer (None), as in TensorFlow 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from schemas.tensor_shape_pb2 import TensorShapeProto
from toolkit.graph.shape import Shape


class Dimension:
    """One size: `value` is an int, or None where it is unknown."""

    __slots__ = ("_value",)

    def __init__(self, value: Any):
        if value is None:
            self._value = None
        elif isinstance(value, Dimension):
            self._value = value.value
        else:
            if not hasattr(value, "__index__"):
                raise TypeError(f"a Dimension is an integer or None, not {value!r}")
            number = int(value.__index__())
            if number < 0:
                raise ValueError(f"a Dimension is not negative, unlike {number}")
            self._value = number

    @property
    def value(self) -> int | None:
        return self._value

    def __repr__(self) -> str:
        return f"Dimension({self._value!r})"

    def __str__(self) -> str:
        return "?" if self._value is None else str(self._value)

    def __hash__(self) -> int:
        return hash(self._value)

    def __int__(self) -> Any:
        return self._value

    def __index__(self) -> Any:
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> Any:
        return _compared(self, other, lambda a, b: a == b)

    def __ne__(self, other: object) -> Any:
        return _compared(self, other, lambda a, b: a != b)

    def __lt__(self, other: Any) -> Any:
        return _compared(self, other, lambda a, b: a < b)

    def __le__(self, other: Any) -> Any:
        return _compared(self, other, lambda a, b: a <= b)

    def __gt__(self, other: Any) -> Any:
        return _compared(self, other, lambda a, b: a > b)

    def __ge__(self, other: Any) -> Any:
        return _compared(self, other, lambda a, b: a >= b)

    def __add__(self, other: Any) -> Dimension:
        return _combined(self, other, lambda a, b: a + b)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Dimension:
        return _combined(self, other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Dimension:
        return _combined(self, other, lambda a, b: b - a)

    def __mul__(self, other: Any) -> Dimension:
        return _combined(self, other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Dimension:
        return _combined(self, other, lambda a, b: a // b)

    def __rfloordiv__(self, other: Any) -> Dimension:
        return _combined(self, other, lambda a, b: b // a)

    def __div__(self, other: Any) -> Dimension:
        return self // other

    def __rdiv__(self, other: Any) -> Dimension:
        return other // self

    def __truediv__(self, other: Any) -> Any:
        raise TypeError(f"a Dimension is not divided by / (here with {type(other).__name__}); write //")

    def __rtruediv__(self, other: Any) -> Any:
        raise TypeError(f"a Dimension is not divided by / (here with {type(other).__name__}); write //")

    def __mod__(self, other: Any) -> Dimension:
        return _combined(self, other, lambda a, b: a % b)

    def __rmod__(self, other: Any) -> Dimension:
        return _combined(self, other, lambda a, b: b % a)

    def is_compatible_with(self, other: Any) -> bool:
        """Whether both may be the same size."""
        theirs = as_dimension(other).value
        return self._value is None or theirs is None or self._value == theirs

    def assert_is_compatible_with(self, other: Any) -> None:
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {other} are not compatible")

    def merge_with(self, other: Any) -> Dimension:
        """What both say together."""
        self.assert_is_compatible_with(other)
        return Dimension(as_dimension(other).value if self._value is None else self._value)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Dimension, (self._value,))


def as_dimension(value: Any) -> Dimension:
    """A size as a Dimension."""
    return value if isinstance(value, Dimension) else Dimension(value)


def _other(value: Any) -> tuple[bool, int | None]:
    """Whether a value can be a size, and which."""
    if value is None:
        return True, None
    if isinstance(value, Dimension):
        return True, value.value
    return (True, int(value)) if hasattr(value, "__index__") else (False, None)


def _compared(left: Dimension, right: object, compare: Callable[[int, int], bool]) -> Any:
    fits, theirs = _other(right)
    if not fits:
        return NotImplemented
    return None if left.value is None or theirs is None else compare(left.value, theirs)


def _combined(left: Dimension, right: object, combine: Callable[[int, int], int]) -> Any:
    fits, theirs = _other(right)
    if not fits:
        return NotImplemented
    return Dimension(None if left.value is None or theirs is None else combine(left.value, theirs))


class TensorShape:
    """A static shape: of unknown rank, or a Dimension for each axis.

    Args:
        dims: None, a TensorShape, a TensorShapeProto, one size, or sizes (None for unknown ones).

    Attributes:
        plain: the same as the client's `Shape`.
    """

    __slots__ = ("plain",)
    __hash__ = None  # type: ignore[assignment]  # as in TensorFlow: unknown sizes are equal to nothing

    def __init__(self, dims: Any):
        self.plain = plain_shape(dims)

    @property
    def dims(self) -> list[Dimension] | None:
        return None if self.plain.dims is None else [Dimension(size) for size in self.plain.dims]

    _dims = dims  # programs read TensorFlow's private name, too

    @property
    def rank(self) -> int | None:
        return self.plain.rank

    @property
    def ndims(self) -> int | None:
        return self.plain.rank

    def as_list(self) -> list[int | None]:
        """The sizes, None where unknown.

        Raises:
            ValueError: the rank is unknown.
        """
        if self.plain.dims is None:
            raise ValueError("nothing is known of the shape, so it is no list")
        return list(self.plain.dims)

    def as_proto(self) -> TensorShapeProto:
        if self.plain.dims is None:
            return TensorShapeProto(unknown_rank=True)
        sizes = [TensorShapeProto.Dim(size=-1 if size is None else size) for size in self.plain.dims]
        return TensorShapeProto(dim=sizes)

    def num_elements(self) -> int | None:
        return self.plain.num_elements

    def is_fully_defined(self) -> bool:
        return self.plain.is_fully_defined

    def assert_is_fully_defined(self) -> None:
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def is_compatible_with(self, other: Any) -> bool:
        return self.plain.is_compatible_with(plain_shape(other))

    def assert_is_compatible_with(self, other: Any) -> None:
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {as_shape(other)} are incompatible")

    def is_subtype_of(self, other: Any) -> bool:
        """Whether every tensor of this shape has the other shape as well."""
        theirs = plain_shape(other).dims
        mine = self.plain.dims
        if theirs is None:
            return True
        if mine is None or len(mine) != len(theirs):
            return False
        return all(b is None or a == b for a, b in zip(mine, theirs, strict=True))

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        return TensorShape(self.plain.most_specific_common(plain_shape(other)))

    def most_specific_common_supertype(self, others: Any) -> TensorShape | None:
        found = self
        for other in others:
            found = found.most_specific_compatible_shape(other)
        return found

    def merge_with(self, other: Any) -> TensorShape:
        """What both say together.

        Raises:
            ValueError: they contradict each other.
        """
        theirs = plain_shape(other)
        if not self.plain.is_compatible_with(theirs):
            raise ValueError(f"Shapes {self} and {TensorShape(theirs)} are not compatible")
        return TensorShape(self.plain.merge(theirs))

    def concatenate(self, other: Any) -> TensorShape:
        return TensorShape(self.plain.concatenate(plain_shape(other)))

    def with_rank(self, rank: int) -> TensorShape:
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")
        return TensorShape(self.plain.with_rank(rank))

    def with_rank_at_least(self, rank: int) -> TensorShape:
        if self.rank is not None and self.rank < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        if self.rank is not None and self.rank > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def assert_has_rank(self, rank: int) -> None:
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")

    def assert_same_rank(self, other: Any) -> None:
        theirs = plain_shape(other).rank
        if self.rank is not None and theirs is not None and self.rank != theirs:
            raise ValueError(f"Shapes {self} and {as_shape(other)} must have the same rank")

    def __len__(self) -> int:
        if self.plain.dims is None:
            raise ValueError("the rank of the shape is not known, so it has no length")
        return len(self.plain.dims)

    def __bool__(self) -> bool:
        return self.plain.dims is not None

    def __iter__(self) -> Iterator[Dimension]:
        dims = self.dims
        if dims is None:
            raise ValueError("the rank of the shape is not known, so it has no dimensions to go over")
        return iter(dims)

    def __getitem__(self, key: Any) -> Any:
        dims = self.plain.dims
        if isinstance(key, slice):
            if dims is not None:
                return TensorShape(dims[key])
            part = cast("Any", key)
            start, stop = part.start or 0, part.stop
            if part.step is not None or stop is None or start < 0 or stop < 0:
                return TensorShape(None)
            return TensorShape([None] * max(stop - start, 0))
        return Dimension(None if dims is None else dims[key])

    def __eq__(self, other: object) -> bool:
        try:
            return self.plain == plain_shape(other)
        except (TypeError, ValueError):
            return NotImplemented

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return as_shape(other).concatenate(self)

    def __str__(self) -> str:
        dims = self.plain.dims
        if dims is None:
            return "<unknown>"
        shown = ["?" if size is None else str(size) for size in dims]
        return f"({shown[0]},)" if len(shown) == 1 else f"({', '.join(shown)})"

    def __repr__(self) -> str:
        dims = self.plain.dims
        return "TensorShape(None)" if dims is None else f"TensorShape({[Dimension(size) for size in dims]})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (TensorShape, (None if self.plain.dims is None else list(self.plain.dims),))


def as_shape(value: Any) -> TensorShape:
    """A shape as a TensorShape."""
    return value if isinstance(value, TensorShape) else TensorShape(value)


def plain_shape(value: Any) -> Shape:
    """The client's `Shape` from one, from a TensorShape, a TensorShapeProto, one size or several.

    Raises:
        TypeError: it is none of these.
    """
    if isinstance(value, Shape):
        return value
    if isinstance(value, TensorShape):
        return value.plain
    if value is None:
        return Shape(None)
    if isinstance(value, TensorShapeProto):
        return Shape(None if value.unknown_rank else [dim.size for dim in value.dim])
    if hasattr(value, "__index__"):
        return Shape([Dimension(value).value])
    if hasattr(value, "dim") and hasattr(value, "unknown_rank"):  # a message of another package, by its fields
        return Shape(None if value.unknown_rank else [dim.size for dim in value.dim])
    sizes: list[Any] = list(value)
    return Shape([None if size is None or _is_minus_one(size) else Dimension(size).value for size in sizes])


def _is_minus_one(size: Any) -> bool:
    return not isinstance(size, Dimension) and hasattr(size, "__index__") and int(size) == -1
