"""OpDefs from short text: the notation of REGISTER_OP, so that what stands in a custom op's C++ can be copied.

    op_def("Clamped", ["x: T"], ["y: T"], ["T: {float, double} = DT_FLOAT", "limit: float = 1.0"])

| input or output | means |
|---|---|
| `x: float` | a tensor of this type |
| `x: T` | of the type in attribute T, or one tensor per type where T is a list(type) |
| `x: N * T` | N tensors of one type |
| `x: Ref(T)` | a reference variable |

| attribute | means |
|---|---|
| `T: {float, double}` | a type, one of these; `numbertype`, `realnumbertype`, `quantizedtype` are common sets |
| `mode: {'linear', 'cubic'} = 'linear'` | a string, one of these, with a default |
| `N: int >= 1`, `sizes: list(int) >= 2 = [1, 1]` | with a minimum (of the length, for lists) |
| `f: func`, `shape: shape = {unknown_rank: true}` | other kinds: string, int, float, bool, type, shape, tensor, func |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from google.protobuf import text_format

from schemas import op_def_pb2
from schemas.attr_value_pb2 import AttrValue
from toolkit.errors import GraphError, GraphmillError
from toolkit.graph import dtypes

_REAL = "float double int32 uint8 int16 int8 int64 bfloat16 uint16 half uint32 uint64"
_NUMBER = (
    "float double int32 uint8 int16 int8 complex64 int64 qint8 quint8 qint32 bfloat16 qint16 quint16 uint16 "
    "complex128 half uint32 uint64"
)
_TYPE_SETS = {"realnumbertype": _REAL, "numbertype": _NUMBER, "quantizedtype": "qint8 quint8 qint32 qint16 quint16"}
_KINDS = ("string", "int", "float", "bool", "type", "shape", "tensor", "func")
#: the field of AttrValue that holds each kind
_FIELDS: dict[str, str] = dict(zip(_KINDS, ("s", "i", "f", "b", "type", "shape", "tensor", "func"), strict=True))
_NAME = re.compile(r"\s*([A-Za-z][A-Za-z0-9_]*)\s*:\s*")
_OP_NAME = re.compile(r"([A-Za-z][A-Za-z0-9_.\-/]*>)*[A-Z_][A-Za-z0-9_]*\Z")
_STRING = re.compile(r"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*""")


def op_def(
    name: str,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    attrs: Sequence[str] = (),
    *,
    stateful: bool = False,
    commutative: bool = False,
    aggregate: bool = False,
    allows_uninitialized_input: bool = False,
) -> op_def_pb2.OpDef:
    """The OpDef that these texts mean.

    Args:
        name: in CamelCase; `Package>Name` for ops of a package.
        inputs, outputs, attrs: as the tables above say.

    Raises:
        GraphError: one of them cannot be read, is given twice, or names an attribute that does not exist.
    """
    if not _OP_NAME.match(name):
        raise GraphError(f"'{name}' is not an op name: letters, digits and _, the first a capital letter")
    proto = op_def_pb2.OpDef(
        name=name, is_stateful=stateful, is_commutative=commutative, is_aggregate=aggregate,
        allows_uninitialized_input=allows_uninitialized_input,
    )  # fmt: skip
    for text in attrs:
        _parse_with(text, f"attribute '{text}' of {name}", lambda rest, n: _attr(proto.attr.add(name=n), rest))
    kinds = {attr.name: attr.type for attr in proto.attr}
    for side, texts, field in (("input", inputs, proto.input_arg), ("output", outputs, proto.output_arg)):
        for text in texts:
            what = f"{side} '{text}' of {name}"
            _parse_with(text, what, lambda rest, n, field=field: _arg(field.add(name=n), rest, kinds))
    check(proto)
    return proto


def from_text(text: str) -> op_def_pb2.OpDef:
    """The OpDef in protobuf's text format.

    Raises:
        GraphError: the text cannot be read, or the OpDef contradicts itself.
    """
    proto = op_def_pb2.OpDef()
    try:
        text_format.Parse(text, proto)
    except text_format.ParseError as error:
        raise GraphError(f"not an OpDef in text format: {str(error).replace('graphmill.', '')}") from None
    if not _OP_NAME.match(proto.name):
        raise GraphError(f"'{proto.name}' is not an op name: letters, digits and _, the first a capital letter")
    check(proto)
    return proto


def check(proto: op_def_pb2.OpDef) -> None:
    """Refuse an OpDef whose parts do not fit together.

    Raises:
        GraphError: a name is given twice; an argument has no type, or names an attribute that does not exist.
    """
    for what, names in (
        ("inputs or attributes", [a.name for a in (*proto.input_arg, *proto.attr)]),
        ("outputs", [a.name for a in proto.output_arg]),
    ):
        twice = next((n for i, n in enumerate(names) if n in names[:i]), None)
        if twice is not None:
            raise GraphError(f"two {what} of {proto.name} are called '{twice}'")
    kinds = {attr.name: attr.type for attr in proto.attr}
    for arg in (*proto.input_arg, *proto.output_arg):
        if bool(arg.type) + bool(arg.type_attr) + bool(arg.type_list_attr) != 1:
            raise GraphError(f"'{arg.name}' of {proto.name} needs one of type, type_attr and type_list_attr")
        wanted = (arg.type_attr, "type"), (arg.number_attr, "int"), (arg.type_list_attr, "list(type)")
        for attr, kind in wanted:
            if attr and kinds.get(attr) != kind:
                found = f"is of kind {kinds[attr]}" if attr in kinds else "does not exist"
                raise GraphError(f"'{arg.name}' of {proto.name} needs the attribute '{attr}: {kind}', which {found}")


def _parse_with(text: str, what: str, parse: Callable[[str, str], None]) -> None:
    found = _NAME.match(text)
    if not found:
        raise GraphError(f"{what}: it must read 'name: type'")
    try:
        parse(text[found.end() :].strip(), found[1])
    except (GraphmillError, text_format.ParseError, ValueError) as error:
        raise GraphError(f"{what}: {error}") from None


# -- inputs and outputs -----------------------------------------------------------------------------------


def _arg(arg: op_def_pb2.OpDef.ArgDef, text: str, kinds: dict[str, str]) -> None:
    if text.startswith("Ref(") and text.endswith(")"):
        arg.is_ref = True
        text = text[4:-1].strip()
    count, star, rest = text.partition("*")
    if star:
        arg.number_attr, text = count.strip(), rest.strip()
    if kinds.get(text) == "list(type)":
        arg.type_list_attr = text
    elif text in kinds:
        arg.type_attr = text
    else:
        arg.type = dtypes.from_name(text).enum  # type: ignore[assignment]


# -- attributes -------------------------------------------------------------------------------------------


def _attr(attr: op_def_pb2.OpDef.AttrDef, text: str) -> None:
    is_list = text.startswith("list(")
    if is_list:
        end = _closing(text, 4)
        inner, rest = text[5:end].strip(), text[end + 1 :].strip()
        kind, leftover = _kind(attr, inner)
        if leftover:
            raise ValueError(f"'{leftover}' inside of list(...)")
        attr.type = f"list({kind})"
    else:
        kind, rest = _kind(attr, text)
        attr.type = kind
    if rest.startswith(">="):
        if not is_list and kind != "int":
            raise ValueError(f"a minimum is of an int or a list, not of a {kind}")
        number = re.match(r">=\s*(-?\d+)\s*", rest)
        if number is None:
            raise ValueError("'>=' must be followed by a number")
        attr.has_minimum, attr.minimum = True, int(number[1])
        rest = rest[number.end() :]
    if rest.startswith("="):
        _default(attr.default_value, kind, is_list, rest[1:].strip())
    elif rest:
        raise ValueError(f"'{rest}' is left over")


def _kind(attr: op_def_pb2.OpDef.AttrDef, text: str) -> tuple[str, str]:
    """The kind at the start of a text, its allowed values noted, and what comes after."""
    if text.startswith("{"):
        end = _closing(text, 0)
        items = _split(text[1:end])
        if items and items[0][:1] in ("'", '"'):
            attr.allowed_values.list.s.extend(map(_unquoted, items))
            return "string", text[end + 1 :].strip()
        _allow(attr, " ".join(_TYPE_SETS.get(item, item) for item in items))
        return "type", text[end + 1 :].strip()
    word = re.match(r"[a-z]+", text)
    if word is None or (word[0] not in _KINDS and word[0] not in _TYPE_SETS):
        raise ValueError(f"unknown kind; there are {', '.join((*_KINDS, *_TYPE_SETS))}, list(...) and {{...}}")
    rest = text[word.end() :].strip()
    if word[0] in _TYPE_SETS:
        _allow(attr, _TYPE_SETS[word[0]])
        return "type", rest
    return word[0], rest


def _allow(attr: op_def_pb2.OpDef.AttrDef, names: str) -> None:
    attr.allowed_values.list.type.extend(dtypes.from_name(name).enum for name in names.split())  # type: ignore[arg-type]


def _default(value: AttrValue, kind: str, is_list: bool, text: str) -> None:
    if not is_list:
        _set(value, _FIELDS[kind], kind, text)
        return
    if not (text.startswith("[") and text.endswith("]")):
        raise ValueError(f"the default of a list must stand in brackets, not '{text}'")
    value.list.SetInParent()
    for item in _split(text[1:-1]):
        one = AttrValue()
        _set(one, _FIELDS[kind], kind, item)
        found = getattr(one, _FIELDS[kind])
        getattr(value.list, _FIELDS[kind]).append(found)


def _set(value: AttrValue, field: str, kind: str, text: str) -> None:
    match kind:
        case "string":
            value.s = _unquoted(text)
        case "int":
            value.i = int(text)
        case "float":
            value.f = float(text)
        case "bool":
            if text not in ("true", "false"):
                raise ValueError(f"a bool is true or false, not '{text}'")
            value.b = text == "true"
        case "type":
            value.type = dtypes.from_name(text).enum  # type: ignore[assignment]
        case "func":
            value.func.name = text.strip("'\"")
        case _:  # shape and tensor: their text format, in braces
            getattr(value, field).SetInParent()
            text_format.Parse(text.strip().removeprefix("{").removesuffix("}"), getattr(value, field))


def _unquoted(text: str) -> bytes:
    found = _STRING.fullmatch(text)
    if found is None:
        raise ValueError(f"a string must stand in quotes, not {text}")
    inner = found[1] if found[1] is not None else found[2]
    return re.sub(r"\\(.)", r"\1", inner).encode()


def _outside_quotes(text: str, start: int = 0) -> Iterator[tuple[int, str, int]]:
    """(place, character, depth of brackets after it) of what stands in no quotes."""
    depth, quote, escaped = 0, "", False
    for i in range(start, len(text)):
        c = text[i]
        if quote:
            if c == quote and not escaped:
                quote = ""
            escaped = c == "\\" and not escaped
        elif c in "'\"":
            quote = c
        else:
            depth += (c in "({[") - (c in ")}]")
            yield i, c, depth


def _closing(text: str, start: int) -> int:
    """Where the bracket that opens at `start` is closed."""
    for i, _, depth in _outside_quotes(text, start):
        if depth == 0:
            return i
    raise ValueError(f"'{text[start]}' is not closed")


def _split(text: str) -> list[str]:
    """The items between commas that stand in no brackets or quotes."""
    items: list[str] = []
    last = 0
    for i, c, depth in _outside_quotes(text):
        if c == "," and depth == 0:
            items.append(text[last:i].strip())
            last = i + 1
    if text[last:].strip():
        items.append(text[last:].strip())
    return items
