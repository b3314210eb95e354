#!/usr/bin/env bash
# Sets up the environment, then solves the task in a USD file: which velocity makes a ball hit a target after a bounce?
# Writes out/bounce_shot/: the solved USD file, the motion before, a record, a plot, a GIF, and a page for a browser.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools/setup_env.sh
echo 'The first run compiles kernels, which takes a minute or two; later runs start at once.'
.venv/bin/warpsim demo -o out/bounce_shot
echo 'Open out/bounce_shot/result.html in a browser, or out/bounce_shot/result.usda in a USD viewer.'
