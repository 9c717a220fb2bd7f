"""What a recorded step finds to be wrong while it is replayed: a number on the device, which whoever replays looks at.

A kernel cannot raise an error. What the host would have refused before a launch, an index that is out of range say,
a kernel of a recorded step notes in a word of memory and leaves undone; the replay copies the word to the host.
"""

from __future__ import annotations

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cuda.memory import GpuArray


class Checks:
    """What may be wrong with a step.

    Args:
        word: int32 [1], 0 when a replay begins; kernels put the number of the first thing that is wrong there.
    """

    def __init__(self, word: GpuArray):
        self.word = word
        self._known: list[tuple[str, str]] = []

    def __len__(self) -> int:
        return len(self._known)

    def add(self, node: str, message: str) -> int:
        """A number for something that may be wrong with a node, from 1 on."""
        self._known.append((node, message))
        return len(self._known)

    def require(self, found: int) -> None:
        """See to what is in the word after a replay.

        Raises:
            InvalidArgumentError: something was wrong.
        """
        if found:
            node, message = self._known[found - 1]
            raise InvalidArgumentError(message, node=node or None)
