"""The parts of a JSON Schema that others refer to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Json = dict[str, Any]


class Definitions:
    """The parts of a JSON Schema that others refer to.

    Args:
        stand_in: a pattern of texts that may stand for any value, such as those that name a parameter.
    """

    def __init__(self, stand_in: str | None = None) -> None:
        self.made: dict[str, Json] = {}
        self._stand_in = stand_in

    def value(self, kind: Json) -> Json:
        """A single value, or what may stand for it."""
        if self._stand_in is None:
            return kind
        pattern = self._stand_in
        return {"anyOf": [kind, self.refer("parameter", lambda _: {"type": "string", "pattern": pattern})]}

    def refer(self, name: str, make: Callable[[Definitions], Json]) -> Json:
        """A reference to the definition of a name, which is made when it is first asked for."""
        if name not in self.made:
            self.made[name] = {}
            self.made[name] = make(self)
        return {"$ref": f"#/$defs/{name}"}
