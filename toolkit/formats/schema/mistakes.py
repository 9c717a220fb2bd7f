"""What is wrong with a document, and with which of its values."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from toolkit.errors import GraphmillError
from toolkit.formats.settings.tree import YamlItem


class Mistakes:
    """What is wrong with a document, and with which of its values."""

    def __init__(self) -> None:
        self.errors: list[GraphmillError] = []
        self._said: set[tuple[str | None, str]] = set()
        self._open: list[tuple[YamlItem, bool]] = []
        self._wrong: set[int] = set()

    def __len__(self) -> int:
        return len(self.errors)

    def add(self, error: GraphmillError) -> None:
        """Note a mistake, once, of the values that are being checked."""
        if (error.file, error.message) not in self._said:
            self._said.add((error.file, error.message))
            self.errors.append(error)
        for item, is_entry in reversed(self._open):
            self._wrong.add(id(item))
            if is_entry:
                break

    @contextmanager
    def within(self, item: YamlItem, is_entry: bool = False) -> Generator[None]:
        """Within this, mistakes are also those of `item`; those of an entry are not those of what it is in."""
        self._open.append((item, is_entry))
        yield
        self._open.pop()

    def has(self, item: YamlItem) -> bool:
        """Whether something is wrong with a value, or in it outside of the entries in it."""
        return id(item) in self._wrong
