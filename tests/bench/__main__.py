"""python -m tests.bench: how fast we are beside the peers.

Every figure is a median; sides take turns in one run, each in a process of its own that is stopped while others run,
so that ratios hold when the machine's speed drifts. A timing here decides no test. The exit code is 1 if outputs
disagree with TensorFlow's or an engine fails; reaching a target or not does not matter to it.

--against another version of graphmill (a revision of this repository, or a folder with its packages) measures our own
rows beside that version's, in turns like a peer's, without peers unless --peers names some. The benchmark, its engines
and its workloads are this version's. "least" is the least of our bursts over the least of theirs. Suites that start
whole commands have no such rows.

`python -m tests.bench.target` measures the processor instead and prints a row for toolkit/target/rows.py.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.bench.conditions import CONDITIONS
from tests.bench.cuda import engines as on_cards
from tests.bench.engines import PEERS, installed
from tests.bench.measure import NotRun, Row, machine
from tests.bench.settings import Settings
from tests.bench.versions import NoVersionError, Version, version

Result = Row | NotRun
OldRows = dict[tuple[str, str], dict[str, Any]]


def _speed(suite: str) -> Callable[[Settings], Iterator[Result]]:
    def run(settings: Settings) -> Iterator[Result]:
        from tests.bench import speed

        return speed.run(suite, settings)

    return run


def _busy(settings: Settings) -> Iterable[Result]:
    from tests.bench import busy

    return busy.run(settings)


def _serving(settings: Settings) -> Iterable[Result]:
    from tests.bench import serving

    return serving.run(settings)


def _probes(settings: Settings) -> Iterable[Result]:
    from tests.bench import probes

    return probes.run(settings)


def _startup(settings: Settings) -> Iterable[Result]:
    from tests.bench import startup

    return startup.run(settings)


def _first(settings: Settings) -> Iterable[Result]:
    from tests.bench import first

    return first.run(settings)


def _shapes(settings: Settings) -> Iterable[Result]:
    from tests.bench import shapes

    return shapes.run(settings)


def _memory(settings: Settings) -> Iterable[Result]:
    from tests.bench import memory

    return memory.run(settings)


def _checkpoint(settings: Settings) -> Iterable[Result]:
    from tests.bench import checkpoint

    return checkpoint.run(settings.rounds)


def _process(settings: Settings) -> Iterable[Result]:
    from tests.bench import process

    return process.run(settings.rounds)


def _cluster(settings: Settings) -> Iterable[Result]:
    from tests.bench import cluster, cluster_programs, cluster_steps

    suites = (cluster, cluster_steps, cluster_programs)
    return itertools.chain.from_iterable(suite.run(settings.rounds) for suite in suites)


def _channels(settings: Settings) -> Iterable[Result]:
    from tests.bench import channels

    return channels.run(settings.rounds)


def _inference(settings: Settings) -> Iterable[Result]:
    from tests.bench import inference

    return inference.run(settings.rounds)


def _client(settings: Settings) -> Iterable[Result]:
    from tests.bench import client

    return client.run(settings)


def _large(settings: Settings) -> Iterable[Result]:
    from tests.bench import large

    return large.run(settings)


def _cuda(settings: Settings) -> Iterable[Result]:
    from tests.bench.cuda import suite

    return suite.run(settings)


#: suite to (what makes its rows, what it measures)
SUITES: dict[str, tuple[Callable[[Settings], Iterable[Result]], str]] = {
    "networks": (_speed("networks"), "frozen classifiers, batch 1 and 16, float32 and bfloat16"),
    "transformer": (_speed("transformer"), "a transformer encoder"),
    "quantized": (_speed("quantized"), "residual networks of 8-bit numbers"),
    "rnn": (_speed("rnn"), "LSTM inference"),
    "training": (_speed("training"), "training steps"),
    "overhead": (_speed("overhead"), "what a step costs besides its operations"),
    "elementwise": (_speed("elementwise"), "a large graph of small operations"),
    "first": (_first, "from a model's file to its first result, in a new process and in one that has run it before"),
    "shapes": (_shapes, "the first step of each new shape: sentences, pictures and batches of many sizes"),
    "startup": (_startup, "whole processes, from the shell to the first result"),
    "memory": (_memory, "peak memory of a process"),
    "checkpoint": (_checkpoint, "saving and loading 1 GB beside TensorFlow"),
    "process": (_process, "whole commands beside TensorFlow's tools"),
    "large": (_large, "whole commands over 100,000 and a million nodes"),
    "cluster": (_cluster, "tensors between tasks of ours and of TensorFlow's"),
    "channels": (_channels, "large tensors over several gRPC channels beside one"),
    "inference": (_inference, "batches on Ray beside the same processes without it"),
    "client": (_client, "making graphs by TensorFlow's names, and importing them"),
    "serving": (_serving, "many threads that call one session, beside one caller and beside peers"),
    "probes": (_probes, "steps that are looked at: traced, and with every number checked, beside plain ones"),
    "busy": (_busy, "steps beside busy neighbours, with half the time, on one processor; each in new processes"),
    "cuda": (_cuda, "networks on a GPU beside PyTorch and JAX, within --seconds; --markdown writes a table"),
}

#: of this machine's processors and of GPUs
ALL_PEERS = (*PEERS, *on_cards.PEERS)

#: what `all` leaves out: it takes hours, or a GPU
BY_NAME = ("busy", "cuda")

#: whose rows have whole commands for sides, or peers of their own: another version takes no part
COMMANDS = ("startup", "checkpoint", "process", "client", "cluster", "channels", "large", "inference", "probes", "cuda")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suites that the command line names; returns the exit code."""
    parser = _parser()
    args = parser.parse_args(arguments)
    before = _load(parser, args.since)
    suites = [suite for suite in SUITES if suite not in BY_NAME] if "all" in args.suite else args.suite
    if args.against is None:
        return _measure(args, suites, before, None)
    suites = [suite for suite in suites if suite not in COMMANDS]
    if not suites:
        parser.error(f"--against: there are no rows of {', '.join(COMMANDS)} beside another version")
    with ExitStack() as until_the_end:
        try:
            against = until_the_end.enter_context(version(args.against))
        except NoVersionError as error:
            parser.error(f"--against {error}")
        return _measure(args, suites, before, against)


def _measure(args: argparse.Namespace, suites: list[str], before: OldRows, against: Version | None) -> int:
    peers = args.peers
    if peers is None:
        peers = () if against is not None else tuple(peer for peer in ALL_PEERS if _is_installed(peer))
    settings = Settings(
        args.rounds, args.threads, peers, tuple(args.only or ()), against, args.conditions, args.seconds
    )
    print(machine())
    if against is not None:
        print(f"against {against.name}: {against.folder}")
    load = os.getloadavg()[0]
    if load > 1:
        print(
            f"the machine is busy (load {load:.1f}): engines that pass work between threads look slow", file=sys.stderr
        )
    results: list[Result] = []
    for suite in suites:
        run, purpose = SUITES[suite]
        print(f"\n{suite}: {purpose}")
        for result in run(settings):
            results.append(result)
            print(line(result, before), flush=True)
            if suite == "cuda":  # whoever lends the GPU may end it at any time
                _save_all(args, results, settings)
    rows = [result for result in results if isinstance(result, Row)]
    if any(row.roofline is not None for row in rows):
        from tests.bench.roofline import peaks

        print(f"\nroofline: {peaks(settings.threads).text()}")
    aimed = [row for row in rows if row.target is not None]
    if aimed:
        print(f"{sum(bool(row.reached) for row in aimed)} of {len(aimed)} targets reached")
    _save_all(args, results, settings)
    return 1 if any(result.wrong for result in results) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    suites = f"{', '.join(SUITES)}, all (all but {', '.join(BY_NAME)})"
    parser.add_argument("--suite", type=_suites, default=["all"], metavar="S,S", help=suites)
    parser.add_argument("--peers", type=_peers, default=None, metavar="P,P", help=f"of {', '.join(ALL_PEERS)}")
    parser.add_argument("--only", action="append", metavar="TEXT", help="only workloads with TEXT in their names")
    parser.add_argument("--rounds", type=_positive, default=7, help="counted rounds of each side (7)")
    parser.add_argument("--threads", type=_positive, default=os.cpu_count() or 1, help="of each engine (all CPUs)")
    parser.add_argument(
        "--conditions",
        type=_conditions,
        default=(),
        metavar="C,C",
        help=f"of the suite busy: {', '.join(CONDITIONS)} (all)",
    )
    parser.add_argument("--json", metavar="FILE", help="also write the rows as JSON")
    parser.add_argument("--markdown", metavar="FILE", help="of the suite cuda: also write the rows as a table")
    parser.add_argument("--seconds", type=_positive, default=150, help="of the suite cuda: begin no row later (150)")
    parser.add_argument("--since", metavar="OLD", help="show the change since an earlier --json file")
    parser.add_argument("--against", metavar="VERSION", help="measure beside a git revision or folder of graphmill")
    return parser


def _is_installed(peer: str) -> bool:
    return on_cards.installed(peer) if peer in on_cards.PEERS else installed(peer)


def _suites(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name != "all" and name not in SUITES:
            raise argparse.ArgumentTypeError(f"there is no suite '{name}'; there are {', '.join(SUITES)} and all")
    return names


def _peers(text: str) -> tuple[str, ...]:
    names = tuple(name for name in text.split(",") if name)
    for name in names:
        if name not in ALL_PEERS:
            raise argparse.ArgumentTypeError(f"there is no peer '{name}'; there are {', '.join(ALL_PEERS)}")
        if not _is_installed(name):
            raise argparse.ArgumentTypeError(f"{name} is not installed; `pip install -e .[bench]` brings the peers")
    return names


def _conditions(text: str) -> tuple[str, ...]:
    names = tuple(name for name in text.split(",") if name)
    for name in names:
        if name not in CONDITIONS:
            raise argparse.ArgumentTypeError(f"there is no condition '{name}'; there are {', '.join(CONDITIONS)}")
    return names


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"wants a whole number above 0, not '{text}'")
    return int(text)


def _load(parser: argparse.ArgumentParser, path: str | None) -> OldRows:
    if path is None:
        return {}
    try:
        rows = json.loads(Path(path).read_text())["rows"]
        return {(row["workload"], row["peer_name"]): row for row in rows}
    except (OSError, ValueError, KeyError, TypeError) as error:
        parser.error(f"--since {path}: not a file that --json wrote ({error})")


def _save_all(args: argparse.Namespace, results: list[Result], settings: Settings) -> None:
    if args.json:
        _save(Path(args.json), results, settings)
    if args.markdown:
        from tests.bench.cuda.table import markdown

        Path(args.markdown).write_text(markdown(results, machine()))


def _save(path: Path, results: list[Result], settings: Settings) -> None:
    report: dict[str, Any] = {
        "machine": machine(), "threads": settings.threads, "rounds": settings.rounds,
        "against": settings.against and settings.against.name,
        "rows": [result.as_json() for result in results if isinstance(result, Row)],
        "not_run": [result.as_json() for result in results if isinstance(result, NotRun)],
    }  # fmt: skip
    if any(row["roofline"] is not None for row in report["rows"]):
        from dataclasses import asdict

        from tests.bench.roofline import peaks

        report["peaks"] = asdict(peaks(settings.threads))
    path.write_text(json.dumps(report, indent=2) + "\n")


def line(result: Result, before: OldRows) -> str:
    """A result in one line, with what it was in an earlier file."""
    if isinstance(result, NotRun):
        return f"  {result.workload:<46} {result.engine}: {'FAILED' if result.failed else 'not run'}: {result.reason}"
    row = result
    text = f"  {row.workload:<46} {row.ours:9.4g} {row.unit:<2} {row.peer_name}: {row.peer:.4g}  ratio {row.ratio:.3f}"
    if row.low is not None and row.high is not None:
        text += f" [{row.low:.3f} {row.high:.3f}]"
    if row.least is not None:
        text += f" least {row.least:.3f}"
    if row.target is not None:
        text += f" (target {row.target:.3g}: {'reached' if row.reached else 'not reached'})"
    old = before.get((row.workload, row.peer_name))
    if old is not None:
        text += f"  was {old['ratio']:.3f}"
    if row.roofline is not None:
        text += f"  {100 * row.roofline:.3g} % of roofline"
    text += f"  {row.note}" if row.note else ""
    return text + (f"  WRONG: {row.wrong}" if row.wrong else "")


if __name__ == "__main__":
    try:
        code = main()
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)
