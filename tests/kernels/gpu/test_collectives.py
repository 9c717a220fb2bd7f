"""Groups of devices in one process: against TensorFlow's on virtual devices, and on several GPUs."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.kernels.op_suite import sample
from toolkit import Session
from toolkit import client as gm
from toolkit.errors import GraphmillError, InternalError, InvalidArgumentError
from toolkit.kernels.collectives import Meetings, Member
from toolkit.kernels.device_types import memory
from toolkit.kernels.resources.tensor_space import HOST
from toolkit.runtime.steps.cancellation import CancellationManager

#: members of a group: the fake driver has two GPUs
SIZE = 2
DEVICES = ("CPU", "GPU")
#: the member that sends
SENDER = 1
#: given ops by their names, the number of a member, its tensor and the size of the group
Build = Callable[[Any, int, Any, int], Any]


def keys(size: int) -> dict[str, int]:
    return {"group_size": size, "group_key": 7, "instance_key": 5}


def _v1(op: str, **attrs: Any) -> Build:
    return lambda ops, member, x, size: ops(op)(x, **keys(size), **attrs)


def _v2(op: str, **attrs: Any) -> Build:
    return lambda ops, member, x, size: ops(op)(x, np.int32(size), np.int32(7), np.int32(5), [], **attrs)


def _broadcast(ops: Any, member: int, x: Any, size: int) -> Any:
    shape = {"shape": [4, 2], **keys(size)}
    if member == SENDER:
        return ops("CollectiveBcastSend")(x, **shape)
    return ops("CollectiveBcastRecv")(T="float32", **shape)


def _broadcast_v2(ops: Any, member: int, x: Any, size: int) -> Any:
    numbers = [np.int32(size), np.int32(7), np.int32(5)]
    if member == SENDER:
        return ops("CollectiveBcastSendV2")(x, *numbers)
    return ops("CollectiveBcastRecvV2")(*numbers, np.int32([4, 2]), T="float32")


MERGES = [(merge, final) for merge in ("Add", "Mul", "Max", "Min") for final in ("Id", "Div")]
BUILDS: dict[str, tuple[Build, tuple[int, ...]]] = {
    **{
        f"reduce-{merge}-{final}": (_v1("CollectiveReduce", merge_op=merge, final_op=final, subdiv_offsets=[0]), (4, 2))
        for merge, final in MERGES
    },
    "reduce-scalars": (_v1("CollectiveReduce", merge_op="Add", final_op="Id", subdiv_offsets=[0]), ()),
    "reduce-v2": (_v2("CollectiveReduceV2", merge_op="Add", final_op="Div"), (4, 2)),
    "gather": (_v1("CollectiveGather", shape=[8, 2]), (4, 2)),
    "gather-v2": (_v2("CollectiveGatherV2"), (4,)),
    "all-to-all": (_v2("CollectiveAllToAllV2"), (SIZE, 2)),
    "broadcast": (_broadcast, (4, 2)),
    "broadcast-v2": (_broadcast_v2, (4, 2)),
}


def given(dtype: str, shape: tuple[int, ...], size: int = SIZE) -> list[Any]:
    """A tensor for each member."""
    return [sample(dtype, shape, 1, 5, seed=member) for member in range(size)]


def ours(
    build: Build, values: Sequence[Any], device: str = "CPU", *, tokens: bool = False, steps: int = 2
) -> list[Any]:
    """What each member gets, the members on devices of their own."""

    with gm.Graph().as_default() as graph:
        fed, made = [], []
        for member, value in enumerate(values):
            fed.append(gm.placeholder(value.dtype, value.shape))
            with graph.device(f"/device:{device}:{member}"):
                made.append(build(_ours_op, member, fed[-1] + np.zeros((), value.dtype), len(values)))
    with Session(graph, devices={device: len(values)}, force_tokens=tokens) as session:
        for _ in range(steps):
            results = session.run(made, dict(zip(fed, values, strict=True)))
    return results


def _ours_op(name: str) -> Any:
    import re

    return getattr(gm.ops, re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower())


def theirs(tf: ModuleType, build: Build, values: Sequence[Any]) -> list[Any]:
    """TensorFlow's, on virtual devices."""
    v1: Any = tf.compat.v1

    def op(name: str) -> Any:
        def made(*inputs: Any, **attrs: Any) -> Any:
            raw = getattr(tf.raw_ops, name)
            from toolkit.graph import opdefs

            names = [arg.name for arg in opdefs.get(name).inputs]
            return raw(**dict(zip(names, inputs, strict=False)), **attrs)

        return made

    with tf.Graph().as_default():
        made: list[Any] = []
        for member, value in enumerate(values):
            with tf.device(f"/CPU:{member}"):
                made.append(build(op, member, tf.constant(value), len(values)))
        with v1.Session(config=v1.ConfigProto(device_count={"CPU": len(values)})) as session:
            options = v1.RunOptions()
            options.experimental.collective_graph_key = 1
            return session.run(made, options=options)


@pytest.mark.tensorflow
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("name", [name for name in BUILDS if name != "gather"])
def test_as_tensorflow_on_cpus(tf: ModuleType, name: str, size: int) -> None:
    build, shape = BUILDS[name]
    values = given("float32", (size, *shape[1:]) if name == "all-to-all" else shape, size)
    # sums and products of so many numbers below 5, in another order, and a quotient
    near = tolerance.gamma(size + 1) * 5**size
    for mine, wanted in zip(ours(build, values), theirs(tf, build, values), strict=True):
        assert mine.dtype == wanted.dtype
        tolerance.assert_within(mine, wanted, near)


@pytest.mark.parametrize("tokens", [False, True])
@pytest.mark.parametrize("name", BUILDS)
def test_on_gpus_as_on_cpus(name: str, tokens: bool) -> None:
    """Sums are added in one order: the same bits everywhere."""
    build, shape = BUILDS[name]
    values = given("float32", shape)
    for mine, wanted in zip(ours(build, values, "GPU", tokens=tokens), ours(build, values), strict=True):
        np.testing.assert_array_equal(mine, wanted)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32", "int64"])
def test_types(dtype: str, device: str) -> None:
    values = given(dtype, (2, 3))
    for final in ("Id", "Div"):
        scatter = _v2("CollectiveReduceScatterV2", merge_op="Add", final_op=final)
        reduce = _v2("CollectiveReduceV2", merge_op="Add", final_op=final)
        whole = ours(reduce, values, device)
        total = values[0] + values[1]
        wanted = total // values[0].dtype.type(SIZE) if dtype.startswith("int") else total / total.dtype.type(SIZE)
        np.testing.assert_array_equal(whole[0], wanted if final == "Div" else total)
        for member, part in enumerate(ours(scatter, values, device)):
            np.testing.assert_array_equal(part, whole[0][member : member + 1])


@pytest.mark.parametrize("device", DEVICES)
def test_nccl(device: str) -> None:
    values = given("float32", (4, 2))
    for reduction, wanted in (("sum", sum(values)), ("prod", values[0] * values[1]),
                              ("max", np.max(values, axis=0)), ("min", np.min(values, axis=0))):  # fmt: skip
        attrs = {"reduction": reduction, "num_devices": SIZE}
        each = ours(
            lambda ops, member, x, size, attrs=attrs: ops("NcclAllReduce")(x, shared_name="all", **attrs),
            values,
            device,
        )
        for mine in each:
            np.testing.assert_array_equal(mine, wanted)
        with gm.Graph().as_default() as graph:
            parts: list[Any] = []
            for member, value in enumerate(values):
                with graph.device(f"/device:{device}:{member}"):
                    parts.append(gm.identity(gm.constant(value)))
            with graph.device(f"/device:{device}:0"):
                total = gm.ops.nccl_broadcast(gm.ops.nccl_reduce(parts, reduction=reduction), shape=[4, 2])
            with graph.device(f"/device:{device}:1"):
                y = gm.identity(total)
        with Session(graph, devices={device: SIZE}) as session:
            np.testing.assert_array_equal(session.run(y), wanted)


@pytest.mark.parametrize("device", DEVICES)
def test_what_depends_on_another_collective(device: str) -> None:
    """Instances in a row, and in another order on each device."""

    def build(ops: Any, member: int, x: Any, size: int) -> Any:
        def reduced(value: Any, instance: int) -> Any:
            own = {**keys(size), "instance_key": instance}
            return ops("CollectiveReduce")(value, merge_op="Add", final_op="Id", subdiv_offsets=[0], **own)

        instances = (1, 2) if member else (2, 1)
        found = {instance: reduced(x * float(instance), instance) for instance in instances}
        return reduced(found[1] * found[2], 3)

    values = given("float64", (5,))
    total = values[0] + values[1]
    doubled = 2 * values[0] + 2 * values[1]
    for tokens in (False, True):
        for mine in ours(build, values, device, tokens=tokens):
            np.testing.assert_allclose(mine, SIZE * total * doubled, rtol=tolerance.gamma(8, np.float64))


def _twice(ops: Any, member: int, x: Any, size: int) -> Any:
    reduce = _v1("CollectiveReduce", merge_op="Add", final_op="Id", subdiv_offsets=[0])
    return reduce(ops, member, reduce(ops, member, x, size), size)


@pytest.mark.tensorflow
def test_one_instance_meets_again_as_in_tensorflow(tf: ModuleType) -> None:
    values = [np.float32([1, 2]), np.float32([2, 4])]  # whose sums are exact
    for mine, wanted in zip(ours(_twice, values), theirs(tf, _twice, values), strict=True):
        np.testing.assert_array_equal(mine, wanted)


@pytest.mark.parametrize("tokens", [False, True])
@pytest.mark.parametrize("device", DEVICES)
def test_one_instance_meets_again(device: str, tokens: bool) -> None:
    values = [np.float32([1, 2]), np.float32([2, 4])]
    for mine in ours(_twice, values, device, tokens=tokens):
        np.testing.assert_array_equal(mine, [6, 12])


def test_a_meeting_that_is_over_keeps_no_tensors() -> None:
    """Iterations of a loop meet each for itself: what they brought is not kept until the step is over."""
    step: Any = SimpleNamespace(frame_iter=(0, 0), cancellation=CancellationManager())
    meetings, kept, told = Meetings(), list[Any](), list[Any]()
    for iteration in range(3):
        step.frame_iter = (0, iteration)
        for number in range(SIZE):
            value = np.zeros(4)
            kept.append(weakref.ref(value))
            member = Member(f"member {number}", ("", "CPU", number), value, HOST, None, told.append)
            meetings.join(step, "key", SIZE, member, lambda members: [len(members)] * len(members))
    del value, member
    gc.collect()
    assert told == [SIZE] * SIZE * 3
    assert all(each() is None for each in kept)


@pytest.mark.parametrize("device", DEVICES)
def test_refusals(device: str) -> None:
    reduce = _v2("CollectiveReduceV2", merge_op="Add", final_op="Id")
    shapes = [np.ones(size, np.float32) for size in (2, 3)]
    with pytest.raises(InvalidArgumentError, match=r"must have one shape: \[2\] against \[3\]"):
        ours(reduce, shapes, device)
    one = keys(1)

    def few(ops: Any, member: int, x: Any, size: int) -> Any:
        return ops("CollectiveReduce")(x, merge_op="Add", final_op="Id", subdiv_offsets=[0], **one)

    with pytest.raises(InternalError, match="more than the 1 members of the group came"):
        ours(few, given("float32", (2,)), device)

    def nobody(ops: Any, member: int, x: Any, size: int) -> Any:
        return ops("CollectiveBcastRecv")(T="float32", shape=[2], **keys(size))

    with pytest.raises(InternalError, match="a broadcast takes one sender, and 0 of 2 members are"):
        ours(nobody, given("float32", (2,)), device)
    with pytest.raises(InvalidArgumentError, match="3 rows are not one for each of 2 members"):
        ours(_v2("CollectiveAllToAllV2"), given("float32", (3,)), device)
    with pytest.raises(GraphmillError, match=r"scalar|rank"):
        ours(_v2("CollectiveGatherV2"), given("float32", ()), device)


def test_a_failure_elsewhere_ends_the_wait() -> None:
    """Who waits for a member that fails before it comes does not wait for ever."""

    def build(ops: Any, member: int, x: Any, size: int) -> Any:
        if member == SENDER:
            x = gm.ops.check_numerics(x / 0.0, message="this member fails")
        return ops("CollectiveReduce")(x, merge_op="Add", final_op="Id", subdiv_offsets=[0], **keys(size))

    with pytest.raises(InvalidArgumentError, match="this member fails"):
        ours(build, given("float32", (2,)))


def test_tensors_are_copied_from_gpu_to_gpu() -> None:
    reduce = _v2("CollectiveReduceV2", merge_op="Add", final_op="Id")
    known = memory("GPU", 0)
    assert known is not None
    before = known.statistics().copies_out
    ours(reduce, given("float32", (4, 2)), "GPU", steps=1)
    assert known.statistics().copies_out == before + 1  # what is fetched
