"""How attributes of two matched nodes differ, constants with a tolerance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from schemas.tensor_pb2 import TensorProto
from toolkit.errors import GraphmillError, UsageError, about_option, did_you_mean
from toolkit.graph.attrs import FuncRef
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node

#: what can be left out of a comparison
IGNORABLE = ("names", "devices", "control", "versions", "shapes", "functions", "weights")
#: attributes that shapes are noted in
_SHAPE_ATTRS = frozenset({"_output_shapes"})
#: attributes without a meaning of their own
_REMARKS = frozenset({"_gradient_op_type", "_xla_inferred_shapes"})


@dataclass(frozen=True, slots=True)
class DiffOptions:
    """How to compare.

    Attributes:
        rtol, atol: constants and weights a (old) and b are equal when |a - b| <= atol + rtol * |a|.
        ignore: names of IGNORABLE.
    """

    rtol: float = 0.0
    atol: float = 0.0
    ignore: frozenset[str] = frozenset()

    @staticmethod
    def make(rtol: float, atol: float, ignore: Sequence[str]) -> DiffOptions:
        """Check what a user gave.

        Raises:
            UsageError: a tolerance is negative or no number; there is nothing of that name to ignore.
        """
        for name, value in (("--rtol", rtol), ("--atol", atol)):
            if not value >= 0:
                raise UsageError(f"{name} must not be negative; it is {value}")
        with about_option("--ignore"):
            for name in ignore:
                if name not in IGNORABLE:
                    raise UsageError(
                        f"there is no '{name}' to ignore"
                        + did_you_mean(name, IGNORABLE, then=f"known: {', '.join(IGNORABLE)}")
                    )
        return DiffOptions(rtol, atol, frozenset(ignore))


@dataclass(frozen=True, slots=True)
class Change:
    """One property that changed: "op", "device", "input 0", "control inputs", "attr.padding", ...; as text."""

    what: str
    old: str
    new: str

    def as_json(self) -> dict[str, str]:
        return {"what": self.what, "old": self.old, "new": self.new}


def attr_changes(
    old: Node, new: Node, matched: Mapping[Node, Node], options: DiffOptions, functions: Mapping[str, str]
) -> Iterator[Change]:
    """The attributes in which two matched nodes differ.

    Args:
        matched: old nodes to new ones; what names a renamed node follows it.
        functions: functions' old names to their new ones, likewise.
    """
    mine, theirs = old.kind, new.kind
    if mine is not None and theirs is not None and mine.attributes == theirs.attributes:
        return  # byte for byte the same, as of most nodes
    for key in sorted({*old.attrs, *new.attrs}):
        if key in _REMARKS or (key in _SHAPE_ATTRS and "shapes" in options.ignore):
            continue
        has_a, has_b = key in old.attrs, key in new.attrs
        if has_a and has_b and _bytes(old, key) == _bytes(new, key):
            continue
        a, b = _value(old, key), _value(new, key)
        if isinstance(a, TensorProto) and isinstance(b, TensorProto):
            text = _tensor_change(a, b, options)
            if text is not None:
                yield Change(f"attr.{key}", *text)
        elif not _same(key, a, b, old, new, matched, functions):
            yield Change(f"attr.{key}", show(a), show(b))


def _bytes(node: Node, key: str) -> bytes:
    return node.attrs.proto(key).SerializeToString(deterministic=True)


def _value(node: Node, key: str) -> Any:
    """The attribute, or the op's default where it is left out; None when there is neither.

    Files that are damaged differ in what they hold as well: what is of another kind than the op says is shown as it
    is, and what cannot be decoded as its bytes.
    """
    try:
        return node.attrs[key] if key in node.attrs else node.attr(key)
    except GraphmillError:
        return _bytes(node, key) if key in node.attrs else None


def _same(
    key: str, a: Any, b: Any, old: Node, new: Node, matched: Mapping[Node, Node], functions: Mapping[str, str]
) -> bool:
    lists = isinstance(a, list) and isinstance(b, list)
    if key == "_class" and lists:
        return sorted(_followed(value, old.graph, matched) for value in _items(a)) == sorted(_items(b))
    if key == "shared_name" and a in (old.name.encode(), b"") and b in (new.name.encode(), b""):
        return (a == b"") == (b == b"")
    if isinstance(a, FuncRef) and isinstance(b, FuncRef):
        return functions.get(a.name, a.name) == b.name and a.attrs == b.attrs
    if lists and _items(a) and isinstance(_items(a)[0], FuncRef):
        return [functions.get(f.name, f.name) for f in _items(a)] == [f.name for f in _items(b)]
    return bool(type(cast(object, a)) is type(cast(object, b)) and a == b)


def _items(value: Any) -> list[Any]:
    return cast("list[Any]", value)


def _followed(value: Any, graph: Graph, matched: Mapping[Node, Node]) -> Any:
    """A colocation, its node renamed as it was."""
    if isinstance(value, bytes) and value.startswith(b"loc:@"):
        node = graph.get(value[5:].decode(errors="replace"))
        if node is not None and node in matched:
            return b"loc:@" + matched[node].name.encode()
    return value


def _tensor_change(a: TensorProto, b: TensorProto, options: DiffOptions) -> tuple[str, str] | None:
    """What to say of two tensors, or None when they are equal within the tolerance."""
    import numpy as np

    from toolkit.formats.arrays.tensor import to_array

    try:
        x, y = to_array(a), to_array(b)
    except GraphmillError:
        return "a tensor", "a tensor that cannot be read"
    if x.dtype != y.dtype or x.shape != y.shape:
        return f"{x.dtype} {list(x.shape)}", f"{y.dtype} {list(y.shape)}"
    if x.size == 1 and x.dtype == object:
        return None if (x == y).all() else (show(x.item()), show(y.item()))
    if x.dtype == object:
        count = int(np.count_nonzero(x != y))
        return (f"{x.size:,} strings", f"{count:,} of them differ") if count else None
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):  # of what is infinite or NaN
        x, y = x.astype(wide), y.astype(wide)
        close = np.isclose(y, x, rtol=options.rtol, atol=options.atol, equal_nan=True)
        finite = np.abs(x - y)[np.isfinite(x) & np.isfinite(y)]
    count = int(x.size - np.count_nonzero(close))
    if not count:
        return None
    if x.size == 1:
        return show(x.item()), show(y.item())
    largest = f", by at most {finite.max():.3g}" if finite.size else ""
    return f"{x.size:,} values", f"{count:,} of them differ{largest}"


def show(value: Any) -> str:
    """An attribute's value for reading."""
    match value:
        case None:
            return "none"
        case bytes():
            text = value.decode(errors="backslashreplace")
            return text if len(text) <= 80 else text[:77] + "..."
        case FuncRef():
            return value.name
        case TensorProto():
            return "a tensor"
        case list():
            return "[" + ", ".join(map(show, _items(value))) + "]"
        case float():
            return f"{value:.9g}"
        case _:
            return str(value)
