#!/bin/sh
# Makes .venv with everything pinned, or says in one line what is missing. Called by the Makefile.
# An environment that works is kept, also where a newer Python has come; PYTHON names the one to make it with, VENV another folder.
set -eu
stop() { echo "export lab: $1" >&2; exit 1; }
version() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }
VENV="${VENV:-.venv}"

there=$(PYTHON="$VENV/bin/python" sh tools/find_python.sh 2>/dev/null) || there=
if [ -z "$there" ] || [ -n "${PYTHON:-}" ]; then python=$(sh tools/find_python.sh) || exit 1; fi
if [ -n "$there" ] && [ -n "${PYTHON:-}" ] && [ "$(version "$there")" != "$(version "$python")" ]; then
    stop "$VENV is of Python $(version "$there"), and $PYTHON is $(version "$python"): remove it first (rm -r $VENV)"
fi
command -v c++ >/dev/null 2>&1 || stop "no C++ compiler: install g++ or clang (on Debian: apt install g++)"

echo "Installing into $VENV, Python $(version "${there:-$python}") (2.5 GB, or 6 where torch comes with CUDA; minutes the first time)…"
rm -f "$VENV/.ready"
[ -n "$there" ] || "$python" -m venv --clear "$VENV" || stop "could not make $VENV: is there space on the disk? (df -h .)"
mkdir -p build
for what in "-r requirements.txt" "--no-deps -e ."; do
    # shellcheck disable=SC2086
    "$VENV/bin/pip" install --disable-pip-version-check $what >build/install.log 2>&1 \
        || stop "installing failed: $(grep -m1 ERROR build/install.log || tail -n1 build/install.log) (the whole log is build/install.log)"
done
touch "$VENV/.ready"
