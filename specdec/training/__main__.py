"""`python -m specdec.training`."""

import sys

from specdec.training.cli import main

sys.exit(main())
