"""What a stateful kernel may ask of the step it runs in (TensorFlow's OpKernelContext).

Kernels see only these protocols; `toolkit.runtime` implements them, locally today, over a network tomorrow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from toolkit.graph.attrs import FuncRef
from toolkit.graph.dtypes import DType
from toolkit.graph.functions import FunctionLibrary

T = TypeVar("T")
Done = Callable[[Any], None]


class _Dead:
    """The value of an output on a branch that was not taken."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<dead>"

    def copy(self) -> _Dead:
        """What may be dead is copied like any array where somebody keeps it."""
        return self


DEAD = _Dead()


class Resources(Protocol):
    """Named objects that live longer than a step: variables, queues, tables, by container and name."""

    def get(self, container: str, name: str, kind: type[T]) -> T:
        """Raises NotFoundError when there is none, InvalidArgumentError when it is of another kind."""
        ...

    def get_or_create(self, container: str, name: str, kind: type[T], make: Callable[[], T]) -> T: ...

    def create(self, container: str, name: str, value: object) -> None:
        """Raises AlreadyExistsError."""
        ...

    def delete(self, container: str, name: str) -> None: ...


class Rendezvous(Protocol):
    """Where tensors that cross devices meet: the key is sender;incarnation;receiver;name;frame:iteration."""

    def send(self, key: str, value: Any, is_dead: bool = False) -> None: ...

    def recv_async(self, key: str, done: Callable[[Any, bool, BaseException | None], None]) -> None:
        """`done(value, is_dead, error)` is called once, possibly from another thread."""
        ...

    def abort(self, error: Any = None) -> None:
        """Fail everyone who waits, and who comes later; the first error stays."""
        ...


class Cancellation(Protocol):
    """Tells kernels that wait that the step is over."""

    @property
    def is_cancelled(self) -> bool: ...

    def register(self, callback: Callable[[], None]) -> int:
        """The callback runs once on cancellation; returns a token for `deregister`; -1 when already cancelled."""
        ...

    def deregister(self, token: int) -> None: ...


class Functions(Protocol):
    """Calls functions of the library (FunctionLibraryRuntime)."""

    def prepare(
        self,
        library: FunctionLibrary,
        ref: FuncRef,
        site: str = "",
        types: tuple[Sequence[DType] | None, Sequence[DType] | None] | None = None,
        *,
        to_host: bool = False,
    ) -> Callable[[Sequence[Any], StepContext], list[Any]]:
        """A compiled function, `call(args, step) -> results`; compiled once per session and attributes.

        Args:
            site: what calls it; each site has random numbers of its own.
            types: of the arguments that it will be given, and of the results that are expected.
            to_host: the caller looks into the results.

        Raises:
            GraphError: there is no such function, or its body is malformed.
            InvalidArgumentError: it takes or returns other types.
        """
        ...

    def run(
        self, library: FunctionLibrary, ref: FuncRef, args: Sequence[Any], step: StepContext, site: str = ""
    ) -> list[Any]:
        """Run a function to the end and return its results."""
        ...


class StepContext(Protocol):
    """The running step."""

    @property
    def step_id(self) -> int: ...

    @property
    def resources(self) -> Resources:
        """Objects of the session (or of its shared containers)."""
        ...

    @property
    def step_resources(self) -> Resources:
        """Objects of this step alone (TensorArrays, stacks, temporary variables); dropped at its end."""
        ...

    @property
    def rendezvous(self) -> Rendezvous: ...

    @property
    def cancellation(self) -> Cancellation: ...

    @property
    def functions(self) -> Functions:
        """Calls functions in host memory."""
        ...

    @property
    def device_functions(self) -> Functions:
        """Calls functions on the device of the node that calls, in whose memory their tensors stay."""
        ...

    @property
    def graph_seed_state(self) -> dict[str, Any]:
        """Per-session state of random kernels, by node name (within a function, of this call site); a kernel owns
        its entry."""
        ...

    @property
    def frame_iter(self) -> tuple[int, int]:
        """Which loop frame and iteration runs now: part of the rendezvous keys."""
        ...


class RefVariable:
    """A ref-typed variable (VariableV2): a cell that ref edges carry.

    `value` is None until it is initialised. Kernels replace `value`, or write into the array that `writable`
    returns, holding `lock`.
    """

    __slots__ = ("__weakref__", "dtype", "lock", "name", "shape", "value")

    def __init__(self, name: str, dtype: Any, shape: Any, lock: Any):
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.lock = lock
        self.value: Any = None
