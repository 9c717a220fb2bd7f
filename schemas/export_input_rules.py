# TensorFlow, which this script asks, has no types.
# pyright: basic
"""Make op_input_rules.txt.xz: what TensorFlow's shape functions ask of the shapes of each op's inputs.

    python -m schemas.export_input_rules

Nodes of every op are added to a graph with inputs of which only one thing is known: a rank, a size along one axis, or
two shapes that differ. Whatever is refused with each choice of attributes that is tried is a rule. A line an op:

    Op name:pattern ... @same:a,b @dims:a.0=b.1 @typed:a=attribute @scalar:a @least:a=0 @int32:attribute

A pattern is a rank and sizes ("[]", "[?,2]"), or the ranks that may be ("<=1", ">=2", "1|2"). `@same` are inputs that
have one shape ("*a": what the variable holds whose handle a is), `@dims` sizes that are equal, `@typed` handles of
variables of the type that an attribute says; `@scalar` are constants that must be scalars, `@least` how small their
elements may be, `@int32` attributes that are read as int32. Rules that depend on attributes are shape functions'
(toolkit/graph/shapes). Which graphs are refused is a fact; no text of TensorFlow is copied.
"""

from __future__ import annotations

import itertools
import lzma
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from schemas.op_def_pb2 import OpList

TARGET = Path(__file__).with_name("op_input_rules.txt.xz")
#: ranks that are tried; whoever takes the last takes all that are larger
RANKS = range(8)
#: sizes that are tried
SIZES = range(9)
#: choices of attributes of one op
_CHOICES = 24
#: an op whose inputs are broadcast to each other before their rank is looked at
_BROADCAST = "SoftmaxCrossEntropyWithLogits"
#: int32 and int64
_INTEGERS = (3, 9)
#: lists of integers, until one is accepted
_LISTS = ([1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1], [1], [], [0, 0, 0, 0, 0, 0, 0, 0])


class Probe:
    """One op: its arguments, the choices of attributes that it accepts, and questions about shapes."""

    def __init__(self, tf: Any, definition: Any):
        self._tf = tf
        self._definition = definition
        self._graph = tf.Graph()
        self._made: dict[Any, Any] = {}
        self.said = ""
        self.choices = [attrs for attrs in itertools.islice(self._attributes(), 200) if self.accepts(attrs, {})]
        del self.choices[_CHOICES:]

    @property
    def args(self) -> list[Any]:
        return list(self._definition.input_arg)

    # -- asking ------------------------------------------------------------------------------------------

    def accepts(self, attrs: dict[str, Any], shapes: dict[str, Any], held: Any = None) -> bool:
        """Whether a node with these attributes may have inputs of these shapes; others are unknown.

        Args:
            shapes: by argument; all tensors of it have that shape; for a "*name" what the variable behind it has; for
                a "=name" the value of a constant, where it is of numbers.
            held: the type of variables, where it is another than the attribute says.
        """
        with self._graph.as_default():
            inputs = [
                self._input(arg, dtype, attrs, shapes, held) for arg in self.args for dtype in self._types(arg, attrs)
            ]
            try:
                self._add(self._definition.name, inputs, attrs)
            except Exception as error:
                self.said = str(error)
                return False
        return True

    def _add(self, op: str, inputs: list[Any], attrs: dict[str, Any], types: Any = None) -> Any:
        return self._graph._create_op_internal(
            op, inputs, types, input_types=[i.dtype for i in inputs], attrs=_protos(self._tf, attrs),
            compute_device=False, name="n",
        )  # fmt: skip

    def _input(self, arg: Any, dtype: Any, attrs: Any, shapes: Any, held: Any) -> Any:
        tf, handle = self._tf, f"*{arg.name}"
        if f"={arg.name}" in shapes and (dtype.is_integer or dtype.is_floating) and not dtype.is_quantized:
            return tf.compat.v1.constant(shapes[f"={arg.name}"], dtype)
        if handle in shapes:
            op, kind, out = "VarHandleOp", held or tf.as_dtype(attrs[self.type_attr]), tf.resource
        else:
            op, kind, out = ("VariableV2", dtype, dtype._as_ref) if arg.is_ref else ("Placeholder", dtype, dtype)
        shape = shapes[handle] if handle in shapes else shapes.get(arg.name)
        key = (op, kind, None if shape is None else tuple(shape))
        if key not in self._made:
            self._made[key] = self._add(op, [], {"dtype": kind, "shape": tf.TensorShape(shape)}, [out]).outputs[0]
        return self._made[key]

    @property
    def type_attr(self) -> str | None:
        """The attribute that says of what type a variable is."""
        names = {attr.name for attr in self._definition.attr if attr.type == "type"}
        return next((name for name in ("dtype", "T") if name in names), None)

    def handles(self) -> list[str]:
        if self.type_attr is None:
            return []
        return [arg.name for arg in self.args if arg.type == self._tf.resource.as_datatype_enum and not arg.number_attr]

    def _types(self, arg: Any, attrs: dict[str, Any]) -> list[Any]:
        if arg.type_list_attr:
            return list(attrs[arg.type_list_attr])
        dtype = self._tf.as_dtype(arg.type) if arg.type else attrs[arg.type_attr]
        return [dtype] * (attrs[arg.number_attr] if arg.number_attr else 1)

    # -- attributes --------------------------------------------------------------------------------------

    def _attributes(self) -> Iterator[dict[str, Any]]:
        """The first of everything, then with one attribute changed, then with two lists changed."""
        values = {attr.name: self._values(attr) for attr in self._definition.attr}
        first = {name: found[0] for name, found in values.items()}
        lists = [attr.name for attr in self._definition.attr if attr.type == "list(int)" and len(values[attr.name]) > 1]
        for size in _LISTS if lists else ((),):
            base = first | {name: size for name in lists if self._required(name)}
            yield base
            for name, found in values.items():
                for value in found[1:]:
                    yield base | {name: value}

    def _required(self, name: str) -> bool:
        return any(attr.name == name and not attr.HasField("default_value") for attr in self._definition.attr)

    def _values(self, attr: Any) -> list[Any]:
        tf = self._tf
        allowed = attr.allowed_values.list
        default = attr.default_value if attr.HasField("default_value") else None
        match attr.type:
            case "type":
                types = [tf.as_dtype(t) for t in allowed.type] or [tf.float32, tf.int32, tf.int64, tf.string]
                first = [tf.as_dtype(default.type)] if default is not None else []
                return first + [t for t in types if t not in first][:5]
            case "int":
                least = attr.minimum if attr.has_minimum else -1
                first = [default.i] if default is not None else []
                return first + [n for n in (max(least, 2), max(least, 1), 3, max(least, 0), least) if [n] != first]
            case "bool":
                return [False, True]
            case "float":
                return [default.f if default is not None else 0.5]
            case "string":
                first = [default.s] if default is not None else []
                return first + [text for text in list(allowed.s) or [b"", b"NHWC", b"NCHW", b"SAME"] if [text] != first]
            case "shape":
                return [tf.TensorShape(None), tf.TensorShape([2])]
            case "func":
                return [b"f"]
            case "list(type)":
                types = [tf.as_dtype(t) for t in allowed.type] or [tf.float32]
                first = [[tf.as_dtype(t) for t in default.list.type]] if default is not None else []
                return [*first, [types[0]], [types[0]] * 2, [types[-1]] * 2]
            case "list(shape)":
                first = [[tf.TensorShape(None)], [tf.TensorShape([])], [tf.TensorShape(None)] * 2]
                return ([[]] if not attr.minimum else []) + first
            case "list(int)":
                return ([list(default.list.i)] if default is not None else []) + list(_LISTS)
            case "list(float)":
                return [list(default.list.f) if default is not None else [0.5]]
            case "list(bool)":
                return [list(default.list.b) if default is not None else [True]]
            case "list(string)":
                return [list(default.list.s) if default is not None else [b"a"], [b"a"] * 2]
            case _:
                return [None]

    # -- rules -------------------------------------------------------------------------------------------

    def rules(self) -> list[str]:
        """The fields of the op's line."""
        if not self.choices:
            return []
        if all(attrs.get("axis") == -1 for attrs in self.choices):  # what another axis asks for was not seen
            return self._int32()
        ranks = {arg.name: self._ranks(arg.name) for arg in self.args}
        exact = {name: next(iter(found)) for name, found in ranks.items() if len(found) == 1}
        sized = {name: self._sized(name, rank) for name, rank in exact.items()}
        fields = [
            f"{name}:{sized[name] if name in exact else _pattern(found)}"
            for name, found in ranks.items()
            if found and len(found) < len(RANKS)
        ]
        ranks |= {f"*{name}": set(RANKS) for name in self.handles()}
        handles = (self._tf.resource.as_datatype_enum, self._tf.variant.as_datatype_enum)
        single = [
            arg.name for arg in self.args if not arg.type_list_attr and not arg.number_attr and arg.type not in handles
        ]
        single += [f"*{name}" for name in self.handles()]
        if any(attr.type == "list(int)" for attr in self._definition.attr):
            single = []  # strides and windows, which are 1 here, say how sizes belong together
        fields += self._typed()
        fields += self._values_known(ranks)
        fields += self._int32()
        free = [name for name in single if name not in exact and len(ranks[name]) > 1]
        groups: list[list[str]] = []
        for name in free:
            group = next((group for group in groups if self._same(group[0], name, ranks)), None)
            if group is None:
                groups.append([name])
            else:
                group.append(name)
        fields += ["@same:" + ",".join(group) for group in groups if len(group) > 1]
        axes = [
            (name, axis)
            for name, rank in exact.items()
            if name in single
            for axis, size in enumerate(sized[name].strip("[]").split(",") if rank else ())
            if size == "?"
        ]
        joined: list[list[tuple[str, int]]] = []
        for place in axes:
            group = next((group for group in joined if self._equal(group[0], place, exact)), None)
            if group is None:
                joined.append([place])
            else:
                group.append(place)
        fields += ["@dims:" + "=".join(f"{n}.{a}" for n, a in group) for group in joined if len(group) > 1]
        return fields

    def _ranks(self, name: str) -> set[int]:
        found: set[int] = set()
        for attrs in self.choices:
            found |= {r for r in RANKS if r not in found and self.accepts(attrs, {name: [None] * r})}
            if 0 not in found and self._accepts_constant(attrs, name):  # a scalar may be good for what is known of it
                found.add(0)
            if len(found) == len(RANKS):
                break
        return found

    def _accepts_constant(self, attrs: dict[str, Any], name: str) -> bool:
        (arg,) = (arg for arg in self.args if arg.name == name)
        integers = all(t in (self._tf.int32, self._tf.int64) for t in self._types(arg, attrs)) and not arg.is_ref
        return integers and any(self.accepts(attrs, {f"={name}": value}) for value in (-1, 1))

    def _sized(self, name: str, rank: int) -> str:
        sizes = ["?"] * rank
        for axis in range(rank):
            found: set[int] = set()
            for attrs in self.choices:
                found |= {n for n in SIZES if n not in found and self.accepts(attrs, {name: _at(rank, axis, n)})}
                if len(found) > 1:
                    break
            if len(found) == 1:
                sizes[axis] = str(next(iter(found)))
        return f"[{','.join(sizes)}]"

    def _same(self, a: str, b: str, ranks: dict[str, set[int]]) -> bool:
        """Whether two arguments must have one shape."""
        if a == b[1:]:
            return False
        common = sorted(ranks[a] & ranks[b])
        rank = next((r for r in common if r), None)
        if rank is None:
            return False
        two = [2] * rank
        other = [([2] * i + [n] + [2] * (rank - i - 1)) for i in range(rank) for n in (3, 1, 0)]
        pairs = [pair for shape in other for pair in ((two, shape), (shape, two))]
        if rank + 1 in common:
            pairs += [([None] * rank, [None] * (rank + 1)), ([None] * (rank + 1), [None] * rank)]
        if 0 in common:
            pairs += [([], two), (two, [])]
        if not any(self.accepts(attrs, {a: two, b: two}) for attrs in self.choices):
            return False
        return not any(self.accepts(attrs, {a: x, b: y}) for x, y in pairs for attrs in self.choices)

    def _equal(self, a: tuple[str, int], b: tuple[str, int], exact: dict[str, int]) -> bool:
        """Whether two sizes must be equal."""

        def shapes(n: int, m: int) -> dict[str, Any]:
            out = {a[0]: _at(exact[a[0]], a[1], n)}
            out[b[0]] = _at(exact[b[0]], b[1], m) if b[0] != a[0] else out[a[0]]
            if b[0] == a[0]:
                out[b[0]][b[1]] = m
            return out

        fits = [
            attrs for attrs in self.choices if self.accepts(attrs, shapes(2, 2)) or self.accepts(attrs, shapes(4, 4))
        ]
        pairs = ((2, 3), (3, 2), (1, 2), (2, 1), (4, 2), (0, 3), (3, 0), (4, 6), (6, 4))
        return bool(fits) and not any(self.accepts(attrs, shapes(n, m)) for n, m in pairs for attrs in self.choices)

    def _values_known(self, ranks: dict[str, set[int]]) -> list[str]:
        """Integers whose value is looked at: those that must be scalars then, and how small they may be."""
        out: list[str] = []
        for arg in self.args:
            if arg.is_ref or arg.type_list_attr or not ranks[arg.name] & {0, 1}:
                continue
            fits = [a for a in self.choices if all(t in (self._tf.int32, self._tf.int64) for t in self._types(arg, a))]
            key = f"={arg.name}"
            if 1 in ranks[arg.name]:
                every = [f"={other.name}" for other in self.args if other.type_attr or other.type in _INTEGERS]
                several = [
                    form
                    for form in ([1], [1] * 2, [[1]])
                    if self._any(fits, key, form)
                    or any(self.accepts(attrs, dict.fromkeys(every, form)) for attrs in fits)
                ]
                if not several and self._any(fits, key, 1):
                    out.append(f"@scalar:{arg.name}")
            least = 2
            for value in (1, 0, -1, -2):
                forms = [form for form in (value, [value], [value] * 2) if self._any(fits, key, form)]
                if not forms:
                    break
                least = value
            if least != -2 and (least < 2 or self._any(fits, key, 2) or self._any(fits, key, [2])):
                out.append(f"@least:{arg.name}={least}")
        return out

    def _any(self, choices: list[dict[str, Any]], key: str, value: Any) -> bool:
        return any(self.accepts(attrs, {key: value}) for attrs in choices)

    def _int32(self) -> list[str]:
        """Attributes whose numbers are read as int32."""
        out: list[str] = []
        for attr in self._definition.attr:
            if attr.type not in ("int", "list(int)") or any(attr.name == arg.number_attr for arg in self.args):
                continue
            for attrs in self.choices:
                many = 1 << 40
                value = [*attrs[attr.name][:-1], many] if attr.type == "list(int)" else many
                if not self.accepts(attrs | {attr.name: value}, {}) and "out of range for an int32" in self.said:
                    out.append(f"@int32:{attr.name}")
                    break
        return out

    def _typed(self) -> list[str]:
        """Handles of variables that must have the type that an attribute says."""
        out: list[str] = []
        for name in self.handles():
            key = f"*{name}"
            fits = [attrs for attrs in self.choices if self.accepts(attrs, {key: None})]
            if fits and not any(self.accepts(attrs, {key: None}, self._tf.quint16) for attrs in fits):
                out.append(f"@typed:{name}={self.type_attr}")
        return out


def _at(rank: int, axis: int, size: int) -> list[int | None]:
    return [size if i == axis else None for i in range(rank)]


def _pattern(ranks: set[int]) -> str:
    """The ranks that may be."""
    low, high = min(ranks), max(ranks)
    if ranks == set(range(low, high + 1)):
        if high == RANKS[-1]:
            return f">={low}"
        if low == 0:
            return f"<={high}"
    return "|".join(map(str, sorted(ranks)))


def _protos(tf: Any, attrs: dict[str, Any]) -> dict[str, Any]:
    """Attributes as messages."""
    out: dict[str, Any] = {}
    for name, value in attrs.items():
        proto = tf.compat.v1.AttrValue()
        several = isinstance(value, list)
        target = proto.list if several else proto
        proto.list.SetInParent() if several else None
        for one in value if several else [value]:
            kind, item = _one(tf, name, one)
            if several:
                getattr(target, kind).append(item)
            elif kind in ("shape", "tensor", "func"):
                getattr(target, kind).CopyFrom(item)
            else:
                setattr(target, kind, item)
        out[name] = proto
    return out


def _one(tf: Any, name: str, value: Any) -> tuple[str, Any]:
    if isinstance(value, bool):
        return "b", value
    if isinstance(value, int):
        return "i", value
    if isinstance(value, float):
        return "f", value
    if isinstance(value, tf.DType):
        return "type", value.as_datatype_enum
    if isinstance(value, tf.TensorShape):
        return "shape", value.as_proto()
    if value is None:
        return "tensor", tf.make_tensor_proto([1.0])
    if value == b"f":
        return "func", tf.compat.v1.NameAttrList(name="f")
    return "s", value


def _in_child(tf: Any, definition: Any) -> str:
    """The rules of an op; what ends the process has none, nor has what takes a minute (forked threads may wait).

    Raises:
        RuntimeError: this script failed, not the op.
    """
    read, write = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(60)
        try:
            os.write(write, " ".join(Probe(tf, definition).rules()).encode())
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        line = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise RuntimeError(f"the rules of {definition.name} were not found")
    return line


def _names() -> list[str]:
    """The ops of the registry, sorted."""
    packed = TARGET.with_name("ops.pb.xz").read_bytes()
    return sorted(op.name for op in OpList.FromString(lzma.decompress(packed)).op)


#: ops whose attributes say what their inputs must look like: what one node keeps another may break
_BY_ATTRIBUTE = frozenset({"EnsureShape"})


def main() -> None:
    """Ask about every op and write the table."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    from tensorflow.python.framework import op_def_registry

    lines: list[str] = []
    for op in sys.argv[1:] or _names():
        definition = op_def_registry.get(op)
        if definition is None or op.startswith("_") or op == _BROADCAST:  # "_": made by runtimes, not in files
            continue
        if op in _BY_ATTRIBUTE:
            continue
        fields = _in_child(tf, definition)
        if fields:
            lines.append(f"{op} {fields}")
            if len(sys.argv) > 1:
                print(lines[-1], flush=True)
    if len(sys.argv) == 1:
        TARGET.write_bytes(lzma.compress(("\n".join(lines) + "\n").encode(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main()
