#!/usr/bin/env bash
# Sets up the environment, then lints, checks formatting and types, and runs the quick tests. Stops at the first failure
# and exits with its code. Arguments go to pytest: `tools/test.sh -m long` runs the long tier instead. Two processes share
# the test files; `-n 0` runs all in one, e.g. for a debugger.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools/setup_env.sh
bin=.venv/bin
"$bin/ruff" check .
"$bin/ruff" format --check .
"$bin/mypy" warpsim
echo 'The full samples are not part of this tier; run them with: tools/test.sh -m long'
exec "$bin/python" -m pytest --numprocesses 2 --dist loadfile "$@"
