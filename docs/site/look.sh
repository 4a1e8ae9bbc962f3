#!/bin/sh
# SPDX-License-Identifier: MIT
#
# look.sh HTML - look at the site in a browser: the pages are drawn, nothing is
# fetched from elsewhere, and the search finds words of both languages.
set -eu

html=$(cd "$1" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# sees PAGE TEXT: the browser shows it.
sees() {
    chromium --headless --no-sandbox --disable-gpu --user-data-dir="$dir" \
        --virtual-time-budget=3000 --dump-dom "file://$html/$1" \
        2>/dev/null >"$dir/dom"
    grep -q "$2" "$dir/dom" || {
        echo "$1 does not show \"$2\"" >&2
        exit 1
    }
    ! grep -oE '(src|href)="https?://[^"]*\.(js|css|woff2?|png|svg)' "$dir/dom" || {
        echo "$1 is drawn with files from elsewhere" >&2
        exit 1
    }
}

sees index.html 'hf_acquire'
sees docs/guide/how-it-works.html 'lease.svg'
sees docs/zh-CN/choosing.html '如何选择引擎'
sees docs/man/holdfast.7.html 'PROMISES'
# The index has Chinese in words, with a mark of no width between them.
python3 - "$html/search/search_index.json" JEOPARDY 看门狗 <<'END'
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    text = "".join(page["text"] for page in json.load(file)["docs"])
for word in sys.argv[2:]:
    if word not in text.replace("\u200b", ""):
        sys.exit("the search does not know " + word)
END
