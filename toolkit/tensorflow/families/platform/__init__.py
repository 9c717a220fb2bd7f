"""What a program asks of its surroundings: flags, logging, files, devices, texts of both Pythons."""
