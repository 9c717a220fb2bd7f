"""What the iterations of a loop have in common becomes one operation in front of the loop or behind it."""
