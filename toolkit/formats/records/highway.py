"""HighwayHash, 64 bits, as Riegeli files have it: of many messages side by side.

Each packet of 32 bytes goes through a round that depends on the one before, so a single message is hashed packet after
packet; the rounds of many messages are one NumPy operation each.

Facts: https://github.com/google/highwayhash (Alakuijala, Cox, Wassenberg, "Fast keyed hash/pseudo-random function using
SIMD multiply and permute", 2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

PACKET = 32
_MULTIPLIERS = (
    (0xDBE6D5D5FE4CCE2F, 0xA4093822299F31D0, 0x13198A2E03707344, 0x243F6A8885A308D3),
    (0x3BD39E10CB0EF593, 0xC0ACF169B5F18A8C, 0xBE5466CF34E90C6C, 0x452821E638D01377),
)
#: which byte of two lanes each byte of the shuffled ones is
_SHUFFLE = (3, 12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7)
_WORD = (1 << 64) - 1
#: packets of a message that are not worth compiling anything
_FEW = 4096
#: packets that are gathered at a time
_BLOCK = 64

Key = tuple[int, int, int, int]


def hash64(data: Any, key: Key) -> int:
    """The hash of one message."""
    return hashes([data], key)[0]


def hashes(messages: Sequence[Any], key: Key) -> list[int]:
    """The hashes of messages (bytes or memoryviews).

    Without LLVM (extra `native`) it takes time in proportion to the longest: many messages of one size are hashed at a
    hundred megabytes a second, a single one at about one.
    """
    import numpy as np

    from toolkit.formats.records.highway_native import rounds

    order = sorted(range(len(messages)), key=lambda at: -len(messages[at]))
    state = _State(len(messages), key)
    sizes = [len(messages[at]) for at in order]
    whole = [np.frombuffer(messages[at], np.uint8, size - size % PACKET) for at, size in zip(order, sizes, strict=True)]
    packets = [size // PACKET for size in sizes]
    native = rounds() if packets and packets[0] > _FEW else None
    if native is not None:
        for lane, data in enumerate(whole):
            one = np.concatenate([part[lane] for part in (state.v0, state.v1, state.mul0, state.mul1)])
            native(one, data, packets[lane])
            state.v0[lane], state.v1[lane], state.mul0[lane], state.mul1[lane] = one.reshape(4, 4)
    active, position = (0, 0) if native is not None else (len(order), 0)
    while active and packets[0] > position:
        while active and packets[active - 1] <= position:
            active -= 1
        count = min(_BLOCK, packets[active - 1] - position)
        block = np.empty((count, active, 4), np.uint64)
        for lane in range(active):
            part = whole[lane][position * PACKET : (position + count) * PACKET]
            block[:, lane] = part.view("<u8").reshape(count, 4)
        for packet in block:
            state.update(packet, active)
        position += count
    _finish(state, [messages[at] for at in order], sizes)
    found = [0] * len(messages)
    for at, value in zip(order, state.finalize(), strict=True):
        found[at] = value
    return found


class _State:
    """v0, v1 and both multipliers of several messages, four lanes each."""

    def __init__(self, count: int, key: Key):
        import numpy as np

        turned = [(word >> 32) | (word << 32 & _WORD) for word in key]
        lanes = [
            [m ^ k for m, k in zip(_MULTIPLIERS[0], key, strict=True)],
            [m ^ k for m, k in zip(_MULTIPLIERS[1], turned, strict=True)],
            *_MULTIPLIERS,
        ]
        self.v0, self.v1, self.mul0, self.mul1 = (np.tile(np.array(row, np.uint64), (count, 1)) for row in lanes)
        self.shuffle = np.array([*_SHUFFLE, *(16 + at for at in _SHUFFLE)])
        self.low, self.half = np.uint64(0xFFFFFFFF), np.uint64(32)

    def update(self, packet: Any, active: int) -> None:
        """One round of the first messages."""
        v0, v1, mul0, mul1 = (part[:active] for part in (self.v0, self.v1, self.mul0, self.mul1))
        v1 += packet
        v1 += mul0
        mul0 ^= (v1 & self.low) * (v0 >> self.half)
        v0 += mul1
        mul1 ^= (v0 & self.low) * (v1 >> self.half)
        v0 += self._shuffled(v1)
        v1 += self._shuffled(v0)

    def _shuffled(self, lanes: Any) -> Any:
        import numpy as np

        return lanes.view(np.uint8).take(self.shuffle, axis=1).view(np.uint64)

    def finalize(self) -> list[int]:
        for _ in range(4):
            turned = self.v0[:, [2, 3, 0, 1]]
            self.update((turned >> self.half) | (turned << self.half), len(turned))
        return (self.v0[:, 0] + self.v1[:, 0] + self.mul0[:, 0] + self.mul1[:, 0]).tolist()


def _finish(state: _State, messages: Sequence[Any], sizes: Sequence[int]) -> None:
    """The last round of messages that do not end with a packet."""
    import numpy as np

    rest = [size % PACKET for size in sizes]
    open_ = [at for at, size in enumerate(rest) if size]
    if not open_:
        return
    part = _State(0, (0, 0, 0, 0))
    part.v0, part.v1, part.mul0, part.mul1 = (
        getattr(state, name)[open_] for name in ("v0", "v1", "mul0", "mul1")
    )  # fmt: skip
    counts = np.array([rest[at] for at in open_], np.uint64)[:, None]
    part.v0 += (counts << state.half) + counts
    halves = part.v1.view(np.uint32).astype(np.uint64)
    part.v1 = (((halves << counts) | (halves >> (state.half - counts))) & state.low).astype(np.uint32).view(np.uint64)
    packets = b"".join(_last_packet(bytes(messages[at][sizes[at] - rest[at] :])) for at in open_)
    part.update(np.frombuffer(packets, "<u8").reshape(-1, 4), len(open_))
    for name in ("v0", "v1", "mul0", "mul1"):
        getattr(state, name)[open_] = getattr(part, name)


def _last_packet(data: bytes) -> bytes:
    """The packet of fewer than 32 bytes: whole words, then what is left of the last where it is looked for."""
    words, left = data[: len(data) & ~3], len(data) & 3
    packet = bytearray(PACKET)
    packet[: len(words)] = words
    if len(data) & 16:
        packet[28:32] = data[-4:]
    elif left:
        tail = data[len(words) :]
        packet[16:19] = bytes((tail[0], tail[left >> 1], tail[left - 1]))
    return bytes(packet)
