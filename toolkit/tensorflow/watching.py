"""Looking at what a program's sessions run: timelines, profiles, checks of numbers."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.runtime.probes.trace import TraceProbe


@dataclass
class Watching:
    """What is wanted of the steps of a program, as with the options of `graphmill run`.

    Attributes:
        trace: the file that a timeline goes to.
        profile: whether `profile_lines` has something to say in the end.
        check_numerics: steps fail at the first node that makes a NaN or an infinity.
    """

    trace: str | None = None
    profile: bool = False
    check_numerics: bool = False
    _tracer: TraceProbe | None = field(default=None, init=False)

    @contextmanager
    def looking(self) -> Generator[None]:
        """Within this, every session is looked at; at the end, however it comes, the timeline is written."""
        if not (self.trace or self.profile or self.check_numerics):
            yield
            return
        from toolkit.runtime.probes.everywhere import looking
        from toolkit.runtime.probes.numerics import NumericsProbe
        from toolkit.runtime.probes.trace import TraceProbe, write_trace

        if self.trace or self.profile:
            self._tracer = TraceProbe()
        checking = looking(NumericsProbe()) if self.check_numerics else nullcontext()
        try:
            with checking, nullcontext() if self._tracer is None else looking(self._tracer):
                yield
        finally:
            if self._tracer is not None and self._tracer.dropped:
                kept, more = len(self._tracer.spans), self._tracer.dropped
                print(f"graphmill: the timeline is cut after {kept} kernels; {more} more ran", file=sys.stderr)
            if self._tracer is not None and self.trace is not None:
                write_trace(self.trace, self._tracer.spans)

    def profile_lines(self) -> list[str]:
        """Where time and memory went; nothing where no profile was wanted."""
        if self._tracer is None or not self.profile:
            return []
        from toolkit.runtime.probes.profile import profile_lines, profile_report

        return profile_lines(profile_report(self._tracer))
