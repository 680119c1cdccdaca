"""Which files pass, as the plugin tells it, with workers and without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import passing
import pytest

FILES = {
    "test_good.py": "import pytest\n\n@pytest.mark.parametrize('i', range(4))\ndef test(i): pass",
    "test_bad.py": "def test_first(): pass\n\ndef test_second(): assert False\n\ndef test_third(): pass",
    "test_broken.py": "import no_such_module",
    "test_skipped.py": "import pytest\n\ndef test(): pytest.skip('not here')",
    "test_torn_down.py": "import pytest\n\n@pytest.fixture\ndef f():\n    yield\n    raise ValueError\n\ndef test(f): pass",
}
PROGRAM = """
import sys, pytest
from passing import Passing
sys.exit(pytest.main([*sys.argv[1:], "-q", "-p", "no:cacheprovider"], plugins=[Passing(lambda file: print("passed:", file))]))
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_those_files_pass_of_which_every_test_does(tmp_path: Path, workers: str) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    environment = os.environ | {"PYTHONPATH": str(Path(passing.__file__).parent)}
    command = [sys.executable, "-c", PROGRAM, "-n", workers, "--continue-on-collection-errors", *FILES]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    passed = {line.partition("passed: ")[2] for line in done.stdout.splitlines() if "passed: " in line}
    assert passed == {"test_good.py", "test_skipped.py"}, done.stdout
