"""python -m tests.fuzz: runs cases, prints what was run and each class of finding once, keeps small reproducers."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

# Forked children must not inherit threads, and share the machine with others: one thread for each library.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
# What users have: a compiler that leaves out what it cannot do; tests have one that fails.
os.environ.pop("GRAPHMILL_SEGMENTS", None)
os.environ.setdefault("GRAPHMILL_CACHE", "off")  # code kept beside a user's files is no file of a case
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # the same TensorFlow on every machine, as in tests/conftest.py

from tests.fuzz import tally  # noqa: E402
from tests.fuzz.case import CORPUS  # noqa: E402  # the variables have to be there before numpy
from tests.fuzz.reference import Reference  # noqa: E402
from tests.fuzz.session import Session  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of all dice: the same seed makes the same cases")
    parser.add_argument("--count", type=int, default=1000, help="how many cases")
    parser.add_argument("--start", type=int, default=0, help="number of the first")
    parser.add_argument("--seconds", type=float, help="begin nothing after this time")
    parser.add_argument("--kind", default="all", help="formats, graphs, ops, networks, loops (or some, by commas), all")
    parser.add_argument("--jobs", type=int, default=1, help="children at a time")
    parser.add_argument("--save", type=Path, default=CORPUS, help="where reproducers of new classes go; '' for nowhere")
    parser.add_argument("--known", action="append", default=[], metavar="KEY", help="classes not to keep again")
    parser.add_argument("--no-shrink", action="store_true", help="keep cases as they were found")
    parser.add_argument("--replay", nargs="*", type=Path, metavar="FILE", help="run these kept cases instead")
    parser.add_argument("--tally", type=Path, metavar="FILE", help="keep what was run, by blocks; skip those in it")
    parser.add_argument("--summary", nargs="+", type=Path, metavar="FILE", help="add up such files, run nothing")
    parser.add_argument("--tensorflow", action="store_true", help="ask TensorFlow too, where a case can be asked")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the whole detail of each finding")
    options = parser.parse_args()
    if options.summary:
        print(tally.summary(tally.read(options.summary)))
        return 0
    save = options.save if str(options.save) not in ("", ".") else None
    reference = Reference() if options.tensorflow else None
    session = Session(save, options.jobs, verbose=options.verbose, reference=reference)
    if options.replay is not None:
        return session.replay(options.replay or None)
    return session.explore(
        options.kind, options.seed, options.count, start=options.start, seconds=options.seconds,
        known=set(options.known), small=not options.no_shrink, tally=tally.Tally(options.tally),
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
