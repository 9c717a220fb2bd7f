"""Loops and branches that the device decides: conditional nodes of a recorded step."""
