"""graphmill.yaml: one section for each command that reads it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

from toolkit.errors import UsageError
from toolkit.formats import io
from toolkit.formats.models.own import is_below, own_places
from toolkit.formats.settings.documents import load_yaml

FILE_NAME = "graphmill.yaml"


def read_section(path: str, name: str) -> dict[Any, Any]:
    """A section of a configuration; empty where the file has none of that name.

    Raises:
        GraphmillError: the file cannot be read, is no YAML, or is not made of sections.
    """
    content = load_yaml(io.read_bytes(path), path)
    if content is None:
        return {}
    section = _mapping(content, "the file", path).get(name)
    return {} if section is None else _mapping(section, f"'{name}'", path)


def here() -> str | None:
    """The configuration of the working directory, where there is one."""
    return FILE_NAME if Path(FILE_NAME).is_file() else None


def came_with(source: str, path: str) -> bool:
    """Whether a configuration that nobody named lies among a model's own files, so that whoever made the model may
    have written it.

    Args:
        source: the model's file or folder; "" or "-" for one that came from elsewhere.
    """
    if source in ("", io.STDIO):
        return False
    real = os.path.realpath(path)
    return any(is_below(real, own) for own in own_places(source))


def _mapping(value: Any, what: str, path: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{what} must be a mapping of keys to values", file=path)
    return cast("dict[Any, Any]", value)
