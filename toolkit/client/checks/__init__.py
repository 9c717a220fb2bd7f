"""Operations that fail in the step when something does not hold, judged at once where it is known."""
