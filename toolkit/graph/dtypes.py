"""Data types: TensorFlow's DataType enum as objects.

Importing this module does not import numpy; `DType.numpy` does, when first asked for.
Values and sizes: tensorflow/core/framework/types.proto.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from toolkit.errors import GraphmillError, did_you_mean

if TYPE_CHECKING:
    import numpy as np

_REF_OFFSET = 100


class DType:
    """One data type. Compare with `is` or `==`; there is one object per type.

    Attributes:
        enum: the number in the DataType enum.
        name: TensorFlow's Python name, e.g. "float32", "float32_ref".
        size: bytes per element in memory, 0 where elements have no fixed size.
    """

    __slots__ = ("enum", "is_quantized", "kind", "name", "size")

    def __init__(self, enum: int, name: str, size: int, kind: str):
        self.enum = enum
        self.name = name
        self.size = size
        self.kind = kind  # one of: f float, i signed, u unsigned, c complex, b bool, s string, r resource, v variant
        self.is_quantized = name.startswith(("qint", "quint"))

    @property
    def is_ref(self) -> bool:
        return self.enum > _REF_OFFSET

    @property
    def base(self) -> DType:
        return _BY_ENUM[self.enum - _REF_OFFSET] if self.is_ref else self

    @property
    def ref(self) -> DType:
        return self if self.is_ref else _BY_ENUM[self.enum + _REF_OFFSET]

    @property
    def is_floating(self) -> bool:
        return self.kind == "f"

    @property
    def is_complex(self) -> bool:
        return self.kind == "c"

    @property
    def is_integer(self) -> bool:
        """True for plain (not quantized) integers, as TensorFlow's DType.is_integer."""
        return self.kind in "iu" and not self.is_quantized

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy dtype that holds such a tensor in memory.

        Strings are object arrays of `bytes`; resource and variant are object arrays. Quantized types are the
        plain integers of their width (TensorFlow's kernels treat them so; the dtype travels in the graph).
        """
        return _numpy_dtype(self.enum % _REF_OFFSET)

    # -- what programs of TensorFlow ask a type for ----------------------------------------------------------------

    @property
    def base_dtype(self) -> DType:
        return self.base

    @property
    def as_datatype_enum(self) -> int:
        return self.enum

    @property
    def as_numpy_dtype(self) -> type[Any]:
        """The class of numpy's scalars; of strings and handles, object."""
        return object if self.kind in "srv" else self.numpy.type

    @property
    def real_dtype(self) -> DType:
        """The type of the parts of a complex number; the type itself where it is real."""
        parts = {"complex64": "float32", "complex128": "float64"}
        return _BY_NAME[parts[self.base.name]] if self.is_complex else self.base

    @property
    def is_bool(self) -> bool:
        return self.kind == "b"

    @property
    def is_unsigned(self) -> bool:
        return self.kind == "u" and not self.is_quantized

    @property
    def is_numpy_compatible(self) -> bool:
        return self.kind not in "rv"

    @property
    def min(self) -> Any:
        """The smallest number; of floats, the negative of the largest.

        Raises:
            TypeError: the type has no order, or is quantized.
        """
        return self._bounds()[0]

    @property
    def max(self) -> Any:
        """The largest number.

        Raises:
            TypeError: as `min`.
        """
        return self._bounds()[1]

    @property
    def limits(self) -> tuple[Any, Any]:
        """The least and the largest value that a picture of this type has: 0 and 1 for floats.

        Raises:
            ValueError: no picture has this type.
        """
        if self.name in ("float32", "float64") or self.is_bool:
            return (0, True) if self.is_bool else (0, 1)
        if not self.is_integer or self.size > 8:
            raise ValueError(f"no picture has values of type {self}, so there are no limits")
        return 0, self.max

    def _bounds(self) -> tuple[Any, Any]:
        if self.is_quantized or self.kind not in "iuf":
            raise TypeError(f"values of type {self} have no least and no largest")
        import ml_dtypes

        table: Any = ml_dtypes
        found = table.finfo(self.numpy) if self.is_floating else table.iinfo(self.numpy)
        return found.min, found.max

    def is_compatible_with(self, other: Any) -> bool:
        """Whether a value of the other type may be used for this one: they are the same, references aside."""
        other = other if isinstance(other, DType) else from_name(str(other))
        return self is other or self.base is other

    def __repr__(self) -> str:
        return f"<dtype {self.name}>"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return (from_enum, (self.enum,))


# enum, name, size, kind
_TABLE = (
    (1, "float32", 4, "f"), (2, "float64", 8, "f"), (3, "int32", 4, "i"), (4, "uint8", 1, "u"),
    (5, "int16", 2, "i"), (6, "int8", 1, "i"), (7, "string", 0, "s"), (8, "complex64", 8, "c"),
    (9, "int64", 8, "i"), (10, "bool", 1, "b"), (11, "qint8", 1, "i"), (12, "quint8", 1, "u"),
    (13, "qint32", 4, "i"), (14, "bfloat16", 2, "f"), (15, "qint16", 2, "i"), (16, "quint16", 2, "u"),
    (17, "uint16", 2, "u"), (18, "complex128", 16, "c"), (19, "float16", 2, "f"), (20, "resource", 0, "r"),
    (21, "variant", 0, "v"), (22, "uint32", 4, "u"), (23, "uint64", 8, "u"), (24, "float8_e5m2", 1, "f"),
    (25, "float8_e4m3fn", 1, "f"), (26, "float8_e4m3fnuz", 1, "f"), (27, "float8_e4m3b11fnuz", 1, "f"),
    (28, "float8_e5m2fnuz", 1, "f"), (29, "int4", 1, "i"), (30, "uint4", 1, "u"), (31, "int2", 1, "i"),
    (32, "uint2", 1, "u"), (33, "float4_e2m1fn", 1, "f"),
)  # fmt: skip

_BY_ENUM: dict[int, DType] = {}
_BY_NAME: dict[str, DType] = {}
for _enum, _name, _size, _kind in _TABLE:
    for _dtype in (
        DType(_enum, _name, _size, _kind),
        DType(_enum + _REF_OFFSET, _name + "_ref", _size, _kind),
    ):
        _BY_ENUM[_dtype.enum] = _BY_NAME[_dtype.name] = _dtype
# The names C++ and OpDefs print.
for _alias, _name in (("float", "float32"), ("double", "float64"), ("half", "float16")):
    _BY_NAME[_alias] = _BY_NAME[_name]
    _BY_NAME[_alias + "_ref"] = _BY_NAME[_name + "_ref"]

float32 = _BY_NAME["float32"]
float64 = _BY_NAME["float64"]
float16 = _BY_NAME["float16"]
bfloat16 = _BY_NAME["bfloat16"]
int8 = _BY_NAME["int8"]
int16 = _BY_NAME["int16"]
int32 = _BY_NAME["int32"]
int64 = _BY_NAME["int64"]
uint8 = _BY_NAME["uint8"]
uint16 = _BY_NAME["uint16"]
uint32 = _BY_NAME["uint32"]
uint64 = _BY_NAME["uint64"]
bool_ = _BY_NAME["bool"]
string = _BY_NAME["string"]
complex64 = _BY_NAME["complex64"]
complex128 = _BY_NAME["complex128"]
resource = _BY_NAME["resource"]
variant = _BY_NAME["variant"]
ALL: tuple[DType, ...] = tuple(_BY_ENUM[row[0]] for row in _TABLE)


def from_enum(enum: int) -> DType:
    """The type with this DataType number.

    Raises:
        GraphmillError: there is no such number.
    """
    try:
        return _BY_ENUM[enum]
    except KeyError:
        raise GraphmillError(f"{enum} is not a data type number (1-33, or 101-133 for references)") from None


def by_enum(enum: int) -> DType | None:
    """The type with this DataType number, or None."""
    return _BY_ENUM.get(enum)


def names() -> list[str]:
    """What `from_name` takes in lower case, references aside."""
    return [name for name in _BY_NAME if not name.endswith("_ref")]


def from_name(name: str) -> DType:
    """The type with this name: "float32", "float", "DT_FLOAT", "float32_ref".

    Raises:
        GraphmillError: there is no such type; close names are suggested.
    """
    plain = name.lower().removeprefix("dt_")
    try:
        return _BY_NAME[plain]
    except KeyError:
        raise GraphmillError(f"'{name}' is not a data type{did_you_mean(plain, _BY_NAME)}") from None


def from_numpy(dtype: Any) -> DType:
    """The type that a numpy dtype (or scalar type) is stored as.

    Raises:
        GraphmillError: the numpy dtype has no counterpart.
    """
    import numpy as np

    resolved = np.dtype(dtype)
    if resolved.kind in "OSU":
        return string
    try:
        return _BY_NAME[resolved.name]
    except KeyError:
        raise GraphmillError(f"numpy dtype '{resolved}' has no TensorFlow data type") from None


@functools.cache
def _numpy_dtype(enum: int) -> np.dtype[Any]:
    import numpy as np

    dtype = _BY_ENUM[enum]
    if dtype.kind in "srv":
        return np.dtype(object)
    if dtype.is_quantized:
        return np.dtype(dtype.name.removeprefix("q"))
    if dtype.name.startswith(("bfloat", "float8", "float4", "int4", "uint4", "int2", "uint2")):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, dtype.name))
    return np.dtype(dtype.name)
