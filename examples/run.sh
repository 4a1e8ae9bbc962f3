#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh PROGRAM - run an example with a lock directory of its own.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
HOLDFAST_URL="local://$dir/locks" "$1"
