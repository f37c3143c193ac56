"""`python -m cantle`."""

import sys

from cantle.cli import main

if __name__ == "__main__":
    sys.exit(main())
