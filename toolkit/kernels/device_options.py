"""What a session may say about the devices of a type, before they are first used (TensorFlow's GPUOptions)."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.errors import UsageError
from toolkit.formats.settings.quantities import BYTES, read_quantity


@dataclass(frozen=True, slots=True)
class DeviceOptions:
    """Devices belong to the process, and all sessions share them: what is None stays as an earlier session said.

    Attributes:
        memory: how much of a device's memory tensors may take: bytes as an int, a part of it (0 to 1) as a float.
        grows: memory is taken from the device as it is needed; else all of `memory` at first.
        visible: which of the machine's devices there are, by number, in the order of their names: with (2, 0), GPU:0
            is the machine's third one.
        deterministic: kernels whose results depend on the order of threads are not used.
    """

    memory: int | float | None = None
    grows: bool | None = None
    visible: tuple[int, ...] | None = None
    deterministic: bool | None = None

    def __post_init__(self) -> None:
        if isinstance(self.memory, float) and not 0 < self.memory <= 1:
            raise UsageError(f"the part of a device's memory is {self.memory:g}; expected more than 0, and 1 at most")
        if isinstance(self.memory, int) and self.memory <= 0:
            raise UsageError(f"a device's memory is limited to {self.memory} bytes; expected more than 0")
        if self.visible is not None:
            twice = {number for number in self.visible if self.visible.count(number) > 1}
            if twice or min(self.visible, default=0) < 0:
                raise UsageError(f"visible devices are {list(self.visible)}; expected numbers from 0 on, each once")


def parse_memory(text: str) -> int | float:
    """Bytes of "4G", a part of "0.5".

    Raises:
        UsageError: it is neither.
    """
    try:
        part = float(text)
    except ValueError:
        return int(read_quantity(text, BYTES, "8G, or of 0.5 for a half"))
    if 0 < part <= 1:
        return part
    if part > 1 and part.is_integer():
        return int(part)
    raise UsageError(f"'{text}' is no amount of memory; expected bytes, as 8G, or a part of it, as 0.5")


def parse_visible(text: str) -> tuple[int, ...] | None:
    """The numbers in "1,0"; None for an empty text, which is all of them.

    Raises:
        UsageError: it is no list of numbers.
    """
    if not text.strip():
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and len(part) <= _DIGITS for part in parts):
        raise UsageError(f"visible_device_list is '{text}'; expected numbers of devices, as in '0,2'")
    return tuple(map(int, parts))


_DIGITS = 4  # of the number of a device
