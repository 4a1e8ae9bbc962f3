# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# mysql.sh - a recipe in the database MYSQL. Sourced.

. "$(dirname "$0")/lib.sh"
: "${MYSQL:=${HOLDFAST_TEST_URL:-mysql://root:@127.0.0.1:3306/test}}"
export HOLDFAST_URL="$MYSQL"

rest=${MYSQL#mysql://}
user=${rest%%:*}
rest=${rest#*:}
password=${rest%%@*}
rest=${rest#*@}
address=${rest%%/*}
database=${rest#*/}

# client [OPTION…]: the server's own client.
client() {
    MYSQL_PWD=$password mariadb --no-defaults -N -B -u "$user" \
        -h "${address%:*}" -P "${address#*:}" "$@" "${database%%\?*}"
}

sql() {
    client -e "$1"
}
