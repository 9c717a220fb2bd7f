"""The text form of programs, for people and for comparing one stage of the pipeline with the next."""
