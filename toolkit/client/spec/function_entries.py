"""The section `functions`, and the entry `call` of `nodes`.

    functions:
      scaled:
        inputs: {x: {shape: [null, 4]}, factor: {}}
        nodes:
          - {layer: multiply, input: [x, factor]}
        output: multiply             # by default the last entry; or outputs: {KEY: NAME}

    nodes:
      - call: scaled
        name: half
        inputs: {x: features, factor: 0.5}

A function becomes a FunctionDef of the graph's library, a call a PartitionedCall (StatefulPartitionedCall where the
function has effects). It sees the inputs and variables of the spec and the functions before it; what it uses of them is
handed to every call. What an op calls (`attrs: {then_branch: scaled}` of If, say) may use its own inputs only, for
the op hands on nothing else.
"""

from __future__ import annotations

import re

from toolkit.client.construction import create
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.tensor import Tensor
from toolkit.client.functions.graph import FunctionGraph
from toolkit.client.functions.trace import trace
from toolkit.client.spec.builder import FAILED, Failed, Names, SpecBuilder
from toolkit.client.spec.entries import entry, full_name, named, operand
from toolkit.client.spec.flow_entries import BRANCH, declare_results, results
from toolkit.client.spec.functions import BEING_MADE, SpecFunction, function_named
from toolkit.client.spec.inputs import type_of
from toolkit.client.spec.values import NAME, OPERAND, SHAPE
from toolkit.formats.schema.choices import OneOf
from toolkit.formats.schema.containers import Key, ListOf, MapOf, Record
from toolkit.formats.schema.scalars import DTypeName
from toolkit.formats.settings.tree import Section, YamlItem
from toolkit.graph import opdefs
from toolkit.graph.shape import UNKNOWN, Shape

_FUNCTION_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")

_INPUT = Record({
    "dtype": Key(DTypeName(), "its type", default="float32"),
    "shape": Key(SHAPE, "its sizes, null for those that are not known; by default nothing is known"),
})  # fmt: skip

FUNCTIONS = MapOf(Record({"inputs": Key(MapOf(_INPUT), "its arguments, in order"), **BRANCH.keys}))


def build_functions(spec: SpecBuilder, found: YamlItem) -> None:
    """Add the functions to the graph's library, each under its own name."""
    for name, item in found.section():
        if spec.mistakes.has(item):
            spec.functions[name] = FAILED
            continue
        made: SpecFunction | Failed = FAILED
        spec.functions[name] = BEING_MADE
        with spec.noting(item):
            made = _function(spec, name, item)
        spec.functions[name] = made


def _function(spec: SpecBuilder, name: str, item: YamlItem) -> SpecFunction:
    if not _FUNCTION_NAME.fullmatch(name):
        raise item.error(f"'{name}' is no name of a function: a letter, then letters, digits, _ . - or /")
    if opdefs.find(name) is not None:
        raise item.error(f"an op is named '{name}'; call the function otherwise")
    section = item.section()
    declared = section.get("inputs")
    arguments = [] if declared is None else [(key, each.section()) for key, each in declared.section()]
    keys: list[str] | None = None

    def body(graph: FunctionGraph, tensors: list[Tensor]) -> list[Tensor]:
        nonlocal keys
        names = Names(spec.names)
        names.found.update(zip((key for key, _ in arguments), tensors, strict=True))
        with spec.inside(graph), spec.body(names):
            spec.last = tensors[0] if tensors else None
            made = results(spec, section)
        keys = list(made) if isinstance(made, dict) else None
        return list(made.values()) if isinstance(made, dict) else [made]

    types = [(key, type_of(each), _shape(each)) for key, each in arguments]
    traced = trace(body, types, name=name, call=body)
    return SpecFunction(traced, [key for key, _ in arguments], keys)


def _shape(section: Section) -> Shape:
    found = section.get("shape")
    return UNKNOWN if found is None else Shape(found.sizes())


@entry(
    "call",
    named(
        {"inputs": Key(OneOf(ListOf(OPERAND), MapOf(OPERAND)), "its arguments, in order or by name")},
        ("call", Key(NAME, "a function of the spec", required=True)),
    ),
    "a function of the section `functions`, called",
    lambda section: str(section["call"].value),
)
def _call(spec: SpecBuilder, item: YamlItem, section: Section, scope: str) -> None:
    name, full = full_name(section, "call", scope)
    function = function_named(spec, section["call"])
    traced = function.traced
    given = _arguments(spec, item, section, function, scope)
    op = "StatefulPartitionedCall" if traced.is_stateful else "PartitionedCall"
    with spec.graph.name_scope(name) as inner:
        attrs = {"f": traced.ref, "Tout": traced.result_types}
        made = create.create_op(op, [[*given, *traced.captured]], attrs, "call").outputs
        for tensor, shape in zip(made, traced.result_shapes, strict=True):
            tensor.set_shape(shape)
        by_key = None if function.keys is None else dict(zip(function.keys, made, strict=True))
        declare_results(spec, item, full, inner, made[0] if by_key is None else by_key)


def _arguments(
    spec: SpecBuilder, item: YamlItem, section: Section, function: SpecFunction, scope: str
) -> list[Tensor]:  # fmt: skip
    """What a call gives, in the order of the function's inputs.

    Raises:
        SpecError: one is missing, there is another, or its type or shape does not fit.
    """
    found = section.get("inputs")
    items: dict[str, YamlItem] = {}
    if found is not None and isinstance(found.value, dict):
        items = dict(found.section(function.inputs))
    elif found is not None:
        listed = list(found.items())
        if len(listed) > len(function.inputs):
            raise found.error(f"'{section['call'].value}' takes {len(function.inputs)} input(s), not {len(listed)}")
        items = dict(zip(function.inputs, listed, strict=False))
    given: list[Tensor] = []
    for key, argument in zip(function.inputs, function.traced.graph.args, strict=True):
        if key not in items:
            raise (found or item).error(f"'{section['call'].value}' is called without its input '{key}'")
        value = operand(spec, items[key], scope)
        tensor = convert_to_tensor(value, None if isinstance(value, Tensor) else argument.dtype)
        if tensor.dtype.base != argument.dtype:
            raise items[key].error(f"'{key}' is {argument.dtype.name}; '{tensor.name}' is {tensor.dtype.base.name}")
        if not tensor.static_shape.is_compatible_with(argument.static_shape):
            raise items[key].error(
                f"'{key}' has shape {argument.static_shape}; '{tensor.name}' has {tensor.static_shape}"
            )
        given.append(tensor)
    return given
