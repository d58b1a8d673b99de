"""`python -m tarviz`: the same as the console script `tarviz`."""

import sys

from tarviz.cli import main

sys.exit(main())
