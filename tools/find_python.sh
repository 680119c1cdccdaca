#!/bin/sh
# Prints the newest Python that the pins are for, or says in one line what is missing. PYTHON names one instead; called by setup.sh.
set -eu
stop() { echo "export lab: $1" >&2; exit 1; }
fits() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1; }
has_venv() { "$1" -c 'import venv, ensurepip' >/dev/null 2>&1; }
NAME_ONE="name one by make PYTHON=/path/to/python3.13"

if [ -n "${PYTHON:-}" ]; then
    command -v "$PYTHON" >/dev/null 2>&1 || stop "no $PYTHON here: install Python 3.11, 3.12 or 3.13, or $NAME_ONE"
    version=$("$PYTHON" -V 2>/dev/null) || stop "$PYTHON does not run: $("$PYTHON" -V 2>&1 | head -n1); $NAME_ONE"
    fits "$PYTHON" || stop "$PYTHON is $version: the pins are for Python 3.11, 3.12 and 3.13, $NAME_ONE"
    has_venv "$PYTHON" || stop "$PYTHON has no venv module: install it (on Debian: apt install python3-venv)"
    echo "$PYTHON"
    exit
fi

# A name on the path may be a shim that finds nothing behind it, so each candidate is run. pyenv keeps what no shim leads to.
for version in 3.13 3.12 3.11 3; do
    for python in "python$version" "${PYENV_ROOT:-${HOME:-}/.pyenv}"/versions/"$version".*/bin/"python$version"; do
        fits "$python" || continue
        has_venv "$python" && { echo "$python"; exit; }
        lacking="${lacking:-$python}"
    done
done
[ -z "${lacking:-}" ] || stop "$lacking has no venv module: install it (on Debian: apt install python3-venv)"
stop "no Python 3.13, 3.12 or 3.11 that runs here: install one, or $NAME_ONE"
