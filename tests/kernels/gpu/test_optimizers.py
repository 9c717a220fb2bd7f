"""Optimizers on GPUs: the bits of the CPU's rules, in place where nobody else holds a variable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import tolerance
from toolkit.graph import opdefs
from toolkit.kernels.cpu.state.optimizers_dense import OPTIMIZERS
from toolkit.kernels.cuda.device import device
from toolkit.kernels.gpu.state.optimizers import OF_COMPLEX
from toolkit.kernels.gpu.state.updates import run_dense, run_rows, run_together, settled

#: rules whose powers and exponentials are not NumPy's to the bit; of each the slots that are
APPROXIMATE = {"Ftrl", "FtrlV2", "PowerSign"}
RULES = (
    "AdaMax", "Adadelta", "Adagrad", "AdagradV2", "Adam", "AdamWithAmsgrad", "AddSign", "CenteredRMSProp", "Ftrl",
    "FtrlV2", "GradientDescent", "KerasMomentum", "Momentum", "PowerSign", "ProximalAdagrad", "RMSProp",
)  # fmt: skip


class _Case:
    """A rule with variables, a gradient and numbers."""

    def __init__(self, name: str, dtype: str, shape: tuple[int, ...], flag: bool, seed: int):
        optimizer = OPTIMIZERS[name]
        self.name, self.rule, self.slots = name, optimizer.rule, optimizer.slots
        self.flags = dict.fromkeys(optimizer.attributes, flag)
        self.place = optimizer.gradient - optimizer.slots
        count = len(opdefs.get(f"ResourceApply{name}").inputs) - optimizer.slots - 1
        random = np.random.default_rng(seed)
        turned = np.exp(1j * random.uniform(-1, 1, shape)) if dtype.startswith("complex") else 1.0
        self.cells = [np.asarray(np.abs(random.normal(size=shape)) * turned, dtype) for _ in range(optimizer.slots)]
        self.gradient = np.asarray(random.normal(size=shape) * turned, dtype)
        self.numbers = [np.asarray(random.uniform(0.1, 0.9), dtype) for _ in range(count)]
        if name.startswith("Ftrl"):  # the power of the learning rate is not positive, and -0.5 as a rule
            self.numbers[-1] = np.asarray(-0.5 if seed % 2 else -0.7, dtype)
        if name == "ProximalAdagrad" and seed % 2:
            self.numbers[1] = np.asarray(0, dtype)  # l1, at which the rule looks

    def expected(self, rows: Any = None) -> list[Any]:
        """What NumPy makes of the variables."""
        cells = [cell.copy() for cell in self.cells]
        before, after = self.numbers[: self.place], self.numbers[self.place :]
        with np.errstate(all="ignore"):
            if rows is None:
                self.rule(*cells, *before, self.gradient, *after, **self.flags)
            else:
                for at, row in enumerate(rows.tolist()):
                    self.rule(*(cell[row] for cell in cells), *before, self.gradient[at], *after, **self.flags)
        return cells


def _compare(case: _Case, mine: list[Any], expected: list[Any]) -> None:
    for got, right in zip(mine, expected, strict=True):
        if right.dtype.kind == "c":
            # a few products, quotients and roots of numbers of about 1, whose parts are off by units of their sizes
            sizes = np.maximum(1, np.abs(right).astype(np.float64))
            tolerance.assert_within(got, right, 64 * tolerance.unit(right.real.dtype) * sizes, case.name)
        elif case.name in APPROXIMATE:
            # a power is exp(y log x) in double, rounded once; its difference from NumPy's, a few units in the last
            # place, is multiplied by what is subtracted from it
            near = 64 * float(np.finfo(right.dtype).eps) * (1 + np.abs(right.astype(np.float64)))
            tolerance.assert_within(got, right, near, case.name)
        else:
            np.testing.assert_array_equal(got, right)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", RULES)
def test_a_whole_variable(name: str, dtype: str) -> None:
    gpu = device(0)
    for seed, shape in enumerate([(), (1,), (3, 5), (257,), (4, 1031)]):
        case = _Case(name, dtype, shape, flag=bool(seed % 2), seed=seed)
        arrays = [gpu.to_device(cell) for cell in case.cells]
        addresses = [array.address for array in arrays]
        numbers = [gpu.to_device(number) for number in case.numbers]
        rule = settled(case.rule, case.flags)
        run_dense(gpu, name, rule, arrays, gpu.to_device(case.gradient), numbers, case.place)
        assert [array.address for array in arrays] == addresses
        _compare(case, [gpu.to_host(array) for array in arrays], case.expected())


@pytest.mark.parametrize("name", ["Adadelta", "Adagrad", "AdagradV2", "KerasMomentum", "ProximalAdagrad", "Ftrl"])
@pytest.mark.parametrize("ids", ["int32", "int64"])
def test_rows_one_after_the_other(name: str, ids: str) -> None:
    gpu = device(0)
    for seed, width in enumerate([1, 5, 33]):
        case = _Case(name, "float32", (7, width), flag=bool(seed % 2), seed=seed)
        random = np.random.default_rng(seed)
        case.gradient = random.normal(size=(20, width)).astype(np.float32)
        rows = random.integers(0, 7, 20).astype(ids)
        arrays = [gpu.to_device(cell) for cell in case.cells]
        numbers = [gpu.to_device(number) for number in case.numbers]
        run_rows(
            gpu, name, settled(case.rule, case.flags), arrays, gpu.to_device(case.gradient), gpu.to_device(rows), width,
            numbers, case.place,
        )  # fmt: skip
        _compare(case, [gpu.to_host(array) for array in arrays], case.expected(rows))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", sorted(OF_COMPLEX))
def test_complex_variables(name: str, dtype: str) -> None:
    gpu = device(0)
    for seed, shape in enumerate([(), (1,), (3, 5), (257,)]):
        case = _Case(name, dtype, shape, flag=bool(seed % 2), seed=seed)
        arrays = [gpu.to_device(cell) for cell in case.cells]
        numbers = [gpu.to_device(number) for number in case.numbers]
        rule = settled(case.rule, case.flags)
        run_dense(gpu, name, rule, arrays, gpu.to_device(case.gradient), numbers, case.place)
        _compare(case, [gpu.to_host(array) for array in arrays], case.expected())
        twice = [([gpu.to_device(cell) for cell in case.cells], gpu.to_device(case.gradient)) for _ in range(2)]
        run_together(gpu, name, rule, twice, numbers, case.place)
        for cells, _ in twice:
            _compare(case, [gpu.to_host(cell) for cell in cells], case.expected())
    case = _Case(name, dtype, (7, 5), flag=False, seed=1)
    case.gradient = np.resize(case.gradient, (9, 5))
    rows = np.array([1, 1, 6, 0, 1, 3, 6, 2, 0])
    arrays = [gpu.to_device(cell) for cell in case.cells]
    numbers = [gpu.to_device(number) for number in case.numbers]
    rule = settled(case.rule, case.flags)
    run_rows(gpu, name, rule, arrays, gpu.to_device(case.gradient), gpu.to_device(rows), 5, numbers, case.place)
    _compare(case, [gpu.to_host(array) for array in arrays], case.expected(rows))


def test_a_gradient_in_the_middle_of_other_memory_is_copied_first() -> None:
    gpu = device(0)
    whole = gpu.to_device(np.arange(20, dtype=np.float32))
    part = whole.viewed(np.float32, (16,), offset=4)
    var = gpu.zeros((16,), np.float32)
    optimizer = OPTIMIZERS["GradientDescent"]
    rate = gpu.to_device(np.float32(1))
    run_dense(gpu, "GradientDescent", settled(optimizer.rule, {}), [var], part, [rate], optimizer.gradient - 1)
    np.testing.assert_array_equal(gpu.to_host(var), -np.arange(1, 17, dtype=np.float32))
