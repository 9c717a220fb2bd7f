"""What looks at the steps of a run: traces, measurements, dumped tensors, checks of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from toolkit.formats.models.model import Model
from toolkit.graph.node import Output
from toolkit.runtime.jobs.options import RunOptions
from toolkit.runtime.jobs.report import RunReport
from toolkit.runtime.jobs.request import Request
from toolkit.runtime.probes.base import Probe, Probes

if TYPE_CHECKING:  # what few runs ask for is imported when one does: a first step is short
    from toolkit.runtime.probes.dump import DumpProbe


class RunProbes:
    """The probes that a run's options ask for.

    Attributes:
        tracer, measure, dump: those of `--trace` and `--profile`, `--measure` and `--dump`; None: not asked for.
        dumped: what is fetched of each step to be dumped.
        probe: all that look at nodes as one; None where nothing does.
    """

    def __init__(self, model: Model, options: RunOptions, request: Request):
        self._model, self._options, self._request = model, options, request
        self.tracer = self.measure = None
        if options.trace or options.profile:
            from toolkit.runtime.probes.trace import TraceProbe

            self.tracer = TraceProbe(per_node=options.per_node)
        if options.measure:
            from toolkit.runtime.probes.measure import MeasureProbe

            self.measure = MeasureProbe()
        self.dump: DumpProbe | None = None
        self.dumped: list[Output] = []
        self.probe = self._make_probe()

    def _make_probe(self) -> Probe | None:
        options = self._options
        probes: list[Probe] = []
        if options.check_numerics:
            from toolkit.runtime.probes.numerics import NumericsProbe

            probes.append(NumericsProbe(per_node=options.per_node))
        if options.dump is not None:
            from toolkit.runtime.probes.dump import DumpProbe, require_match

            pattern, folder = options.dump
            require_match(pattern, self._model.graph)
            self.dump = DumpProbe([pattern], folder)
            if (wanted := self._dump_fetches(pattern)) is None:
                probes.append(self.dump)
            else:
                self.dumped = wanted
        if self.measure is not None:
            probes.append(self.measure)
        if self.tracer is not None:
            probes.append(self.tracer)
        return Probes(probes) if probes else None

    def _dump_fetches(self, pattern: str) -> list[Output] | None:
        """What is fetched of each step to be dumped; None where nodes are to be looked at."""
        if self._options.per_node or self._options.measure or self._options.master is not None:
            return None
        from toolkit.runtime.probes.dump_fetches import dump_fetches

        request = self._request
        fetches = list(request.fetches.values())
        return dump_fetches(self._model.graph, pattern, list(request.feeds), fetches, request.targets)

    def finish(self, report: RunReport, log: Callable[[str], None]) -> None:
        """Write what was asked for, behind the last step."""
        if self.dump is not None and not self.dump.written:
            log("--dump: nothing was written, for no node that the pattern matches ran and put out a tensor")
        if self.measure is not None and self._options.measure is not None:
            from toolkit.runtime.probes.calibration import measure_host

            self.measure.write(self._options.measure, measure_host(self._options.threads))
        if self.tracer is None:
            return
        spans = self.tracer.timeline()
        if self.tracer.dropped:
            log(f"the trace is cut after {len(self.tracer.spans)} kernels; {self.tracer.dropped} more ran")
        if self._options.trace is not None:
            from toolkit.runtime.probes.trace import write_trace

            write_trace(self._options.trace, spans)
        if self._options.profile:
            from toolkit.runtime.probes.profile import profile_report

            report.profile = profile_report(self.tracer)
