"""An actor whose process ends as soon as it is given a certain shard."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from typing import Any

from toolkit.cluster.ray.inference.actor import ShardActor


class DeadlyActor(ShardActor):
    """See `ShardActor`."""

    def run(self, feeds: Mapping[str, str], destination: str) -> Any:
        if "part-2" in destination:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run(feeds, destination)
