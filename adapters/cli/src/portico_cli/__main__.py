"""Run the command line as ``python -m portico_cli``."""

import sys

from portico_cli.main import main

if __name__ == "__main__":
    sys.exit(main())
