"""``python -m gitprovider`` is the command ``gitprovider``."""

from __future__ import annotations

import sys

from gitprovider.cli import main

if __name__ == "__main__":
    sys.exit(main())
