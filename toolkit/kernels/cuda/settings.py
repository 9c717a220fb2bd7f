"""Which of the machine's GPUs there are, and what sessions say about them.

GPUs belong to the process: what a session says holds for all (TensorFlow's GPUOptions, `DeviceOptions` here). How much
memory tensors may take can be said again at any time; which GPU has which name only until the first one is used.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from toolkit.errors import UsageError
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.base import Driver
from toolkit.kernels.device_options import DeviceOptions

if TYPE_CHECKING:
    from toolkit.kernels.cuda.device import CudaDevice

_current = DeviceOptions()
#: the GPUs that have been used, by number
_used: WeakKeyDictionary[Driver, dict[int, CudaDevice]] = WeakKeyDictionary()


def used_with(driver: Driver) -> dict[int, CudaDevice]:
    """The GPUs of a driver that have been used, by number; whoever makes one puts it there."""
    found = _used.get(driver)
    return _used.setdefault(driver, {}) if found is None else found


def opened() -> list[CudaDevice]:
    """The GPUs that have been used."""
    driver = choose.known()
    return [] if driver is None else list(used_with(driver).values())


def configure(options: DeviceOptions) -> None:
    """Take what a session says; what it does not say stays.

    Raises:
        UsageError: there is no GPU; GPUs would change their names while they are in use; there is no such GPU.
    """
    global _current
    said = {each.name: value for each in fields(options) if (value := getattr(options, each.name)) is not None}
    wanted, used = replace(_current, **said), opened()
    if wanted.visible != _current.visible:
        there = choose.driver().count()
        strange = next((number for number in wanted.visible or () if number >= there), None)
        if strange is not None:
            raise UsageError(f"there is no GPU number {strange} here to be visible; the machine has {there}")
        renamed = [one.name for one in used if _number(wanted, one.index) != _number(_current, one.index)]
        if renamed:
            raise UsageError(
                f"{renamed[0]} is in use: which GPU it is was said before, and holds until the end of the process"
            )
    _current = wanted
    for device in used:
        tell(device)


def tell(device: CudaDevice) -> None:
    """Have a GPU be as was said."""
    limit = _current.memory
    if isinstance(limit, float):
        limit = int(limit * device.properties.memory)
    if limit is not None:
        device.pool.budget.limit = min(limit, device.properties.memory)
    if _current.deterministic is not None:
        device.deterministic = _current.deterministic


def grows() -> bool:
    """Whether memory is taken as it is needed."""
    return _current.grows is not False


def count() -> int:
    """How many GPUs there are for sessions.

    Raises:
        UsageError: there is none; the message says what is missing.
    """
    there = choose.driver().count()
    return there if _current.visible is None else len(_current.visible)


def number_of(index: int) -> int:
    """The machine's number of GPU:index.

    Raises:
        UsageError: there is none of that name.
    """
    there = count()
    if not 0 <= index < there:
        names = "one GPU, GPU:0" if there == 1 else f"GPU:0 to GPU:{there - 1}"
        raise UsageError(f"there is no GPU:{index} here; there is {names}")
    return _number(_current, index)


def _number(options: DeviceOptions, index: int) -> int:
    return index if options.visible is None else options.visible[index] if index < len(options.visible) else -1


def forget() -> None:
    """Nothing was said; for tests."""
    global _current
    _current = DeviceOptions()
