"""Which options of `graphmill run` fit together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from toolkit.compiler.settings import MAX_THREADS, check_precision
from toolkit.errors import UsageError, about_option
from toolkit.formats.io import check_place
from toolkit.kernels.device_options import parse_memory
from toolkit.policy.rules import Policy
from toolkit.runtime.devices import Device
from toolkit.runtime.jobs.options import OPTIONS, RunOptions
from toolkit.runtime.sessions.targets import is_remote

#: an option that means nothing without one of others: (option, the others, what to do)
_NEEDS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("save_steps", ("checkpoint_dir",), "say where to save with --checkpoint-dir DIR"),
    ("save_secs", ("checkpoint_dir",), "say where to save with --checkpoint-dir DIR"),
    ("keep", ("checkpoint_dir", "save"), "say where to save with --checkpoint-dir DIR"),
    ("keep_every_n_hours", ("checkpoint_dir", "save"), "say where to save with --checkpoint-dir DIR"),
    ("summary_steps", ("summaries",), "say where to write with --summaries LOGDIR"),
    ("shuffle", ("batch",), "add --batch B"),
    ("epochs", ("batch",), "add --batch B"),
    ("seed", ("shuffle",), "it is the seed of --shuffle; the graph's own seeds are in the graph"),
    ("profile_steps", ("profile_dir",), "say where to write with --profile-dir DIR"),
    ("warmup", ("repeat",), "add --repeat R"),
    ("cluster", ("engine",), "it says what --engine ray runs on"),
)
#: pairs that contradict each other
_CLASHES: tuple[tuple[str, str, str], ...] = (
    ("save_steps", "save_secs", "save by steps or by seconds"),
    ("trust", "allow", "a trusted model may do everything"),
    ("engine", "master", "the steps run at one or the other"),
    *(
        ("explain", other, "nothing is run")
        for other in (
            "keep_values", "save", "repeat", "summaries", "trace", "measure", "profile", "profile_dir", "dump",
            "check_numerics", "nan_guard", "patience", "log_steps", "hook_files", "init_ops",
        )
    ),
    *(
        ("repeat", other, "timing runs the same step again and again")
        for other in ("steps", "batch", "epochs", "checkpoint_dir", "save", "log_steps", "summaries", "patience")
    ),
    *(
        ("repeat", other, "what is timed is not looked into; --steps N runs N steps that are")
        for other in (
            "trace", "measure", "profile", "profile_dir", "dump", "check_numerics", "nan_guard", "hook_files",
        )
    ),
)  # fmt: skip
#: what shows tensors within a step
_WITHIN = ("dump", "check_numerics", "measure", "profile")
#: what is said about GPUs
_OF_GPUS = ("gpu_memory_limit", "deterministic")
#: what cannot be had where the steps run at a master, and why
_NOT_REMOTE: tuple[tuple[str, str], ...] = (
    *((name, "tensors within a step stay at the servers") for name in _WITHIN),
    *((name, "the servers compile the graph") for name in ("explain", "dump_stages", "force_tokens", "no_cache")),
    *((name, "the servers have their own") for name in ("devices", "threads", "inter_op", "limits", *_OF_GPUS)),
    *((name, "what a graph may touch is the servers' to say") for name in ("allow", "trust", "config")),
)
#: and where they run in actors
_NOT_IN_ACTORS: tuple[tuple[str, str], ...] = (
    *((name, "tensors within a step stay in the actors") for name in _WITHIN),
    *((name, "the actors compile the graph") for name in ("explain", "dump_stages", "force_tokens", "no_cache")),
    ("devices", "--cluster says what each task has"),
    *((name, "the actors have their own") for name in _OF_GPUS),
    ("limits", "it would hold this process, and the steps run in others"),
)
#: what batches over many files can be told; all else is for one model in one session
_OF_SHARDS = frozenset(
    {
        "fetches", "signature", "checkpoint", "init", "batch", "engine", "cluster", "no_soft_placement", "inter_op",
        "threads", "precision", "allow", "trust", "config",
    }
)  # fmt: skip
#: what requests that are put together can be told: one model in one session, whose steps only compute
_OF_REQUESTS = (_OF_SHARDS - {"batch", "engine", "cluster"}) | {
    "coalesce", "keep_values", "devices", "limits", "no_cache", "force_tokens", *_OF_GPUS,
}  # fmt: skip
#: what --compare has no use for
_NOT_COMPARED = (
    "targets", "steps", "batch", "coalesce", "epochs", "checkpoint_dir", "save", "log_steps", "summaries", "nan_guard",
    "patience", "repeat", "trace", "measure", "profile", "profile_dir", "dump", "check_numerics", "hook_files",
    "dump_stages",
)  # fmt: skip


def check_options(options: RunOptions, *, comparing: bool = False) -> None:
    """Refuse options that would be without effect or contradict each other, before anything is run.

    Args:
        comparing: two models are to be compared.

    Raises:
        UsageError: so.
    """
    for name, others, advice in _NEEDS:
        if _given(options, name) and not any(_given(options, other) for other in others):
            raise UsageError(f"{_flag(name)} is without effect here: {advice}")
    for name, other, why in _CLASHES:
        if _given(options, name) and _given(options, other):
            raise UsageError(f"{_flag(name)} and {_flag(other)} do not go together: {why}")
    if comparing:
        for name in _NOT_COMPARED:
            if _given(options, name):
                raise UsageError(f"--compare runs one step of each model; {_flag(name)} is without effect there")
    if options.master is not None:
        if not is_remote(options.master):
            raise UsageError(f"--master: '{options.master}' is no address of a master; expected grpc://HOST:PORT")
        for name, why in _NOT_REMOTE:
            if _given(options, name):
                raise UsageError(f"{_flag(name)} and --master do not go together: {why}")
        if options.precision != "f32":
            raise UsageError("--precision and --master do not go together: the servers have their own")
        if comparing:
            raise UsageError("--compare runs both models here; --master is without effect there")
    if options.engine is not None:
        for name, why in _NOT_IN_ACTORS:
            if _given(options, name):
                raise UsageError(f"{_flag(name)} and --engine do not go together: {why}")
        if comparing:
            raise UsageError("--compare runs both models here; --engine is without effect there")
    with about_option("--precision"):
        check_precision(options.precision)
    with about_option("--allow"):
        Policy().allowing(*options.allow)
    _check_places(options)
    _check_devices(options.devices)
    _check_gpus(options)
    for name in ("threads", "inter_op"):
        threads = getattr(options, name)
        if threads is not None and threads > MAX_THREADS:
            raise UsageError(f"{_flag(name)}: there cannot be {threads} threads; expected 1 to {MAX_THREADS}")


def check_shard_options(options: RunOptions) -> None:
    """Refuse what has no meaning where a model is run over many files, in processes of their own.

    Raises:
        UsageError: so.
    """
    for name, option in OPTIONS.items():
        if name not in _OF_SHARDS and _given(options, name):
            raise UsageError(f"{option.flag} has no meaning where --feed names many files, each of them one pass")


def check_request_options(options: RunOptions) -> None:
    """Refuse what has no meaning where each of many files is a request, and several run as one step.

    Raises:
        UsageError: so.
    """
    for name in OPTIONS:
        if name not in _OF_REQUESTS and _given(options, name):
            raise UsageError(f"{_flag(name)} has no meaning with --coalesce, where one step is for several requests")


def _given(options: RunOptions, name: str) -> bool:
    value = getattr(options, name)
    return value is not None and value is not False and value not in ((), [])


def _flag(name: str) -> str:
    return {"keep_values": "--out", "limits": "--limit"}.get(name) or OPTIONS[name].flag


def _check_places(options: RunOptions) -> None:
    """Folders where files are wanted and files where folders are: better said before the run than after it."""
    if options.save is not None and (Path(options.save).is_dir() or options.save.endswith("/")):
        raise UsageError(
            f"--save wants a prefix, and '{options.save}' is a folder; "
            f"write --save {options.save.rstrip('/')}/model.ckpt"
        )
    for flag, file in (("--trace", options.trace), ("--measure", options.measure)):
        if file is not None and Path(file).is_dir():
            raise UsageError(f"{flag} wants a file, and '{file}' is a folder")
        if file is not None:
            check_place(file)
    for flag, folder in options.written("folder").items():
        if Path(folder).exists() and not Path(folder).is_dir():
            raise UsageError(f"{flag} wants a folder, and '{folder}' is a file")


def _check_devices(devices: Mapping[str, int] | Sequence[Device] | None) -> None:
    if not isinstance(devices, Mapping):
        return
    from toolkit.kernels import device_types

    for kind, count in devices.items():
        if kind == "CPU":
            if count < 1:
                raise UsageError("--devices CPU=0: there is always one CPU at least")
        elif kind not in device_types.names():
            raise UsageError(
                f"--devices {kind}={count}: there are no kernels for {kind} here; GPU=N takes the machine's GPUs, "
                "CPU=N makes virtual CPUs, and a device type that a plugin brings needs --plugin"
            )
        elif count:
            with about_option("--devices"):
                device_types.require(kind, count)


def _check_gpus(options: RunOptions) -> None:
    """What is said about GPUs says nothing where there are none in the session."""
    with about_option("--gpu-memory-limit"):
        if options.gpu_memory_limit is not None:
            parse_memory(options.gpu_memory_limit)
    for name in _OF_GPUS:
        if _given(options, name) and not _has_gpus(options.devices):
            raise UsageError(f"{_flag(name)} is without effect here: say on which GPUs to run with --devices GPU=N")


def _has_gpus(devices: Mapping[str, int] | Sequence[Device] | None) -> bool:
    if isinstance(devices, Mapping):
        return devices.get("GPU", 0) > 0
    return any(device.device_type == "GPU" for device in devices or ())
