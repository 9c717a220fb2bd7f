"""Executors of programs: straight ahead, by tokens, planned, in segments, on devices with a memory of their own."""
