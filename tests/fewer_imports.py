"""A pytest plugin that spares each process a second: `run_all.sh test` loads it before all others."""

import sys

# Importing nbformat compiles a grammar of international addresses, and no notebook has one to check.
sys.modules["rfc3987_syntax"] = None
