"""OpDefs from short text: every op of the registry, written in that notation, comes back the same."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from schemas import op_def_pb2
from schemas.attr_value_pb2 import AttrValue
from toolkit.errors import GraphError
from toolkit.graph import dtypes, opdefs, opspec


def quoted(value: bytes) -> str:
    return "'" + value.decode().replace("\\", "\\\\").replace("'", "\\'") + "'"


def shown(kind: str, value: AttrValue) -> str:
    match kind:
        case "string":
            return quoted(value.s)
        case "int":
            return str(value.i)
        case "float":
            return repr(value.f)
        case "bool":
            return "true" if value.b else "false"
        case "type":
            return "DT_" + dtypes.from_enum(value.type).name.upper()
        case "func":
            return value.func.name
        case _:
            message = getattr(value, kind)
            return "{" + re.sub(r"\s+", " ", str(message)).strip() + "}"


def default(kind: str, value: AttrValue) -> str:
    if not kind.startswith("list("):
        return shown(kind, value)
    inner = kind[5:-1]
    field = {"string": "s", "int": "i", "float": "f", "bool": "b"}.get(inner, inner)
    items: list[str] = []
    for item in getattr(value.list, field):
        one = AttrValue()
        if inner in ("shape", "tensor", "func"):
            getattr(one, field).CopyFrom(item)
        else:
            setattr(one, field, item)
        items.append(shown(inner, one))
    return "[" + ", ".join(items) + "]"


def attr_text(attr: op_def_pb2.OpDef.AttrDef) -> str:
    kind = attr.type
    inner = kind[5:-1] if kind.startswith("list(") else kind
    if attr.HasField("allowed_values"):
        allowed = attr.allowed_values.list
        choices = [quoted(s) for s in allowed.s] or [dtypes.from_enum(t).name for t in allowed.type]
        inner = "{" + ", ".join(choices) + "}"
    text = f"{attr.name}: " + (f"list({inner})" if kind.startswith("list(") else inner)
    if attr.has_minimum:
        text += f" >= {attr.minimum}"
    return f"{text} = {default(kind, attr.default_value)}" if attr.HasField("default_value") else text


def arg_text(arg: op_def_pb2.OpDef.ArgDef) -> str:
    text = arg.type_list_attr or arg.type_attr or dtypes.from_enum(arg.type).name
    if arg.number_attr:
        text = f"{arg.number_attr} * {text}"
    return f"{arg.name}: " + (f"Ref({text})" if arg.is_ref else text)


def test_every_op_comes_back() -> None:
    """Written as text and read again, each OpDef is what it was, full types and deprecations aside."""
    differ: list[str] = []
    for name in opdefs.names():
        proto = op_def_pb2.OpDef()
        proto.CopyFrom(opdefs.proto(name))
        proto.ClearField("deprecation")
        proto.is_distributed_communication = False
        for arg in (*proto.input_arg, *proto.output_arg):
            arg.ClearField("experimental_full_type")
        made = opspec.op_def(
            name,
            [arg_text(arg) for arg in proto.input_arg],
            [arg_text(arg) for arg in proto.output_arg],
            [attr_text(attr) for attr in proto.attr],
            stateful=proto.is_stateful,
            commutative=proto.is_commutative,
            aggregate=proto.is_aggregate,
            allows_uninitialized_input=proto.allows_uninitialized_input,
        )
        if made != proto:
            differ.append(name)
    assert differ == []


# What TensorFlow's own registrations of these ops read.
REGISTERED = {
    "Softplus": (["features: T"], ["activations: T"], ["T: {half, bfloat16, float, double}"]),
    "Maximum": (
        ["x: T", "y: T"],
        ["z: T"],
        ["T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}"],
    ),
    "AddN": (["inputs: N * T"], ["sum: T"], ["N: int >= 1", "T: {numbertype, variant}"]),
    "Prod": (
        ["input: T", "reduction_indices: Tidx"],
        ["output: T"],
        ["keep_dims: bool = false", "T: numbertype", "Tidx: {int32, int64} = DT_INT32"],
    ),
    "Less": (["x: T", "y: T"], ["z: bool"], ["T: realnumbertype"]),
    "IdentityN": (["input: T"], ["output: T"], ["T: list(type) >= 1"]),
}


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", REGISTERED)
def test_registrations_mean_what_they_mean_to_tensorflow(tf: ModuleType, name: str) -> None:
    from tensorflow.python.framework import op_def_registry

    inputs, outputs, attrs = REGISTERED[name]
    made = opspec.op_def(name, inputs, outputs, attrs)
    theirs = op_def_registry.get(name)
    ours = op_def_pb2.OpDef.FromString(theirs.SerializeToString())
    assert [(a.name, a.type_attr, a.number_attr, a.type_list_attr) for a in made.input_arg] == [
        (a.name, a.type_attr, a.number_attr, a.type_list_attr) for a in ours.input_arg
    ]
    assert list(made.output_arg) == list(ours.output_arg)
    for mine, other in zip(made.attr, ours.attr, strict=True):
        assert (mine.name, mine.type, mine.minimum, mine.default_value) == (
            other.name, other.type, other.minimum, other.default_value,
        )  # fmt: skip
        assert set(mine.allowed_values.list.type) == set(other.allowed_values.list.type)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lower",), "'lower' is not an op name"),
        (("Op", ["x"]), "input 'x' of Op: it must read 'name: type'"),
        (("Op", ["x: flot"]), "'flot' is not a data type; did you mean 'float'"),
        (("Op", ["x: N * float"]), "'x' of Op needs the attribute 'N: int', which does not exist"),
        (("Op", ["x: N * float"], [], ["N: bool"]), "which is of kind bool"),
        (("Op", ["x: float", "x: float"]), "two inputs or attributes of Op are called 'x'"),
        (("Op", [], ["y: float", "y: int32"]), "two outputs of Op are called 'y'"),
        (("Op", [], [], ["a: number"]), "attribute 'a: number' of Op: unknown kind; there are string, int"),
        (("Op", [], [], ["a: list(int"]), "'(' is not closed"),
        (("Op", [], [], ["a: {float, double"]), "'{' is not closed"),
        (("Op", [], [], ["a: float >= 1"]), "a minimum is of an int or a list"),
        (("Op", [], [], ["a: int >= x"]), "must be followed by a number"),
        (("Op", [], [], ["a: int = one"]), "invalid literal"),
        (("Op", [], [], ["a: string = one"]), "a string must stand in quotes, not one"),
        (("Op", [], [], ["a: bool = True"]), "a bool is true or false, not 'True'"),
        (("Op", [], [], ["a: list(int) = 1"]), "must stand in brackets"),
        (("Op", [], [], ["a: int 3"]), "'3' is left over"),
    ],
)
def test_mistakes_are_named(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(GraphError, match=re.escape(message)):
        opspec.op_def(*arguments)  # type: ignore[arg-type]


def test_text_format() -> None:
    made = opspec.from_text(
        'name: "Twice" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT }'
    )
    assert made == opspec.op_def("Twice", ["x: float"], ["y: float"])
    with pytest.raises(GraphError, match="not an OpDef in text format: 1:1"):
        opspec.from_text("nonsense: 3")
    with pytest.raises(GraphError, match="needs one of type, type_attr"):
        opspec.from_text('name: "Twice" input_arg { name: "x" }')
