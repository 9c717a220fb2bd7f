"""Passes as they are written on a command line: `fold_constants(max_bytes=1000000),common_subexpressions`.

Names are separated by commas or spaces; a pass's parameters are its fields, `key=value` each. Texts may stand in
quotation marks; a parameter that takes several values is given several times.
"""

from __future__ import annotations

import re
from dataclasses import MISSING, Field, fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from toolkit.errors import GraphmillError, UsageError, did_you_mean
from toolkit.passes.optimize import table
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.transforms import IGNORE_ERRORS, TRANSFORMS, as_pass

_NAME = re.compile(r"\s*([\w-]+)\s*")
_PARAMETER = re.compile(r"\s*([\w-]+)\s*=\s*(\"[^\"]*\"|'[^']*'|[^,()\"']*?)\s*(?=[,)]|\s+[\w-]+\s*=)")
_TRUE, _FALSE = ("true", "yes", "1", "on"), ("false", "no", "0", "off")
_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def parse_passes(text: str) -> list[Optimization]:
    """The passes that a text names, with their parameters.

    Raises:
        UsageError: it cannot be read; there is no such pass or parameter, or a value is none that the parameter has.
    """
    out: list[Optimization] = []
    place = 0
    while True:
        while place < len(text) and (text[place] == "," or text[place].isspace()):
            place += 1
        if place == len(text):
            break
        name = _NAME.match(text, place)
        if name is None:
            raise UsageError(f"expected the name of a pass, found '{text[place:][:40]}'")
        place = name.end()
        given: list[tuple[str, str]] = []
        if place < len(text) and text[place] == "(":
            given, place = _parameters(text, place + 1, name.group(1))
        elif place < len(text) and text[place] not in "," and not text[place - 1].isspace():
            raise UsageError(f"expected ',' or '(' after the pass '{name.group(1)}', found '{text[place:][:40]}'")
        out.append(make_pass(name.group(1), given))
    if not out:
        raise UsageError("no pass is named; graphmill optimize --list names them all")
    return out


def _parameters(text: str, place: int, name: str) -> tuple[list[tuple[str, str]], int]:
    given: list[tuple[str, str]] = []
    while True:
        while place < len(text) and (text[place] == "," or text[place].isspace()):
            place += 1
        if place == len(text):
            raise UsageError(f"the parameters of the pass '{name}' lack their ')'")
        if text[place] == ")":
            return given, place + 1
        found = _PARAMETER.match(text, place)
        if found is None:
            raise UsageError(
                f"expected KEY=VALUE among the parameters of the pass '{name}', found '{text[place:][:40]}'; "
                "texts with commas or parentheses stand in quotation marks"
            )
        value = found.group(2)
        given.append((found.group(1), value[1:-1] if value[:1] in ("'", '"') else value))
        place = found.end()


def parameters(pass_: type[Optimization]) -> dict[str, tuple[Any, Field[Any]]]:
    """The parameters of a pass: name to type and field."""
    types = get_type_hints(pass_)
    return {each.name: (types[each.name], each) for each in fields(pass_) if each.metadata.get("option", True)}


def make_pass(name: str, given: list[tuple[str, str]]) -> Optimization:
    """A pass with parameters given as texts.

    Raises:
        UsageError: as `parse_passes`.
    """
    if name not in table.TABLE:
        name, given = as_pass(name, given)
    class_ = table.entry(name).load()
    known = parameters(class_)
    values: dict[str, Any] = {}
    for _, text in [each for each in given if each[0] == IGNORE_ERRORS][:1]:
        values[IGNORE_ERRORS] = _value(name, IGNORE_ERRORS, text, bool)
    given = [each for each in given if each[0] != IGNORE_ERRORS]
    for key, text in given:
        transform = TRANSFORMS.get(name)
        if transform is not None and key not in known:
            if key in transform.without_effect:
                continue
            key = transform.renamed.get(key, key)
        if key not in known:
            raise UsageError(
                f"the pass '{name}' has no parameter '{key}'"
                + did_you_mean(key, known, then=f"it has {', '.join(known) or 'none'}")
            )
        type_ = known[key][0]
        if get_origin(type_) is tuple:
            element = get_args(type_)[0]
            values[key] = (*values.get(key, ()), _value(name, key, text, element))
        elif key in values:
            raise UsageError(f"the parameter '{key}' of the pass '{name}' is given twice")
        else:
            values[key] = _value(name, key, text, type_)
    for key, (type_, each) in known.items():
        if key not in values and each.default is MISSING and each.default_factory is MISSING:
            raise UsageError(f"the pass '{name}' needs its parameter '{key}' ({_word(type_)}): {name}({key}=...)")
    try:
        return class_(**values)
    except GraphmillError as error:
        error.message = f"the pass '{name}': {error.message}"
        raise


def _value(name: str, key: str, text: str, type_: Any) -> Any:
    if get_origin(type_) in (Union, UnionType):
        inner = [each for each in get_args(type_) if each is not NoneType]
        return None if text == "none" else _value(name, key, text, inner[0])
    try:
        if get_origin(type_) is Literal:
            if text in get_args(type_):
                return text
        elif type_ is bool:
            if text.lower() in (*_TRUE, *_FALSE):
                return text.lower() in _TRUE
        elif type_ in (int, float, str):
            return type_(text)
    except ValueError:
        pass
    near = did_you_mean(text, get_args(type_)) if get_origin(type_) is Literal else ""
    raise UsageError(f"the parameter '{key}' of the pass '{name}' is '{text}'{near}; expected {_word(type_)}")


def _word(type_: Any) -> str:
    if get_origin(type_) is Literal:
        return " or ".join(get_args(type_))
    if get_origin(type_) is tuple:
        return f"{_word(get_args(type_)[0])}, given once or several times"
    if get_origin(type_) in (Union, UnionType):
        return " or ".join("none" if each is NoneType else _word(each) for each in get_args(type_))
    return _WORDS.get(type_, str(type_))


def describe(row: table.PassEntry) -> dict[str, Any]:
    """A row of the table as JSON: name, text, presets, transforms, and parameters with types, defaults and docs."""
    found: dict[str, Any] = {}
    for name, (type_, each) in parameters(row.load()).items():
        default: Any = each.default if each.default is not MISSING else "required"
        if isinstance(default, tuple):
            default = list(cast("tuple[Any, ...]", default))
        found[name] = {"type": _word(type_), "default": default}
    return {
        "name": row.name,
        "text": row.text,
        "presets": list(row.presets),
        "transforms": list(row.transforms),
        "parameters": found,
    }
