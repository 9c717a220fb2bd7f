"""What `graphmill run` can be told: each option once, for the command line, its help and `run_model` alike.

Numpy is not imported here: `run --help` reads this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

from toolkit.kernels.device_options import DeviceOptions, parse_memory
from toolkit.runtime.devices import Device, parse_counts

if TYPE_CHECKING:
    from toolkit.limits.allowance import Allowance
    from toolkit.runtime.training.hooks.base import Hook

#: what an option names that is written: a folder, a file, or files whose names begin so
Written = Literal["folder", "file", "prefix"]


@dataclass(frozen=True, slots=True)
class Option:
    """How a field of `RunOptions` is given on the command line.

    Attributes:
        flag: the option's name.
        help: what it does, in a sentence.
        metavar: what stands for its value; None: what its type says.
        least: the smallest number that it may be.
        writes: what it names, if that is written; of several texts the last one.
        read: for an option that may be repeated: the field's value, of the texts.
    """

    flag: str
    help: str
    metavar: str | None = None
    least: int | None = None
    writes: Written | None = None
    read: Callable[[list[str]], Any] | None = None


def _option(flag: str, help: str, metavar: str | None = None, *, default: Any = None, **more: Any) -> Any:
    return field(default=default, metadata={"option": Option(flag, help, metavar, **more)})


def _names(texts: Iterable[str]) -> list[str]:
    return [part for text in texts for part in text.split(",") if part]


@dataclass(slots=True)
class RunOptions:
    """Everything `graphmill run` can be told.

    Attributes:
        feeds: what is fed, by name.
        keep_values: the values of all steps are wanted, not only the last ones: --out.
        limits: what the run may use: --limit.
        named_files: files that the command line names beside the options, which the model may read.
        hooks: beside those of `hook_files`.
    """

    feeds: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fetches: Sequence[str] = _option(
        "--fetch", "Tensor to compute: NODE or NODE:INDEX. Repeatable.", "T", default=(), read=_names
    )
    targets: Sequence[str] = _option("--target", "Operation to run. Repeatable.", "OP", default=(), read=_names)
    signature: str | None = _option("--signature", "Run this signature of the model.", "KEY")
    checkpoint: str | None = _option("--checkpoint", "Restore variables from here.", "PREFIX")
    init: bool = _option("--init", "Run the initialisers first; before restoring, with --checkpoint.", default=False)
    init_ops: Sequence[str] = _option(
        "--init-op", "Operation to run once before the steps (an iterator's). Repeatable.", "OP", default=(),
        read=_names,
    )  # fmt: skip
    steps: int | None = _option("--steps", "Run N steps; with --checkpoint-dir, up to global step N.", "N", least=1)
    batch: int | None = _option("--batch", "Cut fed arrays into minibatches along their first axis.", "B", least=1)
    shuffle: bool = _option("--shuffle", "Draw the examples in a new order each epoch.", default=False)
    epochs: int | None = _option("--epochs", "Passes over the fed data.", "E", least=1)
    seed: int | None = _option("--seed", "Seed of --shuffle.", "S", least=0)
    coalesce: int | None = _option(
        "--coalesce",
        "With --feed NAME=PATTERN: each file is a request, and those that wait run as one step of at most N examples.",
        "N",
        least=1,
    )
    save: str | None = _option("--save", "Write a checkpoint at the end.", "PREFIX", writes="prefix")
    checkpoint_dir: str | None = _option(
        "--checkpoint-dir", "Continue from the latest checkpoint here, else initialise; save here.", "DIR",
        writes="folder",
    )  # fmt: skip
    save_steps: int | None = _option("--save-steps", "Save to --checkpoint-dir every N steps.", "N", least=1)
    save_secs: float | None = _option(
        "--save-secs", "Save to --checkpoint-dir every S seconds (default 600).", "S", least=0
    )
    keep: int | None = _option("--keep", "Keep the K newest checkpoints.", "K", least=0)
    keep_every_n_hours: float | None = _option(
        "--keep-every-n-hours", "Also keep one checkpoint for every H hours for good.", "H", least=0
    )
    log_steps: int | None = _option("--log-steps", "Print fetched scalars every N steps.", "N", least=1)
    summaries: str | None = _option(
        "--summaries", "Write the graph's summaries as TensorBoard event files.", "LOGDIR", writes="folder"
    )
    summary_steps: int | None = _option("--summary-steps", "Write summaries every N steps (default 100).", "N", least=1)
    nan_guard: bool = _option(
        "--nan-guard", "Fail at the first step whose fetched values are not finite.", default=False
    )
    patience: int | None = _option(
        "--patience", "Stop when the first fetched scalar has not fallen for N steps.", "N", least=1
    )
    trace: str | None = _option(
        "--trace", "Write a timeline of what runs: Chrome's JSON, or RunMetadata for .pb.", "FILE",
        writes="file",
    )  # fmt: skip
    per_node: bool = _option(
        "--per-node", "Have --trace, --profile and --check-numerics look at nodes run one by one.", default=False
    )
    measure: str | None = _option(
        "--measure", "Write what each node takes, for place --costs (uncompiled).", "FILE", writes="file"
    )
    profile: bool = _option("--profile", "Print where time and memory went.", default=False)
    profile_dir: str | None = _option(
        "--profile-dir", "While training, write timelines and RunMetadata of steps to DIR.", "DIR", writes="folder"
    )
    profile_steps: int | None = _option(
        "--profile-steps", "How often --profile-dir writes (default: every 100 steps).", "N", least=1
    )
    dump: tuple[str, str] | None = _option(
        "--dump", "Write the outputs of matching nodes to DIR as .npy.", "PATTERN DIR", writes="folder"
    )
    dump_stages: str | None = _option(
        "--dump-stages", "Write the graph after each stage, and programs after each pass.", "DIR", writes="folder"
    )
    hook_files: Sequence[str] = _option(
        "--hook", "Add hooks: the file defines hooks() or subclasses of Hook. Repeatable.", "FILE.py", default=(),
        read=list,
    )  # fmt: skip
    check_numerics: bool = _option(
        "--check-numerics", "Fail at the first node that makes a NaN or infinity.", default=False
    )
    warmup: int | None = _option("--warmup", "Untimed steps before --repeat (default 1).", "W", least=0)
    repeat: int | None = _option("--repeat", "Run and time R steps.", "R", least=1)
    master: str | None = _option(
        "--master", "Run the steps at this server and the tasks of its cluster.", "grpc://HOST:PORT"
    )
    engine: str | None = _option(
        "--engine", "Run the steps in actors of a Ray cluster (see: graphmill help clusters).", "ray[://HOST:PORT]"
    )
    cluster: str | None = _option("--cluster", "With --engine: the tasks, and what each needs.", "CLUSTER.yaml")
    devices: Mapping[str, int] | Sequence[Device] | None = _option(
        "--devices", "Devices to run on: GPU=N, CPU=N virtual CPUs, or a type that a plugin brings.", "TYPE=N",
        read=parse_counts,
    )  # fmt: skip
    gpu_memory_limit: str | None = _option(
        "--gpu-memory-limit", "Let tensors take so much of each GPU's memory: 8G, or a part of it, as 0.5.", "AMOUNT"
    )
    deterministic: bool = _option(
        "--deterministic", "On GPUs: the same bits in every run, at the price of some speed.", default=False
    )
    no_soft_placement: bool = _option(
        "--no-soft-placement", "Refuse a graph with nodes that cannot be on the device they ask for.", default=False
    )
    inter_op: int | None = _option(
        "--inter-op", "Run independent heavy nodes on N threads (default: one after another).", "N", least=1
    )
    threads: int | None = _option(
        "--threads", "Threads of a kernel (default: one for each processor that nothing else keeps busy).", "N", least=1
    )
    precision: str = _option(
        "--precision",
        "How numbers are computed: bf16, products in bfloat16; on GPUs tf32, or fp16, where what is beyond 65504 is "
        "infinity, or fp8, bf16 whose products with weights take 8 bits; exact, by the ops' definitions "
        "(graphmill help numerics).",
        "f32|tf32|bf16|fp16|fp8|exact",
        default="f32",
    )
    allow: Sequence[str] = _option(
        "--allow",
        "Let the model do more: read=DIR, write=DIR, network, python, ... (see: graphmill help trust). Repeatable.",
        "WHAT",
        default=(),
        read=list,
    )
    trust: bool = _option("--trust", "Let the model do everything that you may do.", default=False)
    config: str | None = _option("--config", "What is allowed (default: graphmill.yaml in this folder).", "FILE")
    explain: bool = _option("--explain", "Print what the step was compiled to, and its text form.", default=False)
    no_cache: bool = _option(
        "--no-cache", "Compile anew, and keep no compiled code on disk (see: graphmill help shell).", default=False
    )
    force_tokens: bool = _option("--tokens", "Run every node in the dataflow executor (for debugging).", default=False)
    keep_values: bool = False
    limits: Allowance | None = None
    named_files: Sequence[str] = ()
    hooks: Sequence[Hook] = ()

    @property
    def is_training(self) -> bool:
        """Whether many steps are run for their effect."""
        return bool(self.targets) and (self.checkpoint_dir is not None or self.steps is None or self.steps > 1)

    @property
    def device_options(self) -> DeviceOptions:
        """What is said about GPUs.

        Raises:
            UsageError: it makes no sense.
        """
        limit = self.gpu_memory_limit
        return DeviceOptions(
            memory=None if limit is None else parse_memory(limit), deterministic=self.deterministic or None
        )

    def written(self, what: Written) -> dict[str, str]:
        """Flag to path, for the options that were given and name such a thing."""
        found: dict[str, str] = {}
        for name, option in OPTIONS.items():
            value = getattr(self, name)
            if option.writes == what and value is not None:
                found[option.flag] = value[-1] if isinstance(value, tuple) else value
        return found


#: field to how it is given on the command line
OPTIONS: dict[str, Option] = {
    each.name: each.metadata["option"] for each in fields(RunOptions) if "option" in each.metadata
}


def on_command_line() -> Iterator[tuple[str, Option, Any, Any]]:
    """The fields that are given on the command line: name, option, type of the value there, default."""
    types = get_type_hints(RunOptions, localns={"Allowance": Any, "Hook": Any})
    for each in fields(RunOptions):
        option = OPTIONS.get(each.name)
        if option is not None:
            repeats = option.read is not None
            yield (
                each.name,
                option,
                list[str] | None if repeats else types[each.name],
                None if repeats else each.default,
            )


def from_command_line(given: Mapping[str, Any], **others: Any) -> RunOptions:
    """The options, of the values of `on_command_line` by name, and of fields that are no options there.

    Raises:
        UsageError: what was given cannot be read.
    """
    values = dict(given)
    for name, option in OPTIONS.items():
        if option.read is not None and name in values:
            texts = values.pop(name)
            if texts:
                values[name] = option.read(texts)
    return RunOptions(**values, **others)
