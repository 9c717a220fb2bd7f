"""The parameters of a spec: names for values that whoever builds it may choose.

parameters:
  units: 64                                   # its type is that of its default
  rate: {type: number, default: 0.1, minimum: 0, description: learning rate}
  cell: {type: text, choices: [lstm, gru]}    # without a default it must be given
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolkit.errors import GraphmillError, UsageError, did_you_mean
from toolkit.formats.schema.choices import ByTag, OneOf
from toolkit.formats.schema.containers import Key, ListOf, MapOf
from toolkit.formats.schema.kinds import Kind
from toolkit.formats.schema.mistakes import Mistakes
from toolkit.formats.schema.scalars import Anything, Boolean, Integer, Number, Text
from toolkit.formats.settings.tree import Section, YamlItem, parse

#: what a parameter may be
TYPES: dict[str, Kind] = {
    "integer": Integer(),
    "number": Number(),
    "boolean": Boolean(),
    "text": Text(),
    "list": ListOf(Anything()),
}
_BOUNDS = {"minimum": Key(Number(), "the least value"), "maximum": Key(Number(), "the largest value")}
_COMMON = {"description": Key(Text(), "for people"), "choices": Key(ListOf(Anything()), "the values that it may have")}

#: the section `parameters`
KIND = MapOf(
    OneOf(
        ByTag(
            "type",
            {
                name: {"default": Key(kind, "the value where none is given")}
                | _COMMON
                | (_BOUNDS if name in ("integer", "number") else {})
                for name, kind in TYPES.items()
            },
            noun="a value, or {type: ..., default: ...}",
        ),
        Boolean(),
        Text(),
        Number(),
        ListOf(Anything()),
    )
)


@dataclass
class Parameters:
    """The values of a spec's parameters, by name."""

    values: dict[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def read(
        cls,
        declared: YamlItem | None,
        given: Mapping[str, str],
        mistakes: Mistakes,
        items: Mapping[str, YamlItem] | None = None,
    ) -> Parameters:
        """The values of what a spec declares.

        Args:
            given: values as text, from the command line.
            items: values from another spec that includes this one.

        Raises:
            UsageError: a value that is given is no parameter, or not of its type.
        """
        found = cls()
        items = items or {}
        names: list[str] = []
        if declared is not None:
            before = len(mistakes)
            KIND.check(declared, mistakes)
            if len(mistakes) == before:
                names = [name for name, _ in declared.section()]
                for name, item in declared.section():
                    found._add(name, item, given, items.get(name), mistakes)
        for name in given:
            if name not in names:
                raise UsageError(f"--set {name}: the spec has no such parameter{did_you_mean(name, names)}")
        for name, item in items.items():
            if name not in names:
                mistakes.add(item.error(f"there is no parameter '{name}'{did_you_mean(name, names)}"))
        return found

    def _add(
        self, name: str, item: YamlItem, given: Mapping[str, str], passed: YamlItem | None, mistakes: Mistakes
    ) -> None:
        if not name.isidentifier():
            mistakes.add(item.error(f"'{name}' is no name of a parameter: letters, digits and _"))
            return
        section = item.section() if isinstance(item.value, dict) else None
        default = section.get("default") if section is not None else item
        kind = section["type"].text() if section is not None else _type_of(item)
        value = default
        if name in given:
            value = _from_text(name, given[name], kind)
            if wrong := _wrong(value, kind, section):
                raise UsageError(f"--set {name}={given[name]}: {wrong[0].message}")
        elif (value := passed or default) is not None:
            for error in _wrong(value, kind, section):
                mistakes.add(error)
        else:
            mistakes.add(item.error(f"the parameter has no default: give it with --set {name}=VALUE"))
        self.values[name] = None if value is None else value.plain()


def _type_of(item: YamlItem) -> str:
    match item.value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case list():
            return "list"
        case _:
            return "text"


def _from_text(name: str, text: str, kind: str) -> YamlItem:
    if kind == "text" or not text.strip():
        return YamlItem(text, "", f"--set {name}", 1)
    try:
        return parse(text, f"--set {name}")
    except GraphmillError as error:
        raise UsageError(f"--set {name}={text}: {error.message}") from None


def _wrong(value: YamlItem, kind: str, section: Section | None) -> list[GraphmillError]:
    """What is wrong with a value of a parameter; `section` is its declaration."""
    mistakes = Mistakes()
    TYPES[kind].check(value, mistakes)
    if mistakes.errors or section is None:
        return mistakes.errors
    choices = section.get("choices")
    if choices is not None and value.plain() not in choices.plain():
        mistakes.add(value.error(f"expected one of: {', '.join(map(str, choices.plain()))}; found {value.describe()}"))
    if "minimum" in section or "maximum" in section:
        bounds = [None if (bound := section.get(key)) is None else bound.value for key in ("minimum", "maximum")]
        Number(*bounds).check(value, mistakes)
    return mistakes.errors
