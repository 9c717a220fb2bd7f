"""Variables to constants, and back."""
