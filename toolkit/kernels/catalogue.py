"""What we know and can do for every op: signature, kernels, gradient, shape function."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from toolkit.client.gradients import registry as gradients
from toolkit.errors import UsageError, did_you_mean
from toolkit.graph import opdefs, plugins
from toolkit.graph.opdefs import ArgDef, AttrDef, OpDef
from toolkit.graph.shapes import registry as shapes
from toolkit.kernels import device_types, registry
from toolkit.kernels.registry import Kernel


@dataclass(frozen=True, slots=True)
class OpEntry:
    """One op.

    Attributes:
        kernels: every registration, best first.
        gradient: whether `gradients()` can go through it ("function" or "none" for ops that stop it), or None.
        shape_function: whether its output shapes can be inferred.
        plugin: the plugin that defines the op; None for TensorFlow's ops.
    """

    definition: OpDef
    kernels: tuple[Kernel, ...]
    gradient: str | None
    shape_function: bool
    plugin: str | None = None

    def as_json(self) -> dict[str, Any]:
        """{"name", "kernels": [{"device", "label", "kind", "types", "module"}], "dtypes", "gradient",
        "shape_function", "plugin"}."""
        return {
            "name": self.definition.name,
            "kernels": [
                {
                    "device": k.device_type,
                    "label": k.label,
                    "kind": k.kind.value,
                    "types": {attr: sorted(map(str, types)) for attr, types in k.types.items()},
                    "module": k.factory.__module__,
                }
                for k in self.kernels
            ],
            "dtypes": sorted({str(t) for k in self.kernels for types in k.types.values() for t in types}),
            "gradient": self.gradient,
            "shape_function": self.shape_function,
            "plugin": self.plugin,
        }


def entry(name: str) -> OpEntry:
    """What there is for one op.

    Raises:
        GraphError: there is no such op; close names are suggested.
    """
    definition = opdefs.get(name)
    kernels = _once(k for device in device_types.listed() for k in registry.candidates(name, device))
    has_shape = shapes.find(name) is not None
    return OpEntry(definition, kernels, gradients.kind_of(name), has_shape, opdefs.origin(name))


def catalogue() -> list[OpEntry]:
    """Every op of the registry, those of plugins and installed plugins too, by name."""
    plugins.load_installed()
    return [entry(name) for name in sorted(opdefs.names())]


def narrowed(entry: OpEntry, device: str) -> OpEntry:
    """What there is for an op on one type of device: its own kernels, and those that every device with a memory has.

    Raises:
        UsageError: there is no such type of device, or its kernels are those of another.
    """
    kind, known = device.upper(), device_types.listed()
    if kind not in known:
        hint = did_you_mean(kind, known, then=f"expected {' or '.join(known)}")
        raise UsageError(f"there are no kernels for '{device}' here{hint}")
    accepted = {kind, registry.DEFAULT} if device_types.has_memory(kind) else {kind}
    return replace(entry, kernels=tuple(k for k in entry.kernels if k.device_type in accepted))


def _once(kernels: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """Each kernel once: those of every device with a memory are found for each such device."""
    return tuple({id(each): each for each in kernels}.values())


def signature(definition: OpDef) -> str:
    """An op's signature for reading: `Conv2D(input: T, filter: T) -> output: T`."""
    inputs = ", ".join(f"{a.name}: {_type(a)}" for a in definition.inputs)
    outputs = ", ".join(f"{a.name}: {_type(a)}" for a in definition.outputs) or "nothing"
    return f"{definition.name}({inputs}) -> {outputs}"


def _type(arg: ArgDef) -> str:
    base = arg.type_list_attr or arg.type_attr or str(arg.type)
    if arg.number_attr:
        base = f"{arg.number_attr} * {base}"
    return f"Ref({base})" if arg.is_ref else base


def attribute(definition: AttrDef) -> str:
    """An attribute for reading: `padding: string in {SAME, VALID} = SAME`."""
    text = f"{definition.name}: {definition.type}"
    if definition.allowed is not None:
        text += " in {" + ", ".join(map(_value, definition.allowed)) + "}"
    if definition.minimum is not None:
        text += f" >= {definition.minimum}"
    return f"{text} = {_value(definition.default)}" if definition.has_default else text


def _value(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
