#!/usr/bin/env bash
# scripts/postgres.sh COMMAND...: runs a command with a temporary PostgreSQL server, whose address
# is in CONCLAVE_TEST_POSTGRES, such as: scripts/postgres.sh cargo nextest run The server uses a
# temporary folder and listens on a free port of loopback only. It is removed when the command ends,
# also after a failure. Durability is off, because the data is not kept.
set -euo pipefail

fail() {
    printf 'postgres: %s\n' "$*" >&2
    exit 1
}

[ "$#" -gt 0 ] || fail "usage: scripts/postgres.sh COMMAND [ARGUMENT...]"

# Prints the folder of the newest installed server. Debian keeps its programs out of the PATH.
programs() {
    local folder
    for folder in $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -rV) "$(dirname "$(command -v initdb || echo /none)")"; do
        if [ -x "$folder/initdb" ] && [ -x "$folder/postgres" ]; then
            echo "$folder"
            return
        fi
    done
    return 1
}

bin=$(programs) || fail "no PostgreSQL server here: run 'scripts/setup.sh test', or install the package postgresql"

folder=$(mktemp -d "${TMPDIR:-/tmp}/conclave-postgres.XXXXXX") || fail "no temporary folder can be made"
server=

stop() {
    # SIGQUIT is the "immediate" shutdown: no data has to be kept.
    if [ -n "$server" ]; then
        kill -QUIT "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# PostgreSQL refuses to run as root.
as_user=()
if [ "$(id -u)" -eq 0 ]; then
    id postgres >/dev/null 2>&1 || fail "root cannot run PostgreSQL, and there is no user postgres"
    chown postgres "$folder"
    as_user=(setpriv --reuid=postgres --regid="$(id -g postgres)" --clear-groups env "HOME=$folder")
fi

cd "$folder" || fail "$folder cannot be entered"
"${as_user[@]}" "$bin/initdb" --pgdata="$folder/data" --username=conclave --auth=trust --encoding=UTF8 --locale=C.UTF-8 \
    --no-sync >"$folder/initdb.log" 2>&1 || { cat "$folder/initdb.log" >&2 && fail "initdb failed"; }
cd "$OLDPWD"

# Prints a free port, found by binding port 0. Another process may take it before the server does,
# so the loop below tries several.
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

for _ in 1 2 3 4 5; do
    port=$(free_port)
    "${as_user[@]}" "$bin/postgres" -D "$folder/data" -p "$port" -c listen_addresses=127.0.0.1 \
        -c unix_socket_directories= -c max_connections=400 -c fsync=off -c synchronous_commit=off \
        -c full_page_writes=off -c logging_collector=off -c timezone=UTC >"$folder/server.log" 2>&1 &
    server=$!
    for _ in $(seq 1 300); do
        "$bin/pg_isready" -q -h 127.0.0.1 -p "$port" && break 2
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    kill -QUIT "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    server=
done
[ -n "$server" ] || { cat "$folder/server.log" >&2 && fail "the server did not start"; }

export CONCLAVE_TEST_POSTGRES="postgres://conclave@127.0.0.1:$port/postgres"
code=0
"$@" || code=$?
exit "$code"
