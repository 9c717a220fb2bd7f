"""The life of a step: compiled, run in its parts, timed, cancelled; where its parts meet and what it may ask for."""
