"""The questions that are asked of a new machine find answers on the fake driver, each by itself."""

from __future__ import annotations

import pytest

from tests.gpu import questions
from toolkit.kernels.cuda.device import device


@pytest.mark.parametrize("name", questions.QUESTIONS)
def test_a_question_is_answered(name: str) -> None:
    assert questions.QUESTIONS[name].answer(device(0))


def test_a_question_without_an_answer_does_not_end_the_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> str:
        raise ValueError("no\nidea")

    monkeypatch.setitem(questions.QUESTIONS, "mask", questions.Question("why?", fail))
    assert questions.main(["mask", "bias stride"]) == 1
    first, second, last = capsys.readouterr().out.splitlines()
    assert first.startswith("FAILED mask: why? no answer: ValueError: no | idea [")
    assert second.startswith("ok     bias stride: ") and last == "1 questions without an answer"
