"""`python -m tests.bench.inference_process SETTINGS`: runs the shards of each line, and prints how many a second."""

from __future__ import annotations

import json
import sys
import time

from toolkit.cluster.ray.actor import ActorSettings
from toolkit.cluster.ray.inference.actor import ShardActor, Work
from toolkit.policy.rules import Policy
from toolkit.runtime.jobs.options import RunOptions


def main() -> None:
    """Serve until standard input ends."""
    told = json.loads(sys.argv[1])
    options = RunOptions(fetches=told["fetches"], batch=told["batch"], threads=1, keep_values=True)
    actor = ShardActor(Work(told["source"], None, options, ("x",)), ActorSettings(Policy.everything()))
    for line in sys.stdin:
        shards = json.loads(line)
        start = time.perf_counter()
        for feeds, destination in shards:
            answer = actor.run(feeds, destination)
            assert isinstance(answer, int), answer
        print(len(shards) / (time.perf_counter() - start), flush=True)


if __name__ == "__main__":
    main()
