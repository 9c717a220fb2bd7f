"""Scripts of operations that may wait, played in TensorFlow and here.

A script is a list of actions:

    Run("size:0")                          run it to the end
    Start("a", "dequeue:0", {"n:0": 2})    run it in a thread of its own
    Join("a")                              wait for that thread
    Close()                                close the session

Ours goes first and shows which of the started operations wait; then TensorFlow's are in line when all of
its threads wait. What each action ended with must agree: values, or the status and the message.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.patience import ends, until
from tests.runtime.oracle import Both, assert_same
from toolkit.errors import BY_CODE, OpError
from toolkit.runtime.session import Session

#: how long nobody must have moved before an operation counts as stuck
_IDLE_S = 2.0


@dataclass(frozen=True)
class Run:
    fetch: Any
    feeds: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Start:
    id: str
    fetch: Any
    feeds: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Join:
    id: str


@dataclass(frozen=True)
class Close:
    pass


Action = Run | Start | Join | Close
Outcome = tuple[str, Any]  # ("value", values) or (status, message)


class Player:
    """Plays a script in one session."""

    def __init__(self, run: Callable[[Any, Any], Any], close: Callable[[], None]):
        self._run = run
        self._close = close
        self._threads: dict[str, threading.Thread] = {}
        self._outcomes: dict[str, Outcome] = {}

    def _attempt(self, fetch: Any, feeds: Any) -> Outcome:
        import tensorflow as tf

        try:
            return "value", self._run(fetch, dict(feeds) or None)
        except OpError as error:
            return error.status, error.message
        except tf.errors.OpError as error:
            return BY_CODE[error.error_code].status, error.message

    def play(self, script: Sequence[Action], settled: Callable[[threading.Thread, int], bool]) -> list[Outcome | None]:
        """The outcome of every Run and Join.

        Args:
            settled: called after Start with the thread and the position, until it is true.
        """
        outcomes: list[Outcome | None] = []
        for position, action in enumerate(script):
            outcome: Outcome | None = None
            match action:
                case Run(fetch, feeds):
                    box: list[Outcome] = []
                    runner = threading.Thread(
                        target=lambda f=fetch, v=feeds, b=box: b.append(self._attempt(f, v)), daemon=True
                    )
                    runner.start()
                    ends(runner, _IDLE_S)
                    outcome = box[0] if box else ("STUCK", f"{fetch} never ended")
                case Start(name, fetch, feeds):

                    def work(name: str = name, fetch: Any = fetch, feeds: Any = feeds) -> None:
                        self._outcomes[name] = self._attempt(fetch, feeds)

                    thread = self._threads[name] = threading.Thread(target=work, daemon=True)
                    thread.start()
                    until(lambda t=thread, p=position: settled(t, p), f"{fetch} in line")
                case Join(name):
                    ends(self._threads[name], _IDLE_S)
                    outcome = self._outcomes.get(name, ("STUCK", f"{name} never ended"))
                case Close():
                    self._close()
            outcomes.append(outcome)
        return outcomes


def check_script(both: Both, script: Sequence[Action], waiting: Callable[[Session], list[Any]]) -> list[Outcome | None]:
    """Play a script in both; raise AssertionError unless every outcome agrees.

    Args:
        waiting: the attempts of the session that wait now.

    Returns:
        our outcomes.
    """
    ours = Session(both.graph)
    seen: list[Any] = []  # kept, so that no new attempt has the identity of an old one
    waited: dict[int, bool] = {}

    def settled(thread: threading.Thread, position: int) -> bool:
        new = [attempt for attempt in waiting(ours) if not any(attempt is old for old in seen)]
        seen.extend(new)
        waited[position] = bool(new)
        return bool(new) or not thread.is_alive()

    got = Player(ours.run, ours.close).play(script, settled)
    theirs = both.v1.Session(
        graph=both.tf_graph,
        # some of its waiting operations hold a thread each, which sessions of other tests must not lack
        config=both.v1.ConfigProto(inter_op_parallelism_threads=16, use_per_session_threads=True),
    )

    def settled_there(thread: threading.Thread, position: int) -> bool:
        ends(thread, 0.0 if waited[position] else _IDLE_S)
        return True

    wanted = Player(theirs.run, theirs.close).play(script, settled_there)
    closer = threading.Thread(target=theirs.close, daemon=True)  # closing waits for operations that are stuck
    closer.start()
    ends(closer, _IDLE_S)
    for action, mine, reference in zip(script, got, wanted, strict=True):
        agree(mine, reference, str(action))
    return got


def agree(mine: Outcome | None, reference: Outcome | None, where: str) -> None:
    if mine is None or reference is None:
        assert mine is reference, where
        return
    assert mine[0] == reference[0], f"{where}: {mine}, TensorFlow: {reference}"
    if mine[0] != "value":
        said = re.sub(r"(?<!\w)_\d+_(?=\w)", "", reference[1].split("\nNode: ")[-1])
        if mine[1] == "the step was cancelled":  # ours says so of every step that is cancelled from outside
            assert "operation was cancelled" in said, f"{where}: TensorFlow: {said!r}"
            return
        assert mine[1] in said, f"{where}: {mine[1]!r}, TensorFlow: {said!r}"
        return
    flat_mine = mine[1] if isinstance(mine[1], list | tuple) else [mine[1]]
    flat_reference = reference[1] if isinstance(reference[1], list | tuple) else [reference[1]]
    for a, b in zip(flat_mine, flat_reference, strict=True):
        if isinstance(b, bytes):
            assert a == b, where
            continue
        if b is not None and not isinstance(b, np.ndarray | np.generic):
            continue
        assert_same(a, b, where)
