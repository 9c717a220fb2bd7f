"""How sums over many positions are shared out: blocks add up a share each, then one kernel the shares, in their order.

So the same bits come out each time, which atomic additions do not promise.
"""

from __future__ import annotations

#: enough threads to keep a large GPU busy: 132 multiprocessors of 2048
_THREADS = 1 << 18
#: positions of a share at least, so that what the second kernel reads is little beside what the first one did
_LEAST = 256


def shares_of(positions: int, numbers: int) -> tuple[int, int]:
    """How many shares there are for each of so many sums, and the positions of one."""
    wanted = max(1, min(_THREADS // max(numbers, 1), positions // _LEAST))
    length = max(1, -(-positions // wanted))
    return max(1, -(-positions // length)), length
