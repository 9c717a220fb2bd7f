"""Edits as options of a command line: the kinds that fit into one argument."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from toolkit.errors import GraphmillError, UsageError, about_option
from toolkit.formats.settings.tree import YamlItem

#: the largest size of a dimension
_LARGEST = (1 << 63) - 1
#: how a tensor begins, or an array of names
_INPUT = re.compile(r"(.+?)(?::(\d+))?")


@dataclass(frozen=True)
class EditOption:
    """An option that is an edit.

    Attributes:
        kind: of edit.
        metavar: how its value is written, "" where it has none.
        help: what it does.
        read: the arguments of the edit, from its value.
    """

    kind: str
    metavar: str
    help: str
    read: Callable[[str], dict[str, Any]]


def _split(text: str, sign: str, expected: str, *, last: bool = False) -> tuple[str, str]:
    left, found, right = text.rpartition(sign) if last else text.partition(sign)
    if not found or not left:
        raise UsageError(f"expected {expected}, found '{text}'")
    return left, right


def _pair(left: str, right: str, expected: str) -> Callable[[str], dict[str, Any]]:
    def read(text: str) -> dict[str, Any]:
        a, b = _split(text, "=", expected)
        return {left: a, right: b}

    return read


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _value(text: str) -> Any:
    from toolkit.formats.settings.documents import load_yaml

    return load_yaml(text)


def _attr(text: str) -> dict[str, Any]:
    where, value = _split(text, "=", "NODES:ATTR=VALUE")
    nodes, attr = _split(where, ":", "NODES:ATTR=VALUE", last=True)
    return {"nodes": _names(nodes), "attr": attr, "value": _value(value)}


def _attr_name(text: str) -> dict[str, Any]:
    nodes, colon, attr = text.rpartition(":")
    return {"attr": attr, **({"nodes": _names(nodes)} if colon else {})}


def _attr_names(text: str) -> dict[str, Any]:
    where, to = _split(text, "=", "[NODES:]OLD=NEW")
    return {**_attr_name(where), "to": to}


def _device(text: str) -> dict[str, Any]:
    nodes, equals, device = text.rpartition("=")
    return {"device": device, **({"nodes": _names(nodes)} if equals else {})}


def _layout(text: str) -> dict[str, Any]:
    nodes, equals, layout = text.rpartition("=")
    return {"layout": layout, **({"nodes": _names(nodes)} if equals else {})}


def _shape(text: str) -> dict[str, Any]:
    nodes, sizes = _split(text, "=", "NODE=SIZE,SIZE,...")
    return {"nodes": _names(nodes), "shape": "unknown" if sizes == "unknown" else [_size(s) for s in _names(sizes)]}


def _size(text: str) -> int | None:
    if text in ("?", "any", "-1", "none", "None"):
        return None
    if not text.isdecimal() or len(text) > len(str(_LARGEST)) or int(text) > _LARGEST:
        raise UsageError(f"expected a size, or any; found '{text}'" + _range(text, 0))
    return int(text)


def _batch_size(text: str) -> int | None:
    if text == "-1":
        raise UsageError(f"expected a size, or any; found '{text}'" + _range(text, 1))
    return _size(text)


def _range(text: str, least: int) -> str:
    """What a number has to lie in."""
    return f" (sizes go from {least} to {_LARGEST:,})" if text.lstrip("-").isdecimal() else ""


def _input(text: str, expected: str) -> tuple[str, int]:
    found = _INPUT.fullmatch(text)
    if found is None:
        raise UsageError(f"expected {expected}, found '{text}'")
    return found[1], int(found[2] or 0)


def _before(text: str) -> dict[str, Any]:
    where, what = _split(text, "=", "NODE[:INPUT]=OP[:NAME]")
    node, position = _input(where, "NODE[:INPUT]=OP[:NAME]")
    op, _, called = what.partition(":")
    return {"node": node, "input": position, "op": op, **({"called": called} if called else {})}


def _after(text: str) -> dict[str, Any]:
    tensor, what = _split(text, "=", "TENSOR=OP[:NAME]")
    op, _, called = what.partition(":")
    return {"tensor": tensor, "op": op, **({"called": called} if called else {})}


def _reconnect(text: str) -> dict[str, Any]:
    where, tensor = _split(text, "=", "NODE[:INPUT]=TENSOR")
    node, position = _input(where, "NODE[:INPUT]=TENSOR")
    return {"node": node, "input": position, "to": tensor}


def _controls(text: str) -> dict[str, Any]:
    nodes, on = _split(text, "=", "NODES=NODES")
    return {"nodes": _names(nodes), "on": _names(on)}


def _fewer_controls(text: str) -> dict[str, Any]:
    nodes, equals, on = text.partition("=")
    return {"nodes": _names(nodes), **({"on": _names(on)} if equals else {})}


def _constant(text: str) -> dict[str, Any]:
    node, value = _split(text, "=", "NODE=VALUE")
    return {"node": node, "file": value[1:]} if value.startswith("@") else {"node": node, "value": _value(value)}


def _merge(text: str) -> dict[str, Any]:
    file, _, prefix = text.partition("=")
    return {"file": file, "prefix": prefix}


def _signature(text: str) -> dict[str, Any]:
    key, rest = _split(text, "=", "KEY=[NAME:]IN,...->[NAME:]OUT,...")
    inputs, arrow, outputs = rest.partition("->")
    if not arrow:
        raise UsageError(f"expected KEY=IN,...->OUT,..., found '{text}'")
    return {"key": key, "inputs": _labelled(inputs), "outputs": _labelled(outputs)}


def _labelled(text: str) -> dict[str, str]:
    """`x`, `x:0`, `image:x:0`, `image:x`: what is called how."""
    found: dict[str, str] = {}
    for part in _names(text):
        label, colon, tensor = part.partition(":")
        if not colon or tensor.isdigit():
            label, tensor = label, part
        if label in found:
            raise UsageError(f"'{label}' is given twice")
        found[label] = tensor
    return found


def _signature_key(text: str) -> dict[str, Any]:
    where, to = _split(text, "=", "SIGNATURE:OLD=NEW")
    signature, key = _split(where, ":", "SIGNATURE:OLD=NEW")
    return {"signature": signature, "key": key, "to": to}


def _items(text: str) -> dict[str, Any]:
    name, items = _split(text, "=", "COLLECTION=ITEM,...")
    return {"collection": name, "items": _names(items)}


def _fewer_items(text: str) -> dict[str, Any]:
    name, equals, items = text.partition("=")
    return {"collection": name, **({"items": _names(items)} if equals else {})}


#: option to the edit that it is; in the order of their help
OPTIONS: dict[str, EditOption] = {
    "--rename": EditOption(
        "rename_nodes", "OLD=NEW", "Rename nodes: a name, a glob, or re:EXPRESSION.", _pair("nodes", "to", "OLD=NEW")
    ),
    "--rename-scope": EditOption(
        "rename_scope",
        "OLD=NEW",
        "Rename a name scope; nothing for NEW takes it away.",
        _pair("scope", "to", "OLD=NEW"),
    ),
    "--add-prefix": EditOption(
        "rename_scope", "SCOPE", "Put all nodes into a name scope.", lambda text: {"scope": "", "to": text}
    ),
    "--rename-op": EditOption(
        "rename_op", "OLD=NEW", "Let nodes of one op be of another.", _pair("op", "to", "OLD=NEW")
    ),
    "--set-attr": EditOption("set_attr", "NODES:ATTR=VALUE", "Set an attribute.", _attr),
    "--remove-attr": EditOption("remove_attr", "[NODES:]ATTR", "Take an attribute away.", _attr_name),
    "--rename-attr": EditOption("rename_attr", "[NODES:]OLD=NEW", "Rename an attribute.", _attr_names),
    "--set-device": EditOption("set_device", "[NODES=]DEVICE", "Let nodes ask for a device.", _device),
    "--clear-devices": EditOption("clear_devices", "", "Let no node ask for a device.", lambda text: {}),
    "--set-shape": EditOption(
        "set_shape", "NODE=SIZE,SIZE,...", "Set the shape of an input; any for any size.", _shape
    ),
    "--batch-size": EditOption(
        "set_batch_size",
        "N",
        "Set the batch size of all inputs; any for any.",
        lambda text: {"size": _batch_size(text)},
    ),
    "--input-layout": EditOption(
        "set_input_layout",
        "[NODES=]NCHW",
        "Take inputs with their channels first, or last (NHWC); a Transpose follows each.",
        _layout,
    ),
    "--set-constant": EditOption(
        "set_constant", "NODE=VALUE", "Set a constant: a number, a list, or @FILE.npy.", _constant
    ),
    "--insert-after": EditOption("insert_after", "TENSOR=OP[:NAME]", "Put a node behind a tensor.", _after),
    "--insert-before": EditOption("insert_before", "NODE[:INPUT]=OP[:NAME]", "Put a node before an input.", _before),
    "--replace": EditOption("replace_node", "NODE=OP", "Let a node be of another op.", _pair("node", "op", "NODE=OP")),
    "--remove": EditOption(
        "remove_nodes",
        "NODES",
        "Remove nodes; who takes their outputs takes their inputs.",
        lambda text: {"nodes": _names(text)},
    ),
    "--remove-cascade": EditOption(
        "remove_nodes",
        "NODES",
        "Remove nodes, and all that needs them.",
        lambda text: {"nodes": _names(text), "cascade": True},
    ),
    "--reconnect": EditOption("reconnect", "NODE[:INPUT]=TENSOR", "Let an input take another tensor.", _reconnect),
    "--redirect": EditOption(
        "redirect", "OLD=NEW", "Let who takes one tensor take another.", _pair("tensor", "to", "OLD=NEW")
    ),
    "--add-control": EditOption("add_control", "NODES=NODES", "Let nodes wait for others.", _controls),
    "--remove-control": EditOption(
        "remove_control", "NODES[=NODES]", "Let nodes not wait for others.", _fewer_controls
    ),
    "--merge": EditOption("merge", "FILE[=PREFIX]", "Add another graph.", _merge),
    "--connect": EditOption(
        "connect",
        "FROM=INPUT",
        "Let an input, as of a graph that was merged, be this tensor.",
        _pair("tensor", "input", "FROM=INPUT"),
    ),
    "--add-signature": EditOption(
        "add_signature", "KEY=IN,...->OUT,...", "Add a signature; NAME:TENSOR names an entry.", _signature
    ),
    "--rename-signature": EditOption(
        "rename_signature", "OLD=NEW", "Rename a signature.", _pair("key", "to", "OLD=NEW")
    ),
    "--remove-signature": EditOption(
        "remove_signature", "KEY", "Remove a signature.", lambda text: {"key": _names(text)}
    ),
    "--rename-signature-key": EditOption(
        "rename_signature_key", "SIGNATURE:OLD=NEW", "Rename an input or output of a signature.", _signature_key
    ),
    "--default-signature": EditOption(
        "set_default_signature", "KEY", "Make a signature the default.", lambda text: {"key": text}
    ),
    "--signature-method": EditOption(
        "set_signature_method", "KEY=NAME", "Set a signature's method name.", _pair("key", "method", "KEY=NAME")
    ),
    "--add-to-collection": EditOption("add_to_collection", "NAME=ITEM,...", "Add items to a collection.", _items),
    "--remove-from-collection": EditOption(
        "remove_from_collection", "NAME[=ITEM,...]", "Remove items of a collection, or all.", _fewer_items
    ),
    "--rename-function": EditOption(
        "rename_function", "OLD=NEW", "Rename functions, and their callers.", _pair("function", "to", "OLD=NEW")
    ),
    "--remove-function": EditOption(
        "remove_function", "NAMES", "Remove functions that nothing calls.", lambda text: {"function": _names(text)}
    ),
}


def read_options(given: list[tuple[str, str]]) -> list[Any]:
    """The steps of options in the order in which they were given.

    Args:
        given: option and value.

    Raises:
        EditsError: values that are not as expected, all of them.
    """
    from toolkit.passes.edit.table import EditsError, Step, make

    steps: list[Any] = []
    errors: list[GraphmillError] = []
    arguments: list[tuple[str, str, dict[str, Any]]] = []
    for option, text in given:
        try:
            with about_option(option):
                arguments.append((option, OPTIONS[option].kind, OPTIONS[option].read(text)))
        except GraphmillError as error:
            errors.append(error)
    for option, kind, values in arguments:
        item = _item(values)
        found: list[GraphmillError] = []
        edit = make(kind, item, item, found)
        for error in found:
            error.file, error.option = None, option
            errors.append(error)
        if edit is not None:
            steps.append(Step(edit, option=option))
    if errors:
        raise EditsError(errors)
    return steps


def _item(value: Any) -> YamlItem:
    """A plain value as one of YAML."""
    if isinstance(value, dict):
        value = {str(key): _item(each) for key, each in cast("dict[Any, Any]", value).items()}
    elif isinstance(value, list):
        value = [_item(each) for each in cast("list[Any]", value)]
    return YamlItem(value, "", "", 0)
