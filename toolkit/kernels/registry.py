"""The kernel registry.

A kernel is registered as a *factory*, called once when a step is compiled (TensorFlow's OpKernelConstruction):

    @kernel("Conv2D", types={"T": FLOATING})
    def conv2d(op: KernelNode) -> Compute:
        strides = op.attr("strides")           # all attribute work happens here
        def compute(x, w):                     # called once per execution
            return ...
        return compute

`compute` takes the input values in order and returns the output value, or a tuple/list of them when the op has
several outputs or a variable number, or None when it has none. Values are numpy arrays on the CPU (strings:
object arrays of bytes; a resource: the handle object; a variant: the Python object, both as they are, not
wrapped in arrays). Computes never change their inputs and may return them or views of them.

`kind` says how it is called:

| kind | call |
|---|---|
| PURE | compute(*inputs) |
| STATEFUL | compute(step, *inputs): needs the StepContext (resources, random state, functions, ...) |
| ASYNC | compute(step, done, *inputs): returns at once; later, from any thread, done(outputs) or done(error) |

A reference input (OpDef is_ref, or a ref-typed edge the op accepts) arrives as the `RefVariable` object itself;
where an op wants a plain tensor the executor passes the variable's present array.
"""

from __future__ import annotations

import enum
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.errors import GraphError, InvalidArgumentError, UnimplementedError, did_you_mean
from toolkit.forks import held_over_forks
from toolkit.graph import arity, dtypes, opdefs, plugins
from toolkit.graph.dtypes import DType
from toolkit.graph.functions import FunctionLibrary
from toolkit.graph.node import Node
from toolkit.kernels import device_types, index
from toolkit.policy import outside
from toolkit.policy.access import Access, Files
from toolkit.policy.rules import Policy
from toolkit.target import rows
from toolkit.target.target import Target

Compute = Callable[..., Any]


class Kind(enum.Enum):
    PURE = "pure"
    STATEFUL = "stateful"
    ASYNC = "async"


class KernelNode:
    """What a factory sees of its node: attributes, types, names; never the running step.

    Attributes:
        name, op, device: of the node.
        input_types, output_types: base (non-reference) types, one per tensor.
        ref_inputs: for each input, whether it arrives as a RefVariable.
        library: the functions the graph can call.
        node: the node itself, for what is not offered here.
        is_own: somebody has asked for what other nodes of one kind do not share: name, device, functions, files, or
            the node itself.
        target: the processor that it is for.
        device_type: of the device that runs it, which need not be the one that the node asks for; "" where nobody
            has said, and the node's own holds.

    Args:
        access: what the session's policy lets its programs touch; nothing by default.
        target: by default this processor.
    """

    __slots__ = (
        "__weakref__", "_access", "_decoded", "_node", "device_type", "input_types", "is_own", "op", "output_types",
        "ref_inputs", "target",
    )  # fmt: skip

    def __init__(self, node: Node, access: Access | None = None, target: Target | None = None, device_type: str = ""):
        self._node = node
        self.device_type = device_type
        self._access = access
        self.target = rows.current() if target is None else target
        self.is_own = False
        self.op = node.op
        self.ref_inputs = [t.is_ref for t in node.input_types]
        self.input_types = [t.base for t in node.input_types]
        self.output_types = [t.base for t in node.output_types]
        self._decoded: dict[str, Any] = {}

    @property
    def node(self) -> Node:
        self.is_own = True
        return self._node

    @property
    def name(self) -> str:
        self.is_own = True
        return self._node.name

    @property
    def device(self) -> str:
        self.is_own = True
        return self._node.device

    @property
    def library(self) -> FunctionLibrary:
        self.is_own = True
        return self._node.graph.library

    def attr(self, name: str, default: Any = ...) -> Any:
        """A decoded attribute (bytes, int, float, bool, DType, Shape, TensorProto, FuncRef, or a list).

        Raises:
            InvalidArgumentError: it is missing or not what the OpDef declares.
        """
        try:
            return self._decoded[name]
        except KeyError:
            pass
        try:
            value = self._node.attr(name, default)
        except GraphError as error:
            raise InvalidArgumentError(error.message, node=error.node) from None
        if default is ... or name in self._node.attrs:
            self._decoded[name] = value
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """A string attribute as `str`."""
        try:
            return self._node.text(name, ... if default is None else default)
        except GraphError as error:
            raise InvalidArgumentError(error.message, node=error.node) from None

    def int32(self, name: str) -> int:
        """An integer that TensorFlow reads into 32 bits.

        Raises:
            InvalidArgumentError: it has more.
        """
        value: int = self.attr(name)
        if not -(1 << 31) <= value < 1 << 31:
            raise InvalidArgumentError(f"attribute '{name}' is {value}, out of range for an int32", node=self.name)
        return value

    def has(self, name: str) -> bool:
        return name in self._node.attrs

    @property
    def files(self) -> Files:
        """The door to the outside: kernels touch no path that did not come through it."""
        return Files(_CLOSED if self._access is None else self._access, self.name, self.op)


#: for kernels that are made outside of any session
_CLOSED = Access(Policy(output=False))
Factory = Callable[[KernelNode], Compute]
#: gives the compute of a node by its name
NamedCompute = Callable[[str], Compute]


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Kernel:
    """One registration."""

    op: str
    device_type: str
    types: Mapping[str, frozenset[DType]]
    priority: int
    kind: Kind
    factory: Factory
    label: str  # "numpy", "onednn", ...: which implementation, for reports
    available: Callable[[], bool] = _always  # whether it can run here
    is_foreign: bool = False  # a plugin's: what it returns is looked at

    @property
    def defines(self) -> bool:
        """Whether it is what the op means here; those of libraries are held to it within their rounding."""
        return self.label != "onednn"

    def accepts(self, node: Node) -> bool:
        for attr, allowed in self.types.items():
            value = node.attr(attr)
            if isinstance(value, list):
                if not all(v.base in allowed for v in value):  # type: ignore[attr-defined]
                    return False
            elif value.base not in allowed:
                return False
        return True


FLOATING = frozenset({dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64})
COMPLEX = frozenset({dtypes.complex64, dtypes.complex128})
SIGNED = frozenset({dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64})
UNSIGNED = frozenset({dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64})
INTEGER = SIGNED | UNSIGNED
REAL = FLOATING | INTEGER
NUMBER = REAL | COMPLEX
INDEX = frozenset({dtypes.int32, dtypes.int64})

#: stands for every device type with a memory of its own that has no kernel of its own for an op
DEFAULT = "DEFAULT"
_DEFAULT_PACKAGES = ("toolkit.kernels.default",)

_kernels: dict[tuple[str, str], list[Kernel]] = {}
#: what finds kernels of an op for a type of device with a memory of its own, behind all others
further: list[Callable[[str, str], Iterable[Kernel]]] = []
_loaded: set[str] = set()
#: (op, device type) whose modules have been imported, though not all modules of the device type
_loaded_ops: set[tuple[str, str]] = set()
_load_lock = held_over_forks()


def kernel(
    *ops: str,
    types: Mapping[str, Iterable[DType | str]] | None = None,
    device: str = "CPU",
    priority: int = 0,
    kind: Kind = Kind.PURE,
    label: str = "",
    available: Callable[[], bool] = _always,
) -> Callable[[Factory], Factory]:
    """Register a factory for one or more ops.

    Args:
        types: attribute name to the types this kernel takes, or their names ("float", "int32"); attributes left out
            are not constrained.
        device: the device type, which is there (`toolkit.kernels.device_types`).
        priority: the highest that accepts a node wins.
        label: which implementation it is, for reports (default: "numpy", on GPUs "cuda", "plugin" from a plugin).
        available: whether it can run here, asked again for every node: without its library it is as if it were not
            registered.

    Raises:
        GraphError: the same op, device, priority and types are registered already; the op reaches outside (see
            `toolkit.policy.outside`) and the kernel is PURE; a plugin names an op, an attribute or a device type that
            does not exist.
        GraphmillError: there is no type of such a name.
    """
    constraint = {attr: frozenset(map(_dtype, allowed)) for attr, allowed in (types or {}).items()}

    def register(factory: Factory) -> Factory:
        foreign = plugins.registers(factory)
        reaching = next((op for op in ops if kind is Kind.PURE and outside.has_effects(op)), None)
        if reaching is not None:
            raise GraphError(
                f"{reaching} reaches outside of the process, and a PURE kernel may be folded or left out while a step "
                "is compiled; register it with kind=Kind.STATEFUL"
            )
        if foreign:
            _check_foreign(ops, constraint, factory, device)
            factory = arity.checked(factory, kind.value)
        called = label or ("plugin" if foreign else "cuda" if device == "GPU" else "numpy")
        for op in ops:
            add(Kernel(op, device, constraint, priority, kind, factory, called, available, foreign))
        return factory

    return register


#: by factory of `named_kernel`, what it is made of
_makers: dict[Factory, Callable[[KernelNode], NamedCompute]] = {}


def named_kernel(
    *ops: str, kind: Kind = Kind.PURE
) -> Callable[[Callable[[KernelNode], NamedCompute]], Callable[[KernelNode], NamedCompute]]:
    """Register what gives the computes of nodes that differ in their names alone, such as variables.

    It is given one node, of which it must not ask the name, and returns what makes the compute for any name.
    """

    def register(maker: Callable[[KernelNode], NamedCompute]) -> Callable[[KernelNode], NamedCompute]:
        def factory(op: KernelNode) -> Compute:
            return maker(op)(op.name)

        factory.__module__ = maker.__module__  # reports say where a kernel is
        _makers[factory] = maker
        kernel(*ops, kind=kind)(factory)
        return maker

    return register


def by_names(entry: Kernel, node: KernelNode) -> NamedCompute | None:
    """What makes the computes of a kernel for the names of nodes; None where a node is needed for each."""
    maker = _makers.get(entry.factory)
    return None if maker is None else maker(node)


def _dtype(given: DType | str) -> DType:
    return dtypes.from_name(given) if isinstance(given, str) else given


def add(entry: Kernel) -> None:
    """Put one kernel into the table.

    Raises:
        GraphError: the same op, device, priority and types are registered already.
    """
    entries = _kernels.setdefault((entry.op, entry.device_type), [])
    for other in entries:
        if other.priority == entry.priority and _overlap(other.types, entry.types):
            raise GraphError(
                f"two {entry.device_type} kernels for '{entry.op}' take the same types at priority {entry.priority}"
            )
    entries.append(entry)
    entries.sort(key=lambda one: -one.priority)


def simple(
    *ops: str,
    types: Mapping[str, Iterable[DType | str]] | None = None,
    device: str = "CPU",
    priority: int = 0,
    label: str = "",
) -> Callable[[Compute], Compute]:
    """Register a compute that needs no attributes: `@simple("Neg")` over `def neg(x)`."""

    def register(compute: Compute) -> Compute:
        if plugins.registers(compute):
            for op in ops:
                count = opdefs.require_for(op, "a kernel").fixed_count("inputs")
                if count is not None:
                    arity.require(compute, count, f"{op} has {count} input(s)")

        def factory(op: KernelNode) -> Compute:
            return compute

        factory.__module__ = compute.__module__  # reports say where a kernel is
        kernel(*ops, types=types, device=device, priority=priority, label=label)(factory)
        return compute

    return register


def _check_foreign(ops: Sequence[str], types: Mapping[str, Any], factory: Factory, device: str) -> None:
    """What a plugin may get wrong and our own families do not."""
    arity.require(factory, 1, "a kernel factory takes one argument, the KernelNode")
    if device not in device_types.names():
        known = device_types.names()
        raise GraphError(
            f"a kernel for {ops[0]} on '{device}', which is no device type{did_you_mean(device, known)}; expected "
            f"{', '.join(known)}, or one that the plugin has registered before"
        )
    for op in ops:
        definition = opdefs.require_for(op, "a kernel")
        unknown = next((attr for attr in types if attr not in definition.attrs), None)
        if unknown is not None:
            raise GraphError(f"a kernel for {op} constrains '{unknown}', but the op has no such attribute")
        if opdefs.origin(op) is None:
            load(device)  # to know which kernels it has


def _overlap(a: Mapping[str, frozenset[DType]], b: Mapping[str, frozenset[DType]]) -> bool:
    return all(a[key] & b[key] for key in a.keys() & b.keys())


def load(device_type: str) -> None:
    """Import every kernel module of a device type, or of DEFAULT; done once."""
    with _load_lock:
        if device_type in _loaded:
            return
        packages = _DEFAULT_PACKAGES if device_type == DEFAULT else device_types.packages(device_type)
        for package_name in packages:
            package = importlib.import_module(package_name)
            for info in pkgutil.walk_packages(package.__path__, package_name + "."):
                importlib.import_module(info.name)
        _loaded.add(device_type)


def _load_for(op: str, device_type: str) -> None:
    """Import the modules with an op's kernels, or all of the device type where the index does not know them."""
    if device_type in _loaded or (op, device_type) in _loaded_ops:
        return
    known = index.modules(device_type).get(op)
    if known is None:
        load(device_type)
        return
    with _load_lock:
        for module in known:
            importlib.import_module(module)
    _loaded_ops.add((op, device_type))


def candidates(op: str, device_type: str) -> Sequence[Kernel]:
    """The kernels of an op on a device type that can run here, best first."""
    _load_for(op, device_type)
    found = _kernels.get((op, device_type))
    if found is None and plugins.load_installed():
        found = _kernels.get((op, device_type))
    if device_types.has_memory(device_type):
        load(DEFAULT)
        found = [*(found or ()), *_kernels.get((op, DEFAULT), ())]
        for find_more in further:
            found += find_more(op, device_type)
    return [entry for entry in found or () if entry.available()]


def find(node: Node, device_type: str = "CPU", *, defining: bool = False) -> Kernel | None:
    """The kernel that would run this node on a device type, or None.

    Args:
        defining: only kernels that define the op, not faster ones of libraries.
    """
    for entry in candidates(node.op, device_type):
        if (entry.defines or not defining) and entry.accepts(node):
            return entry
    return None


#: why the kernels of some ops have nothing to call in the graph of a file
PYTHON_FUNCTION = (
    ": it calls a Python function of the program that made the graph, which is not in the file; export the model "
    "without it"
)
_PYTHON_OPS = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})


def lacking(op: str, device_type: str = "CPU") -> str:
    """That an op of a file has no kernel at all on a device type, and why; "" when it has one."""
    if op in _PYTHON_OPS:
        return f"there is no {device_type} kernel for {op}{PYTHON_FUNCTION}"
    if candidates(op, device_type):
        return ""
    load(device_type)
    known = {op for op, device in _kernels if device == device_type}
    return f"there is no {device_type} kernel for {op}{did_you_mean(op, known)}"


def get(node: Node, device_type: str = "CPU", *, defining: bool = False) -> Kernel:
    """The kernel that runs this node.

    Args:
        defining: see `find`.

    Raises:
        UnimplementedError: there is none for the op, or none for its types.
    """
    found = find(node, device_type, defining=defining)
    if found is not None:
        return found
    lack = lacking(node.op, device_type)
    if lack:
        raise UnimplementedError(lack, node=node.name)
    entries = candidates(node.op, device_type)
    given = {attr: str(node.attr(attr)) for entry in entries for attr in entry.types}
    choices = " or ".join(
        ", ".join(f"{attr} in {{{', '.join(sorted(map(str, allowed)))}}}" for attr, allowed in entry.types.items())
        for entry in entries
    )
    raise UnimplementedError(
        f"no {device_type} kernel for {node.op} takes {given}; there are kernels for {choices}", node=node.name
    )


def all_kernels(device_type: str | None = None) -> list[Kernel]:
    """Every registered kernel, by op name."""
    for kind in device_types.listed() if device_type is None else [device_type]:
        load(kind)
    return [
        entry
        for (_, device), entries in sorted(_kernels.items())
        for entry in entries
        if device == device_type or (device_type is None and device in device_types.listed())
    ]
