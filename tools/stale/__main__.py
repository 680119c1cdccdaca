"""Prints what some files read.

usage: python tools/stale PATH ...
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from stale import ROOT, reads

for name in sys.argv[1:]:
    print(f"{name} reads")
    for path in sorted(reads(Path(name))):
        print(f"    {path.relative_to(ROOT)}")
