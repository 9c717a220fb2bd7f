"""Timelines: what ran where and when, from the trace of a run."""
