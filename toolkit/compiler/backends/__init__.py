"""One package a target."""
