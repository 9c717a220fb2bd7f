"""The parser of the text form: what is read is what was written, and a wrong text gets one line that says where."""

from __future__ import annotations

import numpy as np
import pytest

from toolkit.compiler.backends.cpu.elementwise.operations import Ufunc
from toolkit.compiler.ir.equality import differences
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.text.arrays import SideTable, read_array, write_array, write_number
from toolkit.compiler.ir.text.parser import parse_block
from toolkit.compiler.ir.text.printer import print_block
from toolkit.compiler.ir.text.round_trip import require_round_trip
from toolkit.compiler.ir.text.tokens import TextError, Words
from toolkit.compiler.pipeline import cpu  # noqa: F401 # pyright: ignore[reportUnusedImport] -- it declares the operations
from toolkit.errors import InternalError

PROGRAM = """\
program(%0: float32[8,64], %1: bool[]) keeps_nan {
  %2: float32[8,32] = matmul(left = %0, post_ops = [Apply(function = UnaryFunction.RELU)]) {weights = float32[64,32] seed 1} if not %1 from 'a', 'b'
  %3: float32[8,32] = select(predicate = %1, taken = #1 const(float32[8,32] all 0.5), other = %2) from 'c'
  %4: float32[8,32] = AddV2(%3, #1) {T = float32} from 'd' target
  return %4
}
nodes {
  'a' = MatMul {T = float32}
  'b' = Relu {T = float32}
  'c' = Merge {N = 2, T = float32}
}
"""  # noqa: E501 -- an operation is a line


def test_what_is_read_is_written() -> None:
    beside = SideTable()
    block = parse_block(PROGRAM, beside)
    assert print_block(block, beside) == PROGRAM
    assert not list(differences(block, parse_block(PROGRAM)))
    product, chosen, added = block.operations
    assert [step.node.name for step in product.steps] == ["a", "b"]
    assert product.predicates == [(block.arguments[1], False)]
    assert chosen.inputs[1] is added.inputs[1]  # one constant, not two equal ones
    assert added.step.is_target


@pytest.mark.parametrize(
    ("given", "other", "where"),
    [
        ("keeps_nan ", "", "the program: one keeps NaN"),
        ("all 0.5", "all 0.25", "operation 1"),
        ("seed 1", "seed 2", "weights of operation 0"),
        ("UnaryFunction.RELU", "UnaryFunction.RELU, alpha = 0.5", "alpha of post_ops of operation 0"),
        ("if not %1", "if %1", "conditions of operation 0"),
        ("'d' target", "'d'", "steps of operation 2"),
        ("AddV2(%3, #1)", "AddV2(#1, %3)", "operation 2"),
        ("return %4", "return %3", "the results"),
    ],
)  # fmt: skip
def test_differences(given: str, other: str, where: str) -> None:
    assert given in PROGRAM
    found = list(differences(parse_block(PROGRAM), parse_block(PROGRAM.replace(given, other))))
    assert any(where in each for each in found), found


@pytest.mark.parametrize(
    ("given", "wrong", "message"),
    [
        ("program(", "programme(", "text:1:1: expected 'program', found 'programme'"),
        ("left = %0", "left = %9", "text:2:37: %9 is taken before it is made"),
        ("left = %0", "left = 5", "text:2:37: 'left' of 'matmul' is of type Value, not int"),
        ("left = %0", "input = %0", "'matmul' has no 'input' here; there is left, right, post_ops"),
        ("%3: float32[8,32]", "%2: float32[8,32]", "text:3:3: %2 is made twice"),
        ("%3: float32[8,32]", "%3: floats[8,32]", "'floats' is not the type of a value"),
        ("matmul(", "matmal(", "text:2:23: there is no operation 'matmal'; did you mean 'matmul'"),
        ("AddV2(", "AddV9(", "text:4:56: "),
        ("seed 1", "sha256:0123456789abcdef", "are not beside the text; write 'all' or 'seed' there"),
        ("seed 1", "[[1.0]]", "1 elements, where [64, 32] has 2048"),
        ("UnaryFunction.RELU", "UnaryFunction.RELUX", "UnaryFunction has no RELUX; there are RELU, TANH"),
        ("function = UnaryFunction.RELU", "gamma = 1.0", "Apply has no 'gamma'; there are function, alpha, beta"),
        ("Apply(", "Applied(", "no field of an operation holds a 'Applied'"),
        ("function = UnaryFunction.RELU", "", "Apply: Apply.__init__() missing 1 required positional argument"),
        (", other = %2)", ")", "Select needs other"),
        ("weights = float32[64,32] seed 1", "weights = @Function", "@Function is no data and does not stand beside"),
        ("other = %2) from 'c'", "other = %2) from 'e'", "what node 'e' is stands nowhere"),
        (" from 'd' target", "", "expected 'from' and the name of the node"),
        ("  'a' = MatMul {T = float32}\n", "  'a' = MatMull {T = float32}\n", "text:8:3: "),
        ("(%3, #1)", "(%3, #2)", "text:4:33: #2 is nothing yet"),
        ("return %4", "return %4 ;", "text:5:13: expected a word of the text form, found ';'"),
        ("}\nnodes", "\nnodes", "expected"),
        ("program(", "program() {\n  return\n}\nprogram(", "text:4:1: expected the end, found 'program'"),
    ],
)  # fmt: skip
def test_wrong_texts(given: str, wrong: str, message: str) -> None:
    assert given in PROGRAM
    with pytest.raises(TextError) as found:
        parse_block(PROGRAM.replace(given, wrong))
    assert message in str(found.value)
    assert str(found.value).startswith("text:")
    assert "\n" not in str(found.value)


_NUMBERS = [
    np.arange(6, dtype=np.int64).reshape(2, 3),
    np.array([0.1, -0.0, np.inf, -np.inf, np.nan, 1e-45], np.float32),
    np.array(3.5),
    np.zeros((0, 3), np.float64),
    np.full((64, 64), -2, np.int8),
    np.linspace(0, 1, 40, dtype=np.float32),
    np.array([True, False]),
    np.array([1 + 2j, -0.5j], np.complex64),
    np.array([b"a'\xff", b""], object),
    np.array([[0x7FC00001]], np.uint32).view(np.float32),  # a NaN with bits of its own
]


@pytest.mark.parametrize("array", _NUMBERS, ids=lambda array: f"{array.dtype}{list(array.shape)}")
def test_arrays(array: np.ndarray) -> None:
    beside = SideTable()
    again = read_array(Words(write_array(array, beside), "text"), beside)
    assert again.dtype == array.dtype
    assert again.shape == array.shape
    assert again.tolist() == array.tolist() if array.dtype.hasobject else again.tobytes() == array.tobytes()


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "int4", "float16", "uint64", "float64"])
def test_numbers(name: str) -> None:
    """Every number of a type that is small enough, else its ends and some between."""
    beside = SideTable()
    dtype = read_array(Words(name, "text"), beside)
    raw = np.arange(256, dtype=np.uint8) if dtype.itemsize == 1 else np.arange(0, 1 << 16, 97, dtype=np.uint16)
    values = np.arange(-8, 8).astype(dtype) if name == "int4" else np.resize(raw.view(np.uint8), 4096).view(dtype)
    for number in values[:512]:
        again = read_array(Words(write_number(number, beside), "text"), beside)
        assert (type(again), again.tobytes()) == (type(number), number.tobytes())


def test_numbers_of_numpy_in_fields() -> None:
    """A float64 of NumPy's is a float of Python's as well, and stays what it is."""
    block = parse_block(PROGRAM)
    assert block.first is not None
    made = block.first.become(
        Ufunc, function="maximum", arguments=(block.first.inputs[0],), constants=(np.float64(0), 1.5, np.int32(2))
    )
    again = parse_block(print_block(block)).first
    assert isinstance(again, Ufunc)
    assert [type(each) for each in again.constants] == [type(each) for each in made.constants]


def test_a_class_needs_no_entry() -> None:
    """What an operation declares is enough for its text form."""

    class Doubled(Operation, mnemonic="doubled_for_this_test"):
        times: int = 2

    text = "program() {\n  doubled_for_this_test() {times = 3}\n  return\n}\n"
    block = parse_block(text)
    assert isinstance(block.first, Doubled)
    assert block.first.times == 3
    assert print_block(block) == text


def test_what_cannot_be_read_again_is_a_bug() -> None:
    block = parse_block(PROGRAM)
    block.arguments.pop()  # the predicate is defined nowhere
    with pytest.raises(InternalError, match="cannot be read"):
        require_round_trip(block)
