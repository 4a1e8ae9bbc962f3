#!/bin/sh
# SPDX-License-Identifier: MIT
#
# leaves_nothing.sh COMMAND... - run it with a temporary directory of its own,
# which has to be empty afterwards.
set -eu
mine=$(mktemp -d "${TMPDIR:-/tmp}/hf-XXXXXX")
trap 'rm -rf "$mine"' EXIT
chmod 0755 "$mine" # tests go on as other users
TMPDIR=$mine "$@"
left=$(ls -A "$mine")
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
