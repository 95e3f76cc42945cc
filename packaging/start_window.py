"""Where the frozen window starts."""

import sys

from app.__main__ import main

sys.exit(main())
