"""Making checkpoints from checkpoints. Every operation reads and writes a piece at a time, and leaves nothing behind
when it fails."""
