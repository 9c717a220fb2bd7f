"""What code is made for: the processor, how fast it is, and from which sizes on which way to compute something pays."""
