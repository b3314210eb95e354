#!/usr/bin/env bash
# Sets up the environment, then has a seven-joint arm from a USD file learn to reach a point by gradients through physics,
# and draws the motion. Writes out/reach.usda (opens in any USD viewer) and out/reach.gif.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools/setup_env.sh
mkdir -p out
bin=.venv/bin
echo 'The first run compiles kernels, which takes a minute or two; later runs start at once.'
"$bin/python" examples/quickstart.py --output out/reach.usda
"$bin/warpsim" render out/reach.usda -o out/reach.gif
echo 'Look at out/reach.gif, or open out/reach.usda in a USD viewer.'
