"""How far two computations of a graph may be apart, measured: rounding errors are made larger than life by chance.

The graph is run node by node with its definitions, again and again; each time every number that a node computes is
moved by chance, as far as that node's roundings reach, and the fetches' deviations from the run without are taken
together (D. S. Parker, "Monte Carlo Arithmetic", 1997). Cancellation, ill-conditioned matrices, loops, functions and
gradients need no rules that way, and any float type will do. `tests.rounding` derives the same for the nodes it knows.

How far the roundings of a node reach, as a root of the mean square (u from `tests.tolerance.unit`):

- a number that stands among the node's inputs was moved, chosen or compared, and none that is not finite was rounded,
  nor a 0 but where products cancel, nor what is whole and made of whole numbers: exact, which also keeps ties what
  they are;
- what `tests.rounding` has a rule for, of float32: the rule, of exact inputs;
- a sum of n products: sqrt(n) u times the sum of the absolute products (Higham, "Accuracy and Stability", section 3.1);
- arithmetic of each number by itself: u times the number;
- a decomposition, a solution and their kin: that of inputs which are off by n u times their largest number, for n
  numbers (backward stability; Higham, chapters 9, 10 and 19), where their output is not known better;
- a norm of a row, a softmax: n u times the largest number of the row, for rows of n; pixels of a resized image: that of
  the largest pixel, for sides of n pixels;
- anything else: n u times the largest number of the output, for n numbers in the largest input, and never less than
  what the approximation of a function is good to;
- an optimizer's rule: what goes in, variables and slots, and what comes out are off by u times each.

A result below the smallest number with all digits may be taken as 0.

Where products are made of factors in bfloat16, float16 or e4m3 (`precision="bf16"`, "fp16", "fp8"), each factor is off
by that type's u, and so is each number that is kept in it; sums stay sums in float32 (`graphmill help numerics`). Of
fp8 that is more than there is: what is kept, and products of computed tensors, have bfloat16's.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests import tolerance
from tests.perturbed_kernels import Perturbed, info, is_rounded, unit, wide
from toolkit.kernels import registry
from toolkit.runtime.session import Session

#: runs with other roundings: that 12 of them show less than a fifth of the deviation has a chance of 1e-6 a number,
#: and what is allowed is eleven times what two computations are apart on average
_RUNS = 12
#: enough for the largest of many numbers: that three of them show less than a fifth in 4 runs has a chance of 3e-8
_FEW_RUNS = 4
#: types of factors, by the precision
_NARROW: dict[str, Any] = {"bf16": ml_dtypes.bfloat16, "fp16": np.float16, "fp8": ml_dtypes.float8_e4m3fn}

Work = Callable[..., list[Any]]


def allowed(
    graph: Any, fetches: Sequence[Any], feeds: Mapping[Any, Any], before: Sequence[Any] = (), **session: Any
) -> list[Any]:
    """How far two computations of the fetches may be apart; 0 for what is no float.

    Args:
        before: operations that are run first, every time in a session of their own.
        session: settings of the session.

    Returns:
        For each fetch an array of its shape.
    """
    return [np.asarray(each) for each in _of_fetches(graph, fetches, feeds, before, **session)]


def _of_fetches(
    graph: Any, fetches: Sequence[Any], feeds: Mapping[Any, Any], before: Sequence[Any], **session: Any
) -> list[Reach]:
    def work(running: Session, *, first: bool) -> list[Any]:
        for name in before if first else ():
            running.run(name)
        return running.run(list(fetches), feeds)

    return Runs(graph, work, anew=bool(before), **session).reaches


def of_work(
    graph: Any, work: Callable[[Session], list[Any]], *, precision: str = "exact", **session: Any
) -> list[Reach]:
    """As `allowed`, of whatever is done with a session that is new each time, when it is asked for.

    Args:
        work: gives numbers.
        precision: in which they were computed.
    """
    return Runs(graph, lambda running, **_: work(running), anew=True, precision=precision, **session).reaches


def of_network(graph: Any, work: Callable[[Session], list[Any]]) -> list[Reach]:
    """As `of_work` for large graphs, of fewer runs: each number may be as far off as its tensor's furthest."""
    return Runs(
        graph, lambda running, **_: work(running), anew=False, count=_FEW_RUNS, of=lambda far: np.max(far, initial=0.0)
    ).reaches


class Runs:
    """Runs of one piece of work, the first as it is, the others with other roundings, each made when it is asked for.

    Args:
        graph: of the sessions in which they are.
        work: is given a session, and `first`, whether it is new; gives numbers.
        anew: every run has a session of its own, as where there is state.
        precision: in which the numbers were computed.
        count: how many there are, without the first.
        of: makes of how far the numbers of a tensor may be off how far they may be off.
        session: settings of the sessions.

    Attributes:
        reaches: how far each of the numbers may be off.
    """

    def __init__(
        self,
        graph: Any,
        work: Work,
        *,
        anew: bool,
        precision: str = "exact",
        count: int = _RUNS,
        of: Callable[[Any], Any] = np.asarray,
        **session: Any,
    ) -> None:
        self._graph, self._work, self._anew, self._settings = graph, work, anew, session
        self._perturbed = Perturbed(_NARROW.get(precision))
        self._count = self._left = count
        self._runs = self._made()
        plain = next(self._runs)
        self._deviations = [Deviations(each, self._perturbed.narrow) for each in plain]
        self.reaches = [Reach(self, each, of) for each in self._deviations]

    @property
    def complete(self) -> bool:
        return not self._left

    def go_on(self) -> None:
        """Make one more."""
        for known, value in zip(self._deviations, next(self._runs), strict=True):
            known.add(value)
        self._left -= 1
        if self.complete:
            self._runs.close()

    def _made(self) -> Generator[list[Any]]:
        running: Session | None = None
        try:
            while True:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(registry, "get", self._perturbed.get)
                    patch.setenv("GRAPHMILL_SEGMENTS", "off")  # compiled, what NumPy computes is not asked of kernels
                    new = running is None or self._anew or self._perturbed.has_state
                    if new:
                        if running is not None:
                            running.close()
                        running = Session(self._graph, precision="exact", **self._settings)
                    values = self._work(running, first=new)
                yield values
                self._perturbed.active = True
        finally:
            if running is not None:
                running.close()

    def of(self, known: Deviations) -> Any:
        """How far numbers may be off by all runs, of which those that are not yet made show nothing."""
        return known.allowed(None if self.complete else self._count)


class Deviations:
    """How far one tensor's numbers were off in some runs.

    Args:
        plain: the numbers without noise.
        narrow: the unit of what they were kept in, where that has fewer digits.
    """

    def __init__(self, plain: Any, narrow: float = 0.0) -> None:
        self._plain = np.asarray(plain)
        self._is_rounded = is_rounded(self._plain)
        self._narrow = narrow
        self._squares: Any = 0.0
        self._runs = 0

    def add(self, value: Any) -> None:
        # a size that hangs on a rounding is another one in some of them; the size itself is compared exactly
        if not self._is_rounded or np.shape(value) != self._plain.shape:
            return
        kind = wide(self._plain.dtype)
        with np.errstate(all="ignore"):
            self._squares = self._squares + np.square(np.abs(np.asarray(value).astype(kind) - self._plain.astype(kind)))
        self._runs += 1

    def allowed(self, runs: int | None = None) -> Any:
        """How far each number may be off, 0 for what is no float.

        Args:
            runs: what the squares are a mean over, else as many runs as there were.
        """
        if not self._is_rounded:
            return 0.0
        runs = self._runs if runs is None else runs
        assert runs, f"no run but the first gives the shape {self._plain.shape}"
        exact = self._plain.astype(wide(self._plain.dtype))
        with np.errstate(all="ignore"):
            mean = np.sqrt(np.nan_to_num(self._squares / runs, nan=0.0))
            own = max(unit(self._plain.dtype), self._narrow) * np.abs(exact)
        smallest = float(info(self._plain.dtype).tiny)
        return 2 * tolerance.LIKELY * (mean + np.nan_to_num(own, nan=0.0, posinf=0.0) + smallest)


class Reach:
    """How far the numbers of one tensor may be off: as an array by all runs, or by as many as tell.

    What is allowed grows with the sum of the squares of the deviations, and none of them is negative: numbers that are
    near enough by the sum over a few runs, taken for the sum over all, are near enough by all, and the others need not
    be made. (Only of a number that a later run would have made NaN of is nothing known, where its last rounding would
    have been allowed.)
    """

    def __init__(self, runs: Runs, known: Deviations, of: Callable[[Any], Any]) -> None:
        self._runs, self._known, self._of = runs, known, of

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        while not self._runs.complete:
            self._runs.go_on()
        return np.asarray(self._of(self._runs.of(self._known)), dtype)

    def admits(self, mine: Any, other: Any) -> bool:
        """Whether fewer than all runs tell that numbers are no further apart; runs are made until they do.

        Whoever listens to how much of what is allowed is used (`tests.margins`) is told it by all runs.
        """
        while not (self._runs.complete or tolerance.listeners):
            if tolerance.is_within(mine, other, self._of(self._runs.of(self._known))):
                return True
            self._runs.go_on()
        return False


def assert_close(
    graph: Any,
    fetches: Sequence[Any],
    feeds: Mapping[Any, Any],
    results: Sequence[Sequence[Any]],
    before: Sequence[Any] = (),
    **session: Any,
) -> None:
    """Raise AssertionError unless two computations of fetches are as near to each other as `allowed` says.

    Args:
        results: for each computation the values of the fetches.
    """
    far = lambda: _of_fetches(graph, fetches, feeds, before, **session)  # noqa: E731
    assert_agree(results, far, [str(each) for each in fetches])


def assert_agree(results: Sequence[Sequence[Any]], far: Callable[[], Sequence[Any]], names: Sequence[str] = ()) -> None:
    """Raise AssertionError unless every computation is near the last one.

    Args:
        results: for each computation its values; what is no float must be the same.
        far: how far each value may be off, asked where last roundings do not explain what there is.
        names: of the values.
    """
    *others, wanted = results
    names = names or [str(index) for index in range(len(wanted))]
    for got in others:
        for name, mine, other in zip(names, got, wanted, strict=True):
            a, b = np.asarray(mine), np.asarray(other)
            assert a.dtype == b.dtype and a.shape == b.shape, f"{name}: {a.dtype}{a.shape}, not {b.dtype}{b.shape}"
            if not is_rounded(b):
                np.testing.assert_array_equal(a, b, err_msg=name)
    if all(is_within_last_rounding(a, b) for got in others for a, b in zip(got, wanted, strict=True)):
        return
    reaches = far()
    for got in others:
        for name, mine, other, reach in zip(names, got, wanted, reaches, strict=True):
            if not is_rounded(np.asarray(other)) or (isinstance(reach, Reach) and reach.admits(mine, other)):
                continue
            tolerance.assert_within(mine, other, np.asarray(reach), name)


def is_within_last_rounding(mine: Any, other: Any) -> bool:
    """Whether two computations differ by what any may: part of what is allowed, and known at once."""
    if not is_rounded(other):
        return bool(np.array_equal(mine, other))
    a, b = np.asarray(mine).astype(wide(other.dtype)), np.asarray(other).astype(wide(other.dtype))
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= tolerance.LIKELY * unit(other.dtype) * np.abs(b)
    return bool((near | (a == b) | (np.isnan(a) & np.isnan(b))).all())
