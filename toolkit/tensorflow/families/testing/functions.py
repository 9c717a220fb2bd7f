# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.test: functions beside its test cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def assert_equal_graph_def(
    actual: Any, expected: Any, checkpoint_v2: bool = False, hash_table_shared_name: bool = False
) -> None:
    """
    Raises:
        TypeError: one is no GraphDef; AssertionError: they have other nodes.
    """
    for each in (actual, expected):
        if not hasattr(each, "node") or not hasattr(each, "versions"):
            raise TypeError(f"a GraphDef is compared, not {type(each).__name__}")
    ours, theirs = ({node.name: node for node in graph.node} for graph in (actual, expected))
    names = sorted(ours.keys() ^ theirs.keys())
    if names:
        raise AssertionError(f"only one of the graphs has the node '{names[0]}' ({len(names)} such nodes)")
    for name, node in ours.items():
        if node != theirs[name]:
            raise AssertionError(f"the node '{name}' differs:\\n{node}\\nand\\n{theirs[name]}".replace("\\n", "\n"))


def compute_gradient(
    x: Any, x_shape: Any, y: Any, y_shape: Any, x_init_value: Any = None, delta: float = 1e-3, init_targets: Any = None,
    extra_feed_dict: Any = None,
) -> Any:  # fmt: skip
    """The Jacobian of y by x, [size of x, size of y], by its gradient and by differences; a list for a list of x."""
    many = isinstance(x, list)
    values = [x_init_value] if not many else list(x_init_value or [None] * len(x))
    found = [
        _jacobians(one, shape, y, y_shape, value, delta, init_targets, extra_feed_dict)
        for one, shape, value in zip(x if many else [x], x_shape if many else [x_shape], values, strict=True)
    ]
    return found if many else found[0]


def compute_gradient_error(
    x: Any, x_shape: Any, y: Any, y_shape: Any, x_init_value: Any = None, delta: float = 1e-3, init_targets: Any = None,
    extra_feed_dict: Any = None,
) -> float:  # fmt: skip
    """The largest difference between the two Jacobians of `compute_gradient`."""
    import numpy as np

    found = compute_gradient(x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict)
    pairs = found if isinstance(found, list) else [found]
    return max((float(np.abs(a - b).max()) if a.size else 0.0) for a, b in pairs)


def _jacobians(
    x: Any, x_shape: Any, y: Any, y_shape: Any, value: Any, delta: float, targets: Any, extra: Any
) -> tuple[Any, Any]:
    import numpy as np

    from toolkit.client.arrays import array_ops
    from toolkit.client.construction import session_stack
    from toolkit.client.construction.tensor import IndexedSlices
    from toolkit.client.gradients import gradients

    session: Any = session_stack.session_for(None, x.graph, "compute_gradient")
    kind = x.dtype.base.numpy
    rows, columns = int(np.prod(x_shape)), int(np.prod(y_shape))
    with x.graph.as_default():
        seed = array_ops.placeholder(y.dtype.base, list(y_shape))
        slope = gradients(y, [x], seed)[0]
    if targets is not None:
        session.run(targets)
    if value is None:
        value = np.random.random_sample(x_shape).astype(kind)
    value = np.asarray(value, kind)
    feeds = dict(extra or {})
    exact, measured = np.zeros((rows, columns), kind), np.zeros((rows, columns), kind)
    for column in range(columns):
        unit = np.zeros(columns, y.dtype.base.numpy)
        unit[column] = 1
        if slope is None:
            continue
        dense: Any = slope
        if isinstance(slope, IndexedSlices):
            dense = slope.to_tensor()
        exact[:, column] = session.run(dense, {x: value, seed: unit.reshape(y_shape), **feeds}).ravel()
    for row in range(rows):
        step = np.zeros(rows, kind)
        step[row] = delta
        above, below = (
            session.run(y, {x: (value.ravel() + sign * step).reshape(x_shape), **feeds}) for sign in (1, -1)
        )
        measured[row] = ((above - below) / (2 * delta)).ravel()
    return exact, measured


def create_local_cluster(
    num_workers: int, num_ps: int, protocol: str = "grpc", worker_config: Any = None, ps_config: Any = None
) -> tuple[list[Any], list[Any]]:
    """Servers of workers and of parameter servers, all in this process; their sessions share the variables."""
    from toolkit.tensorflow.families.train import cluster

    jobs = {"worker": num_workers, "ps": num_ps}
    spec = cluster.ClusterSpec({job: [f"localhost:{n}" for n in range(count)] for job, count in jobs.items() if count})
    made = cluster.local_servers(
        spec, {job: n for job, n in jobs.items() if n}, {"worker": worker_config, "ps": ps_config}
    )
    return made.get("worker", []), made.get("ps", [])


def is_built_with_gpu_support() -> bool:
    """Whether there is a GPU for sessions, with its driver and what calls it."""
    from toolkit.kernels import device_types

    return device_types.there("GPU") > 0


def is_built_with_rocm() -> bool:
    return False


def is_built_with_xla() -> bool:
    return False


def is_cpu_target_available(target: str) -> bool:
    """Whether code is made for a processor: "x86" and "aarch64" are what machines are."""
    import platform

    machine = platform.machine().lower()
    return {"x86_64": "x86", "amd64": "x86", "arm64": "aarch64"}.get(machine, machine) == target


def with_eager_op_as_function(cls: Any = None, only_as_function: bool = False) -> Any:
    """A decorator that changes nothing: nothing runs eagerly."""
    return cls if cls is not None else lambda each: each


def disable_with_predicate(pred: Callable[[], bool], skip_message: str) -> Any:
    """A decorator that skips a test when a function says True."""

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            if pred():
                self.skipTest(skip_message)
            return test(self, *args, **kwargs)

        return wrapped

    return decorate


class StubOutForTesting:
    """Puts other values in the place of attributes, and takes them back in the end."""

    def __init__(self) -> None:
        self._kept: list[tuple[Any, str, Any]] = []
        self._smart: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> StubOutForTesting:
        return self

    def __exit__(self, *exc: object) -> None:
        self.CleanUp()

    def __del__(self) -> None:
        self.CleanUp()

    def Set(self, parent: Any, child_name: str, new_child: Any) -> None:  # noqa: N802
        """Set an attribute that there is."""
        old = vars(parent).get(child_name, getattr(parent, child_name))
        self._kept.append((parent, child_name, old))
        setattr(parent, child_name, new_child)

    def SmartSet(self, obj: Any, attr_name: str, new_attr: Any) -> None:  # noqa: N802
        """Set an attribute where it is defined: in the object, or in a class that it comes from."""
        homes = [obj] if attr_name in getattr(obj, "__dict__", {}) else list(getattr(obj, "__mro__", type(obj).__mro__))
        home = next((each for each in homes if attr_name in vars(each)), None)
        if home is None:
            raise AttributeError(f"{obj!r} has no attribute '{attr_name}'")
        self._smart.append((home, attr_name, vars(home)[attr_name]))
        setattr(home, attr_name, new_attr)

    def UnsetAll(self) -> None:  # noqa: N802
        """Take back what `Set` has set."""
        while self._kept:
            setattr(*self._kept.pop())

    def SmartUnsetAll(self) -> None:  # noqa: N802
        """Take back what `SmartSet` has set."""
        while self._smart:
            setattr(*self._smart.pop())

    def CleanUp(self) -> None:  # noqa: N802
        self.SmartUnsetAll()
        self.UnsetAll()
