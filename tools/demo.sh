#!/usr/bin/env bash
# Sets up the environment, then simulates a cart-pole and writes its motion as USD. Extra arguments go to `warpsim simulate`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools/setup_env.sh
mkdir -p out
exec .venv/bin/warpsim simulate scenes/cartpole.usda -o out/cartpole_motion.usda "$@"
