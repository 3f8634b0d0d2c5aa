#!/usr/bin/env bash
# Makes .venv with Python 3.11 or 3.10 and installs the pinned requirements; called by make.
set -euo pipefail

works() { "$1" -c "import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != ($2))" >/dev/null 2>&1; }

find_python() {
  local minor candidate
  for minor in 11 10; do
    # A pyenv shim may be on the PATH without its Python, so each candidate is run.
    for candidate in "$(command -v "python3.$minor" || true)" \
      "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$minor".*/bin/python; do
      if [ -n "$candidate" ] && [ -x "$candidate" ] && works "$candidate" "3, $minor"; then
        echo "$candidate"
        return
      fi
    done
  done
}

python="$(find_python)"
# A .venv that is out of date, or that an interrupted run left half made, is made anew.
if [ -n "$python" ]; then
  rm -rf .venv
  echo "making .venv with $("$python" --version) ($python)"
  "$python" -m venv .venv
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
    -r requirements-dev.txt
elif command -v uv >/dev/null; then
  rm -rf .venv
  echo "making .venv with uv and Python 3.11"
  uv venv --quiet --python 3.11 .venv
  uv pip install --quiet --python .venv/bin/python -r requirements-dev.txt
else
  echo "error: no usable Python: PATH, ${PYENV_ROOT:-~/.pyenv}: install Python 3.11 or 3.10 (or uv);" \
    "tensorflow-addons has no wheels for newer ones" >&2
  exit 2
fi
# Importing compiles what is used, a small part of what is installed. Without it, each process of
# an environment that forbids writing bytecode would compile TensorFlow anew.
PYTHONDONTWRITEBYTECODE='' TF_CPP_MIN_LOG_LEVEL=3 .venv/bin/python -W ignore -c \
  "import tensorflow, tensorflow_text, tensorflow_addons, scipy.stats, sentencepiece, sentencex"
touch .venv/.installed
