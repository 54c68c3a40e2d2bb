"""Run the command line as ``python -m portico_cli``."""

import sys

from portico_cli.main import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
