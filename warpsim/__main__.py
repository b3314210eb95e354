"""`python -m warpsim`."""

import sys

from warpsim.cli.main import main

sys.exit(main())
