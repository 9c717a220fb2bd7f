"""What a process has one of is made once, whoever asks for it first."""

from __future__ import annotations

import threading

from toolkit.kernels.once import once


def test_threads_that_ask_at_once_get_the_same() -> None:
    """Each maker waits until another thread has asked too, or nobody else can get in."""
    inside = threading.Event()
    made: list[object] = []

    @once
    def thing(number: int) -> object:
        made.append(object())
        inside.set()
        second.join(0.2)  # until it is stuck at the lock, or done with a thing of its own
        return made[-1]

    found: list[object] = []
    second = threading.Thread(target=lambda: (inside.wait(), found.append(thing(0))))
    second.start()
    found.append(thing(0))
    second.join()
    assert len(made) == 1 and found == made * 2
    assert thing(0) is made[0] and thing(1) is not made[0] and len(made) == 2


def test_what_is_made_may_ask_for_another() -> None:
    @once
    def chain(number: int) -> tuple[object, ...]:
        return (object(), *(chain(number - 1) if number else ()))

    assert len(chain(3)) == 4 and chain(3)[1:] == chain(2)
