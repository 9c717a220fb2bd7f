"""The caching allocator: blocks never overlap, memory is used again, and what there is no room for is told."""

from __future__ import annotations

import gc
import itertools
import random
import threading
from typing import Any

import numpy as np
import pytest

from tests.kernels.cuda.simple import blocks, combine
from toolkit.errors import ResourceExhaustedError
from toolkit.kernels.cuda.driver.base import DriverError, GpuSpan
from toolkit.kernels.cuda.driver.fake import FakeContext, FakeDriver
from toolkit.kernels.cuda.driver.fake_memory import POISON
from toolkit.kernels.cuda.pool import Block, Budget, Pool

MIB = 1 << 20
F32 = np.dtype(np.float32)


def _pool(limit: int = 64 * MIB, *, memory: int = 1 << 30, grows: bool = True) -> tuple[FakeContext, Any, Pool]:
    context = FakeDriver(memory=memory).open(0)
    stream = context.stream()
    return context, stream, Pool(context, stream, Budget(limit), "/device:GPU:0", grows=grows)


def test_blocks_at_random_do_not_overlap_and_are_counted() -> None:
    generator = random.Random(7)
    _, _, pool = _pool()
    alive: list[tuple[Block, int]] = []
    for _ in range(3000):
        if alive and generator.random() < 0.48:
            alive.pop(generator.randrange(len(alive)))
        else:
            nbytes = generator.choice([generator.randint(1, 1000), generator.randint(1, 100_000), 4096])
            alive.append((pool.allocate(nbytes), nbytes))
            assert alive[-1][0].address % 256 == 0
        if generator.random() < 0.02:
            places = sorted((block.address, nbytes) for block, nbytes in alive)
            assert all(a + n <= b for (a, n), (b, _) in itertools.pairwise(places))
            budget = pool.budget
            assert budget.in_use == sum(nbytes for _, nbytes in alive) <= budget.peak
            assert budget.reserved <= budget.limit
    alive.clear()
    assert pool.budget.in_use == 0
    pool.trim()
    assert pool.budget.reserved == 0


def test_the_same_size_is_found_again_and_neighbours_become_one() -> None:
    context, _, pool = _pool()
    first, second, third = (pool.allocate(1 * MIB // 2) for _ in range(3))
    address = second.address
    del second
    second = pool.allocate(1 * MIB // 2)
    assert second.address == address
    start = first.address
    del first, second, third
    assert pool.allocate(3 * MIB // 2).address == start  # nothing new is taken from the driver
    assert context.memory.used == pool.budget.reserved == 2 * MIB


def test_the_smallest_that_fits_is_taken() -> None:
    _, _, pool = _pool()
    held = [pool.allocate(n) for n in (1000, 256, 5000, 256, 3000, 256)]
    places = [block.address for block in held]
    for index in (4, 2, 0):
        del held[index]
    held.append(pool.allocate(1 << 21))  # brings neighbours together
    assert pool.allocate(2900).address == places[4]


def test_regions_double() -> None:
    _, _, pool = _pool(limit=1 << 30)
    held, sizes = [], list[int]()
    for _ in range(14):
        held.append(pool.allocate(MIB))
        sizes.append(pool.budget.reserved // MIB)
    assert sorted(set(sizes)) == [2, 6, 14]


def test_all_of_the_limit_at_once() -> None:
    _, _, pool = _pool(8 * MIB, grows=False)
    held = pool.allocate(100)
    assert pool.budget.reserved == 8 * MIB and held.address


def test_what_is_cached_goes_before_memory_is_short() -> None:
    _, _, pool = _pool(8 * MIB)
    first = pool.allocate(2 * MIB)
    second = pool.allocate(4 * MIB)
    del first, second
    assert pool.budget.reserved == 6 * MIB
    held = pool.allocate(7 * MIB)  # fits in no region, and not beside them
    assert pool.budget.reserved == 7 * MIB or pool.budget.reserved == 8 * MIB
    assert held.address


def test_no_room_is_told_with_the_largest_tensors() -> None:
    _, _, pool = _pool(4 * MIB)
    held = [pool.allocate(MIB, (512, 512), F32, "weights"), pool.allocate(MIB, (512, 512), F32, "weights")]
    held.append(pool.allocate(300, (75,), F32, ""))
    held.append(pool.allocate(10))
    with pytest.raises(ResourceExhaustedError) as found:
        pool.allocate(3 * MIB, (768, 1024), F32, "big")
    assert str(found.value) == (
        "node 'big': /device:GPU:0 has no room for 3145728 bytes for float32[768, 1024]: 2097462 of 4194304 are "
        "in use, 4194304 reserved; the largest tensors: 2 times 1048576 bytes, float32[512, 512] of node 'weights', "
        "300 bytes, float32[75], 10 bytes, memory"
    )
    del held
    assert pool.allocate(3 * MIB).address


def test_a_driver_with_less_than_the_limit() -> None:
    context, _, pool = _pool(1 << 30, memory=5 * MIB)
    held = [pool.allocate(MIB), pool.allocate(2 * MIB)]
    assert context.memory.used <= 5 * MIB
    with pytest.raises(ResourceExhaustedError, match="no room for 4194304 bytes: 3145728 of 1073741824 are in use"):
        pool.allocate(4 * MIB)
    assert len(held) == 2


def test_allocations_that_fail_now_and_then() -> None:
    context, _, pool = _pool(64 * MIB)
    context.faults.every = 2
    held = [pool.allocate(3 * MIB) for _ in range(8)]
    assert len({block.address for block in held}) == 8


def test_freed_memory_is_garbage_behind_what_uses_it() -> None:
    context, stream, pool = _pool()
    block = pool.allocate(400)
    address = block.address
    context.fill(address, 1, 400, stream)
    host = np.zeros(400, np.uint8)
    context.copy_out(host, address, stream)
    del block
    pool.collect()
    context.synchronize(stream)
    assert (host == 1).all()
    again = pool.allocate(400)
    assert again.address == address
    context.copy_out(host, address, stream)
    context.synchronize(stream)
    assert (host.view(np.uint16) == POISON).all()


def test_memory_that_another_stream_uses_is_kept() -> None:
    context, _, pool = _pool(4 * MIB)
    block, other, event = pool.allocate(3 * MIB), context.stream(), context.event()
    address = block.address
    context.record(event, other)
    for _ in range(1000):
        context.fill(address, 1, 3 * MIB, other)
    context.record(event, other)
    block.used_until(event)
    del block
    again = pool.allocate(3 * MIB)  # there is room nowhere else: it waits
    assert again.address and event.is_done


def test_memory_that_another_stream_uses_is_not_handed_out() -> None:
    context, _, pool = _pool()
    block, other, event = pool.allocate(1000), context.stream(), context.event()
    for _ in range(200):
        context.fill(block.address, 1, 1000, other)
    context.record(event, other)
    block.used_until(event)
    address = block.address
    del block
    again = pool.allocate(1000)
    assert again.address != address or event.is_done
    context.synchronize(other)
    assert pool.allocate(1000).address == address or again.address == address


def test_tickets_say_who_had_the_memory() -> None:
    _, _, pool = _pool()
    block = pool.allocate(1000)
    assert block.ticket == 0
    before = next(pool.tickets)
    del block
    assert before < pool.allocate(1000).ticket < next(pool.tickets)


def test_blocks_are_freed_in_any_thread_while_others_are_made() -> None:
    _, _, pool = _pool(256 * MIB)
    failed: list[BaseException] = []

    def work(seed: int) -> None:
        generator, held = random.Random(seed), list[tuple[Block, int]]()
        try:
            for _ in range(500):
                nbytes = generator.randint(1, 50_000)
                held.append((pool.allocate(nbytes), nbytes))
                if len(held) > 10:
                    held.pop(generator.randrange(len(held)))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    gc.collect()
    assert pool.budget.in_use == 0 and pool.budget.allocations == 2000


def test_a_block_may_go_while_the_pool_is_at_work() -> None:
    """The garbage collector runs whenever it likes, in the thread that holds the pool's lock, too."""
    _, _, pool = _pool()
    block = pool.allocate(100)
    with pool._lock:
        del block
    assert pool.budget.in_use == 0


# -- memory of graphs ------------------------------------------------------------------------------------------------


def _captured(context: FakeContext, pool: Pool) -> tuple[Any, Pool, Block, list[int]]:
    """y = x + x twice, over memory of the graph's own; the graph, its pool, its result and all addresses."""
    stream, n = context.stream(), 100
    x, y = pool.allocate(4 * n), None
    with pool.capturing(stream) as private:
        context.begin_capture(stream)
        addresses = list[int]()
        source = x
        for _ in range(3):
            y = pool.allocate(4 * n)
            addresses.append(y.address)
            context.fill(y.address, 0, 4 * n, stream)
            spans = [GpuSpan(source.address, 4 * n), GpuSpan(y.address, 4 * n)]
            context.launch(context.function(combine()), blocks(n), [*spans, 2, 1, n], stream)
            source = y
        graph = context.end_capture(stream)
    assert y is not None
    y.x = x  # type: ignore[attr-defined]
    return graph, private, y, addresses


class _Result(Block):
    __slots__ = ("x",)


def test_memory_of_a_graph_is_used_again_within_and_kept_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit.kernels.cuda.pool.Block", _Result)
    context, stream, pool = _pool()
    graph, private, y, addresses = _captured(context, pool)
    assert addresses[0] == addresses[2] and addresses[1] != addresses[0]
    x = y.x  # type: ignore[attr-defined]
    others = [pool.allocate(400) for _ in range(20)]
    assert not {block.address for block in others} & set(addresses)
    for value in (1, 5):
        context.copy_in(x.address, np.full(100, value, np.int32).view(np.uint8), stream)
        context.replay(graph, stream)
        host = np.zeros(400, np.uint8)
        context.copy_out(host, y.address, stream)
        context.synchronize(stream)
        assert (host.view(np.int32) == 8 * value).all()
    reserved = pool.budget.reserved
    private.close()
    assert pool.budget.reserved == reserved  # its result is alive
    del y
    assert pool.budget.reserved == reserved - 2 * MIB
    context.replay(graph, stream)
    with pytest.raises(DriverError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        context.synchronize(stream)


def test_a_recording_that_fails_gives_its_memory_back() -> None:
    context, _, pool = _pool()
    with pytest.raises(ZeroDivisionError), pool.capturing(context.stream()):
        block = pool.allocate(100)
        raise ZeroDivisionError
    assert pool.budget.reserved == 2 * MIB
    del block
    assert pool.budget.reserved == 0


def test_other_threads_do_not_allocate_in_a_recording() -> None:
    context, _, pool = _pool()
    held = pool.allocate(100)
    found: list[Block] = []
    with pool.capturing(context.stream()):
        inside = pool.allocate(100)
        thread = threading.Thread(target=lambda: found.append(pool.allocate(100)))
        thread.start()
        thread.join()
    assert abs(found[0].address - held.address) < 2 * MIB < abs(inside.address - held.address)


def test_nothing_is_waited_for_while_a_graph_is_recorded() -> None:
    context, _, pool = _pool(2 * MIB)
    stream = context.stream()
    held = pool.allocate(MIB)
    with pool.capturing(stream):
        context.begin_capture(stream)
        with pytest.raises(ResourceExhaustedError, match="1048576 of 2097152 are in use"):
            pool.allocate(2 * MIB)
        context.end_capture(stream)
    del held
    assert pool.allocate(2 * MIB).address
