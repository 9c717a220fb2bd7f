"""What `run --sandbox` starts: confines itself, then is `graphmill` with the arguments that follow."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    # Not the folder of this file, whose modules have the names of others; not the working directory, whose files may
    # be the model's.
    sys.path.pop(0)

    from toolkit.policy import sandbox

    enforced = sandbox.confine(sandbox.parse(sys.argv[1]))

    from commands import main, messages

    messages.confined = enforced
    sys.argv[1:] = sys.argv[2:]
    try:
        sandbox.heed_signals()
        main.main()
    except KeyboardInterrupt:  # right after the start
        print("graphmill: error: interrupted", file=sys.stderr)
        sys.exit(130)
