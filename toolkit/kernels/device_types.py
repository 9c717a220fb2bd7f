"""Types of devices: where their kernels are registered, and the memory that they own.

A device type is a package of kernels and one registration here, by `register` or by a plugin. The CPU computes in host
memory; every other device has a memory of its own, in and out of which tensors are copied, and whose arrays nobody
else may look into.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.errors import GraphError, GraphmillError, UsageError, did_you_mean
from toolkit.kernels.device_memory import DeviceMemory
from toolkit.kernels.device_options import DeviceOptions


@dataclass(frozen=True, slots=True)
class DeviceType:
    """Attributes:
    name: as in device names: "CPU", "GPU", "NULL".
    packages: their modules register the kernels when they are imported.
    like: the type in TensorFlow's registrations that says which arguments stay in host memory.
    memory: of the device with a number; None where it computes in host memory.
    watch: what is put around each kernel, given its node's name, so that somebody sees what it touches.
    count: how many there are on this machine, raising UsageError where there are none; None: as many as are wanted.
    configure: takes what a session says about them.
    lists: the module whose `space` gives where the elements of lists are on the device with a number
        (`toolkit.kernels.resources.tensor_space`); "" for host memory.
    is_derived: its kernels are made of those of another type, so that lists of kernels leave them out.
    """

    name: str
    packages: Sequence[str]
    like: str = ""
    memory: Callable[[int], DeviceMemory] | None = None
    count: Callable[[], int] | None = None
    configure: Callable[[DeviceOptions], None] | None = None
    is_derived: bool = False
    watch: Callable[[Callable[..., Any], str], Callable[..., Any]] | None = None
    lists: str = ""


_types: dict[str, DeviceType] = {}


def register(device_type: DeviceType) -> None:
    """Add a device type.

    Raises:
        GraphError: there is one of this name.
    """
    if device_type.name in _types:
        raise GraphError(f"there are two device types called {device_type.name}")
    _types[device_type.name] = device_type


def names() -> list[str]:
    """The device types that there are."""
    return list(_types)


def listed() -> list[str]:
    """Those with kernels of their own."""
    return [name for name, known in _types.items() if not known.is_derived]


def packages(name: str) -> Sequence[str]:
    """Where the kernels of a device type are; nothing for one that is not there."""
    found = _types.get(name)
    return () if found is None else found.packages


def described_by(name: str) -> str:
    """The device type whose registrations in TensorFlow hold for one."""
    found = _types.get(name)
    return name if found is None or not found.like else found.like


def is_foreign(name: str) -> bool:
    """Whether a plugin brought a device type, of whose kernels TensorFlow's registrations say nothing."""
    return name in _types and name not in _OURS


def has_memory(name: str) -> bool:
    """Whether devices of a type have a memory of their own."""
    found = _types.get(name)
    return found is not None and found.memory is not None


def keeps_variables(name: str) -> bool:
    """Whether variables on devices of a type lie in their memory: its own kernels read and write them."""
    found = _types.get(name)
    return found is not None and found.memory is not None and not found.is_derived and not is_foreign(name)


def lists(name: str, index: int) -> Any:
    """Where the elements of lists are on a device (a `TensorSpace`); None for host memory."""
    found = _types.get(name)
    return None if found is None or not found.lists else importlib.import_module(found.lists).space(index)


def memory(name: str, index: int) -> DeviceMemory | None:
    """The memory of a device; None for host memory.

    Raises:
        UsageError: there is no such device type here.
    """
    found = _types.get(name)
    if found is None:
        raise _unknown(name)
    return None if found.memory is None else _made(found, index)


def require(name: str, count: int, options: DeviceOptions | None = None) -> None:
    """Make sure that so many devices of a type are there, which are not opened for it.

    Args:
        options: what is said about them.

    Raises:
        UsageError: there are fewer; the options cannot be.
    """
    found = _types.get(name)
    if found is None:
        raise _unknown(name)
    if options is not None and found.configure is not None:
        found.configure(options)
    if found.count is not None and (there := found.count()) < count:
        names = f"{name}:0" if there == 1 else f"{name}:0 to {name}:{there - 1}"
        raise UsageError(f"there cannot be {count} devices of type {name} here; there is {names}")


def there(name: str) -> int:
    """How many devices of a type are on this machine; 0 where there is none."""
    found = _types.get(name)
    if found is None or found.count is None:
        return 0
    try:
        return found.count()
    except UsageError:
        return 0


def _unknown(name: str) -> UsageError:
    expected = ", ".join(_types)
    return UsageError(
        f"there is no device of type {name} here" + did_you_mean(name, _types, then=f"expected {expected}")
    )


#: what is asked of a memory
_METHODS = ("copy_in", "copy_out", "owns", "synchronize", "statistics")


def _made(device_type: DeviceType, index: int) -> DeviceMemory:
    """The memory that a device type makes, which a plugin may have wrong.

    Raises:
        GraphError: it cannot be made, or lacks a method.
    """
    assert device_type.memory is not None
    try:
        found = device_type.memory(index)
    except GraphmillError:
        raise
    except Exception as error:
        raise GraphError(
            f"the memory of {device_type.name}:{index} cannot be made: {type(error).__name__}: {error}"
        ) from error
    lacking = [name for name in _METHODS if not callable(getattr(found, name, None))]
    if lacking:
        raise GraphError(
            f"the memory of {device_type.name}:{index}, a {type(found).__name__}, has no method {', '.join(lacking)}"
        )
    return found


def watched(name: str, compute: Callable[..., Any], node: str) -> Callable[..., Any]:
    """A kernel of a device type as it is run for a node."""
    found = _types.get(name)
    return compute if found is None or found.watch is None else found.watch(compute, node)


def _guarded(compute: Callable[..., Any], node: str) -> Callable[..., Any]:
    from toolkit.kernels.cpu.memory import guard  # loaded with the first kernel

    return guard.checked(compute, node) if guard.is_on() else compute


def _null(index: int) -> DeviceMemory:
    from toolkit.kernels.null.memory import memory_of  # loaded when it is asked for

    return memory_of(index)


def _gpu(index: int) -> DeviceMemory:
    from toolkit.kernels.cuda.device import memory_of  # loaded when it is asked for

    return memory_of(index)


def _count_gpus() -> int:
    from toolkit.kernels.cuda.settings import count

    return count()


def _configure_gpus(options: DeviceOptions) -> None:
    from toolkit.kernels.cuda.settings import configure

    configure(options)


register(DeviceType("CPU", ("toolkit.kernels.cpu",), watch=_guarded))
register(DeviceType("NULL", ("toolkit.kernels.null",), like="GPU", memory=_null, is_derived=True, watch=_guarded))
register(
    DeviceType(
        "GPU",
        ("toolkit.kernels.gpu",),
        memory=_gpu,
        count=_count_gpus,
        configure=_configure_gpus,
        lists="toolkit.kernels.gpu.lists.tensor_space",
    )
)
_OURS = frozenset(_types)
