#!/bin/sh
# Fetches the C++ headers of ONNX Runtime, which its Python package leaves out, into build/onnxruntime. They are Debian's, of version 1.21:
# a library of any later version works with them, since a program asks it for the functions of the version that it was compiled for.
# The lists and the package are kept apart from those of this machine, and nothing is installed.
set -eu
cd "$(dirname "$0")/.."
HEADERS=build/onnxruntime
[ ! -e "$HEADERS/onnxruntime_lite_custom_op.h" ] || exit 0
command -v apt-get >/dev/null || {
  echo "They are fetched by apt-get, which is not here: put the folder include of a release of ONNX Runtime there, as $HEADERS." >&2
  exit 1
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/lists/partial" "$scratch/cache/archives/partial"
cat >"$scratch/trixie.sources" <<SOURCES
Types: deb
URIs: $(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
Suites: trixie
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
SOURCES
apart() {
  apt-get -qq -o Dir::Etc::sourcelist="$scratch/trixie.sources" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$scratch/lists" \
    -o Dir::Cache="$scratch/cache" -o APT::Sandbox::User=root "$@"
}
apart update
(cd "$scratch" && apart download "libonnxruntime-dev=1.21.*")
dpkg-deb -x "$scratch"/libonnxruntime-dev_*.deb "$scratch/unpacked"
mkdir -p build
rm -rf "$HEADERS"
mv "$scratch/unpacked/usr/include/onnxruntime" "$HEADERS"
