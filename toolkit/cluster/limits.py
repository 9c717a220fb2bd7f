"""What a server takes at most: `memory=4G,tensor=1G,message=256M,graph=64M,sessions=100`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from toolkit.cluster.rpc.channels import MESSAGE_BYTES
from toolkit.errors import UsageError, did_you_mean
from toolkit.formats import bounds
from toolkit.formats.settings.quantities import BYTES, COUNT, read_quantity
from toolkit.limits.limits import Limits

#: sessions that a master has at once: each holds its graph and what was compiled of it
MOST_SESSIONS = 1000
_EXAMPLES = {"memory": "4G", "tensor": "1G", "message": "256M", "graph": "64M", "sessions": "100"}
_LEAST_MESSAGE = 1 << 16  # smaller ones would not hold the devices of a cluster


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """The limits of one task.

    Attributes:
        memory, tensor: bytes of all arrays of all sessions together, and of any one; None for what the machine has.
        message: bytes of the largest request.
        graph: bytes of the largest graph, as a message, of a session or of a part of one.
        sessions: how many a master has at once.
    """

    memory: int | None = None
    tensor: int | None = None
    message: int = MESSAGE_BYTES
    graph: int = bounds.REPEATED
    sessions: int = MOST_SESSIONS

    @property
    def of_steps(self) -> Limits | None:
        """What steps may use; None where that has no limit."""
        return None if self.memory is None and self.tensor is None else Limits(memory=self.memory, tensor=self.tensor)

    @staticmethod
    def parse(text: str) -> ServerLimits:
        """The limits that a text names, the others as they are by default.

        Raises:
            UsageError: a name or a number that there is not, or a limit that is given twice.
        """
        given: dict[str, int] = {}
        for part in text.split(","):
            name, _, value = (piece.strip() for piece in part.partition("="))
            if name not in _EXAMPLES:
                raise UsageError(
                    f"there is no limit '{name[:40]}' of a server; a limit is one of "
                    f"{', '.join(_EXAMPLES)}{did_you_mean(name, _EXAMPLES)}"
                )
            if name in given:
                raise UsageError(f"the limit '{name}' is given twice")
            units = COUNT if name == "sessions" else BYTES
            given[name] = int(read_quantity(value, units, f"{name}={_EXAMPLES[name]}"))
            if given[name] < (_LEAST_MESSAGE if name == "message" else 1):
                raise UsageError(f"the limit '{name}={value}' is too small to serve anybody")
        made = replace(ServerLimits(), **given)
        return replace(made, message=min(made.message, MESSAGE_BYTES))
