#!/bin/sh
# SPDX-License-Identifier: MIT
# commits.sh ROOT - subjects are "area: what it does", at most 72 columns.
#
# Looks at what came after the commit that brought the rule. Without a history
# (an archive, a shallow clone) there is nothing to look at.
set -eu
cd "$1"

since=a00aa19
git rev-parse -q --verify "$since^{commit}" >/dev/null 2>&1 || exit 0
git log --no-merges --format=%s "$since..HEAD" |
    awk 'length > 72 || !/^[a-z0-9_, \/.-]+: / { print; bad = 1 }
         END { exit bad }'
