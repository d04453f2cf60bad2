"""Command lines: the study, HPatches, the search for learning rates, stamps, fetching."""

import os
import signal
import sys

# With `python -m`, until the command's own module is found. Modules that are interrupted while they are
# imported raise errors of all kinds.
if sys.argv[0] == "-m" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, lambda *_: (os.write(2, b"\nStopped.\n"), os._exit(130)))
