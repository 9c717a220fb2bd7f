"""Kinds under a name that JSON Schema refers to, and the document of a whole tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from toolkit.formats.schema.definitions import Definitions, Json
from toolkit.formats.schema.kinds import Kind
from toolkit.formats.schema.mistakes import Mistakes
from toolkit.formats.settings.tree import YamlItem

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


@dataclass(frozen=True)
class Named(Kind):
    """A kind that many places take, under a name that JSON Schema refers to."""

    name: str
    kind: Kind

    @property
    def noun(self) -> str:  # type: ignore[override]
        return self.kind.noun

    @property
    def forms(self) -> frozenset[str]:  # type: ignore[override]
        return self.kind.forms

    def check(self, item: YamlItem, mistakes: Mistakes) -> None:
        self.kind.check(item, mistakes)

    def json(self, definitions: Definitions) -> Json:
        return definitions.refer(self.name, self.kind.json)


@dataclass(frozen=True)
class Lazy(Kind):
    """A kind that is found when it is needed, under a name that JSON Schema refers to."""

    name: str
    find: Callable[[], Kind] = field(compare=False)
    noun: str = "a value"
    forms: frozenset[str] = frozenset({"mapping", "list"})

    def check(self, item: YamlItem, mistakes: Mistakes) -> None:
        self.find().check(item, mistakes)

    def json(self, definitions: Definitions) -> Json:
        return definitions.refer(self.name, lambda made: self.find().json(made))


def json_schema(kind: Kind, title: str, description: str, stand_in: str | None = None) -> Json:
    """A kind as a JSON Schema document (draft 2020-12).

    Null, which a document may give for every key that it could leave out, is not in it.

    Args:
        stand_in: see `Definitions`.
    """
    definitions = Definitions(stand_in)
    body = kind.json(definitions)
    head: Json = {"$schema": _DIALECT, "title": title, "description": description}
    return head | body | ({"$defs": definitions.made} if definitions.made else {})
