"""What a recorded step finds to be wrong while it is replayed: a number on the device, which whoever replays looks at.

A kernel cannot raise an error. What the host would have refused before a launch, an index that is out of range say,
a kernel of a recorded step notes in a word of memory and leaves undone; the replay copies the word to the host.

Memory that was too small for a list is noted there, too, and that something does not hold whose text the host writes.
Then the step is done again, by the host; so nothing of it may have changed a variable. What changes one is done only
where nothing is noted so far. Where it stands before what may find such a thing, whoever replays keeps what it was.
"""

from __future__ import annotations

from toolkit.errors import InvalidArgumentError, UnimplementedError
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.types import Array


class UpdatedBeforeError(UnimplementedError):
    """A step changes variables before it is known that the host has not to do it again."""


class Checks:
    """What may be wrong with a step.

    Args:
        word: int32 [1], 0 when a replay begins; kernels put the number of the first thing that is wrong there.
        saves: whoever replays keeps what variables were before.
    """

    def __init__(self, word: GpuArray, *, saves: bool = False):
        self.word = word
        self.saves = saves
        self._known: list[tuple[str, str] | None] = []
        self.left_to_host = 0  # how many things would have the step done again by the host
        self.updates = 0  # how often variables may be changed
        self.held: list[Array] = []  # pinned memory that the step copies from

    def __len__(self) -> int:
        return len(self._known)

    def add(self, node: str, message: str) -> int:
        """A number for something that may be wrong with a node, from 1 on."""
        self._known.append((node, message))
        return len(self._known)

    def add_for_host(self, node: str) -> int:
        """A number for memory that may be too small, or what else the host has to see to.

        Raises:
            UpdatedBeforeError: variables were changed before, and nobody keeps what they were.
        """
        self.require_saved(node, after=self.updates > 0)
        self.left_to_host += 1
        self._known.append(None)
        return len(self._known)

    def require_saved(self, node: str, *, after: bool) -> None:
        """See to it that changes of variables can be taken back.

        Args:
            after: they stand before something that may have the step done again.

        Raises:
            UpdatedBeforeError: they cannot.
        """
        if after and not self.saves:
            raise UpdatedBeforeError(
                f"{node} may have the step done again behind changes of variables: a list without a limit, or an "
                "assertion about tensors"
            )

    def is_for_host(self, found: int) -> bool:
        """Whether a replay that found this changed nothing, and has to be done again by the host."""
        return bool(found) and self._known[found - 1] is None

    def require(self, found: int) -> None:
        """See to what is in the word after a replay.

        Raises:
            InvalidArgumentError: something was wrong.
        """
        if found:
            node, message = self._known[found - 1] or ("", "the host has to do a recorded step again")
            raise InvalidArgumentError(message, node=node or None)
