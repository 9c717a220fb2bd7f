"""Functions that make operations: arrays, mathematics, networks, pictures, texts, control flow."""
