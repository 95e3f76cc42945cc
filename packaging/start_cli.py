"""Where the frozen command line starts."""

import sys

from engine.cli.main import main

sys.exit(main())
