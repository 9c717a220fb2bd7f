"""How threads put together what each of them has: of a group of lanes, of a warp, of a block.

A state is a tuple of values, one in a register each: a sum is one, the largest number with its place two. States are
put together in a tree whose shape depends on sizes only, so that the same input gives the same bits each time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.simt.builder import KernelBuilder, RegisterVariable
from toolkit.kernels.cuda.simt.ir import FLOATING, WARP, Value

State = tuple[Lanes, ...]
#: puts two states together; associative, up to rounding, and commutative
Combine = Callable[[State, State], State]


def lane_reduce(k: KernelBuilder, state: State, combine: Combine, steps: Sequence[int]) -> State:
    """Each lane's state with that of the lanes whose numbers differ in bit `step`, for each step in turn."""
    for step in steps:
        state = combine(state, tuple(k.shuffle("xor", value, step) for value in state))
    return state


def halves(count: int) -> list[int]:
    """count / 2, ..., 2, 1; `count` is a power of two."""
    return [1 << bit for bit in reversed(range(count.bit_length() - 1))]


def group_reduce(k: KernelBuilder, state: State, combine: Combine, lanes: int = WARP) -> State:
    """What each aligned group of `lanes` lanes has together; all of its lanes get it."""
    return lane_reduce(k, state, combine, halves(lanes))


def warp_reduce(k: KernelBuilder, state: State, combine: Combine) -> State:
    """What the warp has together."""
    return group_reduce(k, state, combine)


class BlockReduction:
    """Puts together what all threads of a block have, with shared memory for a state of each warp.

    Args:
        types: of the values of a state.
        name: of the shared memory.
    """

    def __init__(self, k: KernelBuilder, types: Sequence[str], name: str = "warps"):
        self._k = k
        self._warps = k.block // WARP
        self._shared = [k.shared(f"{name}{i}", type, self._warps) for i, type in enumerate(types)]
        self._used = False

    def reduce(self, state: State, combine: Combine) -> State:
        """What the block has together; all of its threads call it and get it."""
        k = self._k
        state = warp_reduce(k, state, combine)
        if self._warps == 1:
            return state
        if self._used:
            k.barrier()  # those who still read what was there before
        self._used = True
        lane, warp = lane_and_warp(k)
        with k.when(k.compare("eq", lane, k.number(0, "i32"))):
            for buffer, value in zip(self._shared, state, strict=True):
                k.store(buffer, warp, value)
        k.barrier()
        one = k.binary("and", lane, k.number(self._warps - 1, "i32"))
        found = tuple(k.load(buffer, one) for buffer in self._shared)
        return group_reduce(k, found, combine, self._warps)


def block_reduce(k: KernelBuilder, state: State, combine: Combine, name: str = "warps") -> State:
    """What the block has together, for kernels that ask for it once."""
    return BlockReduction(k, [value.type for value in state], name).reduce(state, combine)


def lane_and_warp(k: KernelBuilder) -> tuple[Value, Value]:
    """The number of the thread in its warp, and of the warp in its block."""
    thread = k.thread
    return k.binary("and", thread, k.number(WARP - 1, "i32")), k.binary("lshr", thread, k.number(5, "i32"))


def first_thread(k: KernelBuilder) -> Value:
    """Whether the thread is the first of its block."""
    return k.compare("eq", k.thread, k.number(0, "i32"))


class Running:
    """A state that grows."""

    def __init__(self, k: KernelBuilder, start: State):
        self._variables: list[RegisterVariable] = [k.variable(value) for value in start]

    def get(self) -> State:
        return tuple(variable.get() for variable in self._variables)

    def set(self, state: State) -> None:
        for variable, value in zip(self._variables, state, strict=True):
            variable.set(value)


#: loads that are on their way before the first is used: what hides the latency of memory
IN_FLIGHT = 4


def strided(
    k: KernelBuilder,
    start: Lanes,
    stop: Lanes,
    step: Lanes,
    read: Callable[[Lanes], State],
    use: Callable[[State], None],
) -> None:
    """For start, start + step, ... before stop: read, and use what was read, several at a time."""
    place = k.variable(start)
    ahead = k.mul(step, k.number(IN_FLIGHT - 1, step.type))
    with k.while_(lambda: k.compare("slt", k.add(place.get(), ahead), stop)):
        found: list[State] = []
        for _ in range(IN_FLIGHT):
            found.append(read(place.get()))
            place.set(k.add(place.get(), step))
        for each in found:
            use(each)
    with k.while_(lambda: k.compare("slt", place.get(), stop)):
        use(read(place.get()))
        place.set(k.add(place.get(), step))


# -- what is put together ----------------------------------------------------------------------------------------


def largest(k: KernelBuilder, a: Lanes, b: Lanes, *, unsigned: bool = False) -> Value:
    """The larger number; NaN where one of them is."""
    return _extreme(k, a, b, "ogt", "ugt" if unsigned else "sgt")


def smallest(k: KernelBuilder, a: Lanes, b: Lanes, *, unsigned: bool = False) -> Value:
    """The smaller number; NaN where one of them is."""
    return _extreme(k, a, b, "olt", "ult" if unsigned else "slt")


def _extreme(k: KernelBuilder, a: Lanes, b: Lanes, floating: str, integer: str) -> Value:
    if a.type in FLOATING:
        first = k.either(k.compare(floating, a, b), k.compare("uno", a, a))
    else:
        first = k.compare(integer, a, b)
    return k.select(first, a, b)
