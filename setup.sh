#!/bin/sh
# Makes .venv with everything pinned, or says in one line what is missing. Called by the Makefile.
set -eu
stop() { echo "export lab: $1" >&2; exit 1; }

command -v "$PYTHON" >/dev/null 2>&1 || stop "no $PYTHON here: install Python 3.11, or name one by make PYTHON=/path/to/python3.11"
"$PYTHON" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' \
    || stop "$PYTHON is $("$PYTHON" -V 2>&1): the pins are for Python 3.11, name one by make PYTHON=/path/to/python3.11"
"$PYTHON" -c 'import venv, ensurepip' 2>/dev/null || stop "$PYTHON has no venv module: install python3.11-venv"
command -v c++ >/dev/null 2>&1 || stop "no C++ compiler: install g++ or clang (on Debian: apt install g++)"

echo "Installing into .venv (about 2.5 GB; minutes the first time)…"
rm -f .venv/.ready
[ -x .venv/bin/python ] || "$PYTHON" -m venv .venv || stop "could not make .venv: is there space on the disk? (df -h .)"
mkdir -p build
for what in "-r requirements.txt" "--no-deps -e ."; do
    # shellcheck disable=SC2086
    .venv/bin/pip install --disable-pip-version-check $what >build/install.log 2>&1 \
        || stop "installing failed: $(grep -m1 ERROR build/install.log || tail -n1 build/install.log) (the whole log is build/install.log)"
done
touch .venv/.ready
