"""`python -m warpsim`."""

import sys

from warpsim.cli import main

sys.exit(main())
