#!/usr/bin/env bash
# Makes .venv in the project root with the pinned versions and the package in editable mode.
# Fast when nothing changed: a stamp says what the environment was made from.
# PYTHON=/path/to/python chooses the interpreter; otherwise the first Python >= 3.11 on PATH is used.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
pins="$root/requirements/pinned.txt"
venv="$root/.venv"
stamp="$venv/.warpsim-stamp"

# Prints the base interpreter behind a command, so that an activated .venv is never asked to replace itself.
base_python() {
  "$1" -c '
import ensurepip, sys, venv
if sys.version_info < (3, 11):
    sys.exit(1)
print(f"{sys.base_prefix}/bin/python{sys.version_info.major}.{sys.version_info.minor}")' 2>/dev/null
}

find_python() {
  local candidate candidates=(python3.11 python3.12 python3.13 python3)
  [[ -n ${PYTHON:-} ]] && candidates=("$PYTHON")
  for candidate in "${candidates[@]}"; do
    base_python "$candidate" && return
  done
  echo "setup_env: no Python >= 3.11 with the venv module: tried ${candidates[*]}; set PYTHON=/path/to/python" >&2
  return 1
}

# What .venv is made from, in two lines: interpreter and place (another one needs a new .venv), and the files that say
# what to install.
fingerprint() {
  "$1" - "$root" "$pins" "$root/pyproject.toml" "${BASH_SOURCE[0]}" <<'PY'
import hashlib, pathlib, sys

print(hashlib.sha256(f"{sys.version}\n{sys.base_prefix}\n{sys.argv[1]}".encode()).hexdigest())
print(hashlib.sha256(b"".join(pathlib.Path(name).read_bytes() for name in sys.argv[2:])).hexdigest())
PY
}

python=$(find_python)
wanted=$(fingerprint "$python")
made=$(cat "$stamp" 2>/dev/null || true)
"$venv/bin/python" -c '' 2>/dev/null || made=""
[[ $made == "$wanted" ]] && exit 0

if [[ ${made%%$'\n'*} != "${wanted%%$'\n'*}" ]]; then
  echo "setup_env: making $venv with $python" >&2
  "$python" -m venv --clear "$venv"
fi
echo "setup_env: installing the pinned versions" >&2
rm -f "$stamp"
pip=("$venv/bin/python" -m pip --disable-pip-version-check install --quiet)
"${pip[@]}" "$(grep '^torch==' "$pins")"
"${pip[@]}" -r "$pins"
# The pinned setuptools builds the package, so nothing unpinned is fetched.
"${pip[@]}" --no-deps --no-build-isolation -e "$root"
echo "$wanted" >"$stamp"
