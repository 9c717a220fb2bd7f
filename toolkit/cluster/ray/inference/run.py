"""`graphmill run MODEL --engine ray --feed x=shards/*.npz --out DIR` as one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from toolkit.cluster.ray.connection import address_of
from toolkit.cluster.ray.inference.actor import Work
from toolkit.cluster.ray.inference.pool import ShardPool
from toolkit.cluster.ray.run_settings import actor_settings, cluster_of
from toolkit.errors import UsageError, about_option
from toolkit.runtime.jobs.loading import load
from toolkit.runtime.jobs.option_checks import check_shard_options
from toolkit.runtime.jobs.options import RunOptions
from toolkit.runtime.jobs.request import resolve
from toolkit.runtime.shards.files import find_shards, split_feeds
from toolkit.runtime.shards.manifest import Manifest, described


@dataclass(frozen=True, slots=True)
class Inferred:
    """What a run has left.

    Attributes:
        shards: how many results there are.
        computed: how many of them by this run.
    """

    shards: int
    computed: int


def infer(
    source: str, tags: Sequence[str] | None, options: RunOptions, feed: Sequence[str], out: str,
    log: Callable[[str], None],
) -> Inferred:  # fmt: skip
    """Run a model over all files that feeds name.

    Args:
        source: the model; the actors read it from there.
        feed: the texts of --feed.
        out: the folder of the results.
        log: takes lines of progress.

    Raises:
        UsageError: options, feeds or files do not fit.
        GraphmillError: a shard has failed; all others have their results. The message names the first.
    """
    check_shard_options(options)
    if source == "-":
        raise UsageError("the actors read the model themselves, which standard input allows once; name a file")
    with about_option("--engine"):
        address = address_of(options.engine or "")
    cluster = None if options.cluster is None else cluster_of(options)
    patterns, others = split_feeds(feed)
    shards = find_shards(patterns, others)
    model = load(source, tags).model
    resolve(
        model.meta, feeds=dict.fromkeys([*patterns, *others]), fetches=options.fetches, targets=(),
        signature=options.signature, init_ops=(),
    )  # fmt: skip
    manifest = Manifest(out, described(source, tags, options, others), shards)
    missing = len(manifest.missing())
    if missing:
        work = Work(source, None if tags is None else tuple(tags), _of_actors(options), tuple(patterns))
        settings = replace(actor_settings(options, model.folder or model.source), threads=None)
        with about_option("--engine"):
            pool = ShardPool(address, cluster, work, settings, log)
        try:
            failed = pool.run(manifest)
        finally:
            manifest.write()
            pool.close()
            manifest.sweep()
        if failed:
            entry, error = failed[0]
            error.message = f"{len(failed)} of {len(shards)} shards failed; the first is {entry.shard.name}: " + (
                error.message
            )
            raise error
    return Inferred(len(shards), missing)


def _of_actors(options: RunOptions) -> RunOptions:
    """The options of a process that runs shards."""
    return replace(options, engine=None, cluster=None, limits=None, feeds={}, keep_values=True, hooks=())
