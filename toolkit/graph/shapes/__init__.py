"""Shape functions: what is known about output shapes before anything runs; one file per op family."""
