"""What is laid over a picture: the costs that a run was measured to have."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolkit.errors import FormatError
from toolkit.formats import io
from toolkit.formats.records.timeline import read_trace
from toolkit.formats.records.traces import is_trace
from toolkit.formats.settings.documents import load_json


@dataclass(frozen=True, slots=True)
class Costs:
    """What a run was measured to cost, by node name.

    Attributes:
        values: time, or whatever a JSON file gives.
        unit: of the values.
        memory: bytes; empty when the file says nothing about memory.
    """

    values: dict[str, float]
    unit: str
    memory: dict[str, float] = field(default_factory=dict[str, float])


def read_costs(path: str) -> Costs:
    """Measured costs: a trace (see `toolkit.formats.records.timeline`), or JSON by node name.

    JSON is {"NODE": number, ...}, with an optional "unit" of type string.

    Raises:
        FormatError: it is none of these, or no node has a cost.
    """
    data = io.read_bytes(Path(path))
    if data.lstrip()[:1] == b"{" and not is_trace(data):
        return Costs(*_json_costs(data, path))
    trace = read_trace(path)
    return Costs(trace.costs(), "µs", trace.memory())


def _json_costs(data: bytes, path: str) -> tuple[dict[str, float], str]:
    content: Any = load_json(data, path)
    costs: dict[str, Any] = dict(content) if isinstance(content, dict) else {"": ""}  # pyright: ignore[reportUnknownArgumentType]
    unit = costs.pop("unit", "")
    if not all(isinstance(value, int | float) for value in costs.values()):
        raise FormatError('expected {"NODE": number, ...}', file=path)
    return {name: float(value) for name, value in costs.items()}, str(unit)
