"""Memory that is kept to be fast, and given back where there would be no room otherwise: that of recorded steps."""

from __future__ import annotations

import weakref
from typing import Protocol


class Spare(Protocol):
    """Who has such memory."""

    def spare(self) -> bool:
        """Give it back, unless it is being used; whether there was any."""
        ...


class Spares:
    """Those who have memory of a device to spare, in the order in which they took it."""

    def __init__(self) -> None:
        self._owners: dict[int, weakref.ref[Spare]] = {}  # by id; changed by one operation at a time

    def add(self, owner: Spare) -> None:
        """Have an owner be the last one who is asked."""
        self._owners.pop(id(owner), None)
        self._owners[id(owner)] = weakref.ref(owner)

    def give_back(self) -> bool:
        """Have the first one who can give back what he has; whether somebody could."""
        for number, found in list(self._owners.items()):
            owner = found()
            if owner is None or owner.spare():
                self._owners.pop(number, None)
                if owner is not None:
                    return True
        return False
