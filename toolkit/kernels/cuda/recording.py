"""CUDA graphs with the memory that they use."""

from __future__ import annotations

from toolkit.kernels.cuda.driver.base import CapturedGraph, Context, Stream
from toolkit.kernels.cuda.pool import Pool
from toolkit.kernels.types import Array


class Recording:
    """Work that was recorded.

    Attributes:
        graph: what was recorded; None while it is, and when that failed.
        private: the pool of the tensors that were made meanwhile.
        held: pinned memory that it copies from.
    """

    def __init__(self, context: Context, stream: Stream):
        self._context, self._stream = context, stream
        self.graph: CapturedGraph | None = None
        self.private: Pool | None = None
        self.held: list[Array] = []

    def replay(self) -> None:
        """Do it behind what is in the compute stream. The tensors made while recording are written anew.

        Raises:
            DriverError: the driver refuses.
        """
        assert self.graph is not None
        self._context.replay(self.graph, self._stream)

    def close(self) -> None:
        """Give the graph back, and its memory when none of its tensors is alive."""
        graph, self.graph = self.graph, None
        try:
            if graph is not None:
                self._context.synchronize(self._stream)
                self._context.free_graph(graph)
        finally:
            if self.private is not None:
                self.private.close()
