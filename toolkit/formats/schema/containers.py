"""Kinds of values that have others in them: lists, and mappings with free or known keys."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolkit.errors import did_you_mean
from toolkit.formats.schema.definitions import Definitions, Json
from toolkit.formats.schema.kinds import Kind, is_mapping
from toolkit.formats.schema.mistakes import Mistakes
from toolkit.formats.settings.tree import SpecError, YamlItem


@dataclass(frozen=True)
class ListOf(Kind):
    """A list.

    Attributes:
        lengths: how many elements it may have; any number where none is said.
        optional: null stands for an element that is not known.
    """

    kind: Kind
    lengths: tuple[int, ...] = ()
    optional: bool = False

    noun = "a list"
    forms = frozenset({"list"})

    def check(self, item: YamlItem, mistakes: Mistakes) -> None:
        if not isinstance(item.value, list):
            mistakes.add(item.error(f"expected a list, found {item.describe()}"))
            return
        elements = item.items()
        if self.lengths and len(elements) not in self.lengths:
            wanted = " or ".join(map(str, self.lengths))
            mistakes.add(item.error(f"expected {wanted} values, found {len(elements)}"))
        for element in elements:
            if not (self.optional and element.value is None):
                with mistakes.within(element):
                    self.kind.check(element, mistakes)

    def json(self, definitions: Definitions) -> Json:
        element = self.kind.json(definitions)
        made: Json = {"type": "array", "items": _or_null(element) if self.optional else element}
        if self.lengths:
            made |= {"minItems": min(self.lengths), "maxItems": max(self.lengths)}
        return made


@dataclass(frozen=True)
class MapOf(Kind):
    """A mapping whose keys the document chooses.

    Attributes:
        by_name: kinds of keys that mean something by themselves.
    """

    kind: Kind
    by_name: Mapping[str, Kind] = field(default_factory=dict[str, Kind])
    noun: str = "a mapping"

    forms = frozenset({"mapping"})

    def check(self, item: YamlItem, mistakes: Mistakes) -> None:
        if not is_mapping(item, mistakes):
            return
        for key, value in item.section():
            with mistakes.within(value):
                self.by_name.get(key, self.kind).check(value, mistakes)

    def json(self, definitions: Definitions) -> Json:
        made: Json = {"type": "object", "additionalProperties": self.kind.json(definitions)}
        if self.by_name:
            made["properties"] = {name: kind.json(definitions) for name, kind in self.by_name.items()}
        return made


@dataclass(frozen=True)
class Key:
    """A key of a record: what its value is, and what it means.

    Attributes:
        default: what holds when it is missing, for people; None where nothing is to be said.
    """

    kind: Kind
    meaning: str = ""
    required: bool = False
    default: Any = None


@dataclass(frozen=True)
class Record(Kind):
    """A mapping with known keys; null stands for a key that is missing."""

    keys: Mapping[str, Key]
    noun: str = "a mapping"

    forms = frozenset({"mapping"})

    def check(self, item: YamlItem, mistakes: Mistakes) -> None:
        if not is_mapping(item, mistakes):
            return
        section = item.section()
        place = f"{item.where}: " if item.where else ""
        meant: set[str] = set()
        for key, value in section:
            known = self.keys.get(key)
            if known is None:
                meant.update(difflib.get_close_matches(key, self.keys))
                hint = did_you_mean(key, self.keys)
                message = f"{place}unknown key '{key}'{hint} (expected: {', '.join(self.keys)})"
                mistakes.add(SpecError(message, file=value.place))
            elif value.value is not None:
                with mistakes.within(value):
                    known.kind.check(value, mistakes)
        for key, known in self.keys.items():
            if known.required and key not in section and key not in meant:
                mistakes.add(item.error(f"the key '{key}' is missing"))

    def json(self, definitions: Definitions) -> Json:
        properties: Json = {}
        for name, key in self.keys.items():
            described = {} if not key.meaning else {"description": key.meaning}
            default = {} if key.default is None else {"default": key.default}
            properties[name] = key.kind.json(definitions) | described | default
        made: Json = {"type": "object", "properties": properties, "additionalProperties": False}
        if required := [name for name, key in self.keys.items() if key.required]:
            made["required"] = required
        return made


def _or_null(kind: Json) -> Json:
    """A kind that may also be null."""
    if not kind:
        return kind
    if "anyOf" in kind:
        return kind | {"anyOf": [*kind["anyOf"], {"type": "null"}]}
    if isinstance(kind.get("type"), str) and "enum" not in kind:
        return kind | {"type": [kind["type"], "null"]}
    if set(kind) == {"enum"}:
        return {"enum": [*kind["enum"], None]}
    return {"anyOf": [kind, {"type": "null"}]}
