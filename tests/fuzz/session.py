"""A run of the fuzzer: cases by number through the pool, findings by class, reproducers into a folder."""

from __future__ import annotations

import gc
import hashlib
import importlib
import pkgutil
import re
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from tests.fuzz import case as cases
from tests.fuzz import shrink, sources
from tests.fuzz.case import Case, Finding
from tests.fuzz.pool import Pool, Result
from tests.fuzz.reference import Reference
from tests.fuzz.tally import Block, Tally

#: how often a class is tried to be seen again before it is let be
_TRIES = 3


def warm_up() -> None:
    """Import everything that commands import on demand, once for all children."""
    import commands
    import toolkit

    for package in (commands, toolkit):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if "cuda" not in module.name:
                importlib.import_module(module.name)
    for name in ("yaml", "PIL.Image", "llvmlite.binding", "google.protobuf.json_format", "google.protobuf.text_format"):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # children share what is there: no collection walks through it, and copies its pages


class Session:
    """Prints as it goes.

    Args:
        save: where reproducers go, None for nowhere.
        jobs: children at a time.
    """

    def __init__(self, save: Path | None, jobs: int, *, verbose: bool = False, reference: Reference | None = None):
        self._save = save
        self._jobs = jobs
        self._verbose = verbose
        self._reference = reference
        self.classes: Counter[str] = Counter()
        #: by class: how often it was not seen again, _TRIES once it was
        self._again: Counter[str] = Counter()

    def explore(
        self, kind: str, seed: int, count: int, *, start: int = 0, seconds: float | None = None,
        known: set[str] | None = None, small: bool = True, tally: Tally | None = None,
    ) -> int:  # fmt: skip
        """Run new cases; returns an exit code: 1 where there are findings."""
        warm_up()
        makers = sources.load(kind)
        began = time.monotonic()
        deadline = None if seconds is None else began + seconds
        tally = tally or Tally(None)
        with Pool(sources.numbered(makers, seed), self._jobs, reference=self._reference) as pool:
            for block in tally.left(kind, seed, start, count):
                if self._run(pool, block, deadline, known or set(), small=small):
                    tally.add(block)
            self._summary(pool, time.monotonic() - began)
        return 1 if self.classes else 0

    def _run(self, pool: Pool, block: Block, deadline: float | None, known: set[str], *, small: bool) -> bool:
        """Run the cases of a block and fill in what they did; returns whether all were run."""
        began, cases, made, codes, found = (
            time.monotonic(),
            pool.cases,
            Counter(pool.made),
            Counter(pool.counts),
            Counter[str](),
        )
        for result in pool.run(range(block.start, block.start + block.count), deadline):
            keys = {finding.key for finding in result.findings}
            found.update(keys)
            self.classes.update(keys)
            new = [finding for finding in result.findings if self._again[finding.key] < _TRIES]
            if new:
                self._confirm(pool, Result(result.number, new, result.before), known, small=small)
        block.seconds = round(time.monotonic() - began, 1)
        block.cases = dict(pool.made - made)
        block.codes = {" ".join(key): times for key, times in (pool.counts - codes).items()}
        block.classes = dict(found)
        block.again = sorted(key for key in found if self._again[key] == _TRIES)
        return pool.cases - cases >= block.count

    def _confirm(self, pool: Pool, result: Result, known: set[str], *, small: bool) -> None:
        """See whether findings happen again; print them, and keep the case if they do."""
        confirmed = pool.confirm(result, result.before)
        if confirmed is None:
            for finding in result.findings:
                self._again[finding.key] += 1
                self._print(finding, f"case {result.number}, not seen again")
            return
        for finding in {finding.key: finding for finding in confirmed.findings}.values():
            if self._again[finding.key] == _TRIES:
                continue
            self.classes[finding.key] += finding.key not in {other.key for other in result.findings}
            self._again[finding.key] = _TRIES
            where = f"case {result.number}" + (f" after {confirmed.before}" if confirmed.before else "")
            made = pool.make(result.number)
            if self._save is not None and made is not None and finding.key not in known and not confirmed.before:
                where += f", {self._keep(made, finding, small=small)}"
            self._print(finding, where)

    def replay(self, files: list[Path] | None) -> int:
        """Run kept cases, all by default."""
        warm_up()
        paths = files or cases.corpus()
        kept = [cases.load(path).case for path in paths]
        with Pool(lambda number: kept[number], self._jobs, reference=self._reference) as pool:
            for result in pool.run(range(len(kept))):
                for finding in result.findings:
                    self.classes[finding.key] += 1
                    self._print(finding, str(paths[result.number]))
            self._summary(pool, 0.0)
        return 1 if self.classes else 0

    def _keep(self, case: Case, finding: Finding, *, small: bool) -> Path:
        if finding.command:
            plain = replace(case, commands=[_asked(case, finding)])
            case = plain if _does(plain, finding.key, self._reference) else case
        if small:
            case = shrink.shrink(case, lambda candidate: _does(candidate, finding.key, self._reference))
        title = re.sub(r"[^A-Za-z0-9]+", "-", finding.key).strip("-")[:80]
        digest = hashlib.sha256(finding.key.encode()).hexdigest()[:6]
        assert self._save is not None
        path = self._save / f"{title}-{digest}.json"
        cases.save(case, [finding.key], path)
        return path

    def _print(self, finding: Finding, where: str) -> None:
        detail = finding.detail if self._verbose else "\n".join(finding.detail.strip().splitlines()[-3:])[-600:]
        print(f"{finding.key}\n  {where}\n  graphmill {' '.join(finding.command)}")
        print("    " + detail.replace("\n", "\n    ").encode("unicode_escape").decode().replace("\\n", "\n"))
        sys.stdout.flush()

    def _summary(self, pool: Pool, took: float) -> None:
        runs = sum(pool.counts.values())
        speed = f", {pool.cases / took:.1f} cases and {runs / took:.1f} command lines a second" if took else ""
        print(f"\n{pool.cases} cases, {runs} command lines in {took:.0f} s{speed}")
        for (command, code), times in sorted(pool.counts.items()):
            print(f"  {command:24} exit {code:>9} {times:8}")
        for how, times in sorted(self._reference.counts.items() if self._reference else ()):
            print(f"  TensorFlow: {how:27} {times:8}")
        print(f"{len(self.classes)} classes of findings")
        for key, times in self.classes.most_common():
            print(f"  {times:6} {key}")


def _asked(case: Case, finding: Finding) -> list[str]:
    """The command line of a case that a finding is about: with executors, options were added to it."""
    asked = list(finding.command)
    return next((line for line in case.commands if asked[: len(line)] == line), asked)


def _does(case: Case, key: str, reference: Reference | None) -> bool:
    """Whether a case has a finding of a class, alone in a child."""
    with Pool(lambda number: case, reference=reference) as pool:
        return any(finding.key == key for finding in pool.alone([0]))
