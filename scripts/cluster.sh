#!/usr/bin/env bash
# scripts/cluster.sh COMMAND: a highly available installation on one Linux machine, for tests.
#
#   up BINARY       starts everything and waits until it is ready; BINARY is the program `conclave`
#   status          prints the role of each database node and the state of each replica
#   primary         prints the name of the primary, such as db1
#   kill-replica N  kills the replica N (SIGKILL)
#   kill-primary    kills Patroni and PostgreSQL of the primary (SIGKILL)
#   partition [N]   cuts the primary off from all other nodes, together with the replica N if given
#   heal            ends the partition
#   start NODE      starts a killed node again: db1, db2, app1, app2, app3
#   stop NODE       stops a replica by SIGTERM
#   exec NODE CMD   runs a command in the network of a node, such as `exec lb curl ...`
#   prefix          prints the prefix of the names of the namespaces
#   down            ends everything and removes it
#
# Each node is a network namespace on one virtual switch:
#
#   db1, db2          PostgreSQL under Patroni, and a member of etcd
#   witness           the third member of etcd
#   app1, app2, app3  a replica of the service, and HAProxy on loopback that leads to the primary
#   lb                HAProxy in front of the replicas; the test's model provider and clients
#
# All files are in the folder CONCLAVE_CLUSTER (default: conclave-cluster in the temporary folder).
# The namespaces have no route to any other network. Only processes inside them are ended.
# It needs root, and the packages that `scripts/setup.sh cluster` installs. The settings of Patroni
# and HAProxy are those of docker-compose.scale.yml, in packaging/scale/.
set -euo pipefail

folder=${CONCLAVE_CLUSTER:-${TMPDIR:-/tmp}/conclave-cluster}
prefix=cc$(printf '%s' "$folder" | cksum | cut -d ' ' -f 1)
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
nodes=(db1 db2 witness app1 app2 app3 lb)
databases=(db1 db2)
replicas=(app1 app2 app3)

# Where the replicas find the model provider: in the namespace lb.
provider_port=9000

fail() {
    printf 'cluster: %s\n' "$*" >&2
    exit 1
}

address() {
    case $1 in
    db1) echo 10.77.0.11 ;;
    db2) echo 10.77.0.12 ;;
    witness) echo 10.77.0.13 ;;
    app1) echo 10.77.0.21 ;;
    app2) echo 10.77.0.22 ;;
    app3) echo 10.77.0.23 ;;
    lb) echo 10.77.0.30 ;;
    *) fail "no node $1: one of ${nodes[*]}" ;;
    esac
}

# Runs a command in the network of a node.
in_node() {
    local node=$1
    shift
    ip netns exec "$prefix-$node" "$@"
}

# PostgreSQL refuses to run as root.
user_postgres=(setpriv --reuid=postgres --regid=postgres --clear-groups env -i "PATH=$PATH" LANG=C.UTF-8)

# Starts a program in the background. Its output goes to NODE/NAME.log, its process id to
# NODE/NAME.pid. `ip netns exec` and `setpriv` replace themselves by the program.
launch() {
    local how=$1 node=$2 name=$3
    shift 3
    setsid bash -c 'echo $$ >"$0"; exec "$@"' "$folder/$node/$name.pid" \
        "$0" "_$how" "$node" "$@" >>"$folder/$node/$name.log" 2>&1 </dev/null &
    disown
}

# Prints the process ids in the network of a node. All were started by this script.
pids_of() { ip netns pids "$prefix-$1" 2>/dev/null || true; }

# Kills a process of a node by the file with its id.
kill_by_file() {
    local node=$1 signal=$2 file=$3 pid
    [ -f "$file" ] || return 0
    pid=$(head -n 1 "$file")
    # An id may have been given to another process since.
    pids_of "$node" | grep -qx "$pid" || return 0
    kill "-$signal" "$pid" 2>/dev/null || true
}

# Prints the HTTP status of an address, as a node sees it.
status_of() {
    in_node "$1" curl --silent --output /dev/null --max-time 2 --write-out '%{http_code}' "$2" || true
}

# Waits until a command succeeds.
wait_for() {
    local seconds=$1 what=$2 end
    shift 2
    end=$((SECONDS + seconds))
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || fail "$what did not come within $seconds s; see the logs in $folder"
        sleep 0.25
    done
}

is_status() { [ "$(status_of lb "$1")" = "$2" ]; }

# Prints the name of the primary as Patroni says it, asked from the side of the balancer.
primary() {
    local node
    for node in "${databases[@]}"; do
        if is_status "http://$(address "$node"):8008/primary" 200; then
            echo "$node"
            return
        fi
    done
    return 1
}

has_synchronous_standby() {
    local node
    for node in "${databases[@]}"; do
        is_status "http://$(address "$node"):8008/sync" 200 && return 0
    done
    return 1
}

is_ready() { is_status "http://$(address "$1"):8080/ready" 200; }

programs() {
    local found
    found=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -rV | head -n 1)
    [ -x "$found/initdb" ] || fail "no PostgreSQL server here: run 'scripts/setup.sh cluster'"
    echo "$found"
}

check() {
    local program
    [ "$(uname -s)" = Linux ] || fail "network namespaces need Linux"
    [ "$(id -u)" -eq 0 ] || fail "network namespaces need root"
    for program in patroni etcd haproxy ip curl psql setpriv; do
        command -v "$program" >/dev/null || fail "no $program: run 'scripts/setup.sh cluster'"
    done
    id postgres >/dev/null 2>&1 || fail "there is no user postgres: run 'scripts/setup.sh cluster'"
}

make_network() {
    local node bridge
    ip netns add "$prefix-switch"
    # A partition moves nodes to the second bridge.
    for bridge in main island; do
        in_node switch ip link add "$bridge" type bridge
        in_node switch ip link set "$bridge" up
    done
    for node in "${nodes[@]}"; do
        ip netns add "$prefix-$node"
        ip link add eth0 netns "$prefix-$node" type veth peer name "$node" netns "$prefix-switch"
        in_node switch ip link set "$node" master main up
        in_node "$node" ip link set lo up
        in_node "$node" ip address add "$(address "$node")/24" dev eth0
        in_node "$node" ip link set eth0 up
        mkdir -p "$folder/$node"
    done
}

start_etcd() {
    local node=$1 at cluster
    at=$(address "$node")
    cluster="db1=http://$(address db1):2380,db2=http://$(address db2):2380,witness=http://$(address witness):2380"
    launch as_postgres "$node" etcd etcd --name "$node" --data-dir "$folder/$node/etcd" \
        --listen-client-urls "http://$at:2379" --advertise-client-urls "http://$at:2379" \
        --listen-peer-urls "http://$at:2380" --initial-advertise-peer-urls "http://$at:2380" \
        --initial-cluster "$cluster" --initial-cluster-state new --enable-v2 --logger zap
}

# Prints the settings of a database node for packaging/scale/patroni.yml.
patroni_settings() {
    local node=$1 at password
    at=$(address "$node")
    password=$(cat "$folder/password")
    cat <<END
PATRONI_NAME=$node
PATRONI_ETCD_HOSTS='$(address db1):2379','$(address db2):2379','$(address witness):2379'
PATRONI_RESTAPI_LISTEN=$at:8008
PATRONI_RESTAPI_CONNECT_ADDRESS=$at:8008
PATRONI_POSTGRESQL_LISTEN=$at:5432
PATRONI_POSTGRESQL_CONNECT_ADDRESS=$at:5432
PATRONI_POSTGRESQL_BIN_DIR=$(programs)
PATRONI_POSTGRESQL_DATA_DIR=$folder/$node/data
PATRONI_POSTGRESQL_PGPASS=$folder/$node/pgpass
PATRONI_SUPERUSER_USERNAME=postgres
PATRONI_SUPERUSER_PASSWORD=$password
PATRONI_REPLICATION_USERNAME=replicator
PATRONI_REPLICATION_PASSWORD=$password
PATRONI_REWIND_USERNAME=rewind
PATRONI_REWIND_PASSWORD=$password
CONCLAVE_DATABASE_PASSWORD=$password
END
}

start_patroni() {
    local settings
    mapfile -t settings < <(patroni_settings "$1")
    launch as_postgres "$1" patroni "${settings[@]}" patroni "$folder/$1/patroni.yml"
}

start_proxy() {
    local node=$1 file=$2 bind=$3
    launch in_node "$node" haproxy env "BIND=$bind" "DB1=$(address db1)" "DB2=$(address db2)" \
        "APP1=$(address app1)" "APP2=$(address app2)" "APP3=$(address app3)" \
        haproxy -db -f "$repository/packaging/scale/$file.cfg"
}

start_replica() {
    local node=$1
    launch in_node "$node" conclave env -i PATH="$PATH" HOME="$folder/$node" \
        CONCLAVE_BIND="$(address "$node"):8080" CONCLAVE_TOKEN="$(cat "$folder/token")" \
        CONCLAVE_CONFIG="$(cat "$folder/config")" \
        DATABASE_URL="postgres://conclave:$(cat "$folder/password")@127.0.0.1:5432/conclave?sslmode=disable" \
        ANTHROPIC_API_KEY=none ANTHROPIC_BASE_URL="http://$(address lb):$provider_port" \
        RUST_LOG="${RUST_LOG:-info}" NORMAL_MAX_USD="${NORMAL_MAX_USD:-0.10}" \
        bash -c "cd '$folder/$node' && exec '$(cat "$folder/binary")' serve"
}

up() {
    local binary=${1:-} node
    [ -x "$binary" ] || fail "usage: scripts/cluster.sh up BINARY"
    check
    [ ! -e "$folder" ] || fail "$folder exists: run 'scripts/cluster.sh down' first"
    # Children of the temporary folder are entered by the user postgres.
    mkdir -m 755 "$folder"
    realpath "$binary" >"$folder/binary"
    realpath "${CONCLAVE_CONFIG:-$repository/llm.config.json}" >"$folder/config"
    (umask 077 && head -c 18 /dev/urandom | base64 | tr '+/' 'ab' >"$folder/password")
    (umask 077 && head -c 24 /dev/urandom | base64 | tr '+/' 'ab' >"$folder/token")
    make_network
    for node in "${databases[@]}" witness; do
        chown postgres "$folder/$node"
        start_etcd "$node"
    done
    wait_for 30 etcd is_status "http://$(address witness):2379/health" 200
    cp "$repository/packaging/scale/create-database.sh" "$folder"
    for node in "${databases[@]}"; do
        sed -e "s|/etc/scale/|$folder/|" -e "s|^\( *\)timezone: UTC|&\n\1unix_socket_directories: $folder/$node|" \
            "$repository/packaging/scale/patroni.yml" >"$folder/$node/patroni.yml"
        start_patroni "$node"
    done
    wait_for 60 "a primary" primary >/dev/null
    wait_for 60 "a synchronous standby" has_synchronous_standby
    start_proxy lb balancer "$(address lb):8080"
    for node in "${replicas[@]}"; do start_proxy "$node" database 127.0.0.1:5432; done
    # HAProxy counts a server as up until its first check.
    sleep 3
    for node in "${replicas[@]}"; do start_replica "$node"; done
    for node in "${replicas[@]}"; do wait_for 30 "the replica $node" is_ready "$node"; done
    wait_for 10 "the balancer" is_status "http://$(address lb):8080/ready" 200
}

status() {
    local node role
    for node in "${databases[@]}"; do
        role=$(in_node lb curl --silent --max-time 2 "http://$(address "$node"):8008/patroni" |
            python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["role"], d["state"], "synchronous" if d.get("sync_standby") else "")' 2>/dev/null) ||
            role="does not answer"
        printf '%s: %s\n' "$node" "$role"
    done
    for node in "${replicas[@]}"; do
        printf '%s: /ready %s\n' "$node" "$(status_of lb "http://$(address "$node"):8080/ready")"
    done
}

kill_primary() {
    local node
    node=$(primary) || fail "there is no primary"
    kill_by_file "$node" KILL "$folder/$node/patroni.pid"
    kill_by_file "$node" KILL "$folder/$node/data/postmaster.pid"
    echo "$node"
}

partition() {
    local node
    node=$(primary) || fail "there is no primary"
    for node in "$node" ${1:+"app$1"}; do
        in_node switch ip link set "$node" master island
        echo "$node"
    done
}

heal() {
    local node
    for node in "${nodes[@]}"; do in_node switch ip link set "$node" master main; done
}

# True if a replica is ready. Starts it again if it has ended, as a supervisor would: it ends if it
# finds no primary.
is_started() {
    is_ready "$1" && return 0
    if ! pids_of "$1" | grep -qx "$(cat "$folder/$1/conclave.pid")"; then start_replica "$1"; fi
    return 1
}

start() {
    case ${1:-} in
    db1 | db2) start_patroni "$1" ;;
    app1 | app2 | app3)
        # A stopped replica may still end its runs.
        if is_status "http://$(address "$1"):8080/health" 200; then fail "$1 still runs"; fi
        start_replica "$1"
        wait_for 60 "the replica $1" is_started "$1"
        ;;
    *) fail "start takes a database node or a replica" ;;
    esac
}

down() {
    local node pid end
    for node in "${nodes[@]}"; do
        for pid in $(pids_of "$node"); do kill -TERM "$pid" 2>/dev/null || true; done
    done
    end=$((SECONDS + 5))
    for node in "${nodes[@]}"; do
        while [ -n "$(pids_of "$node")" ] && [ "$SECONDS" -lt "$end" ]; do sleep 0.1; done
        for pid in $(pids_of "$node"); do kill -KILL "$pid" 2>/dev/null || true; done
    done
    for node in "${nodes[@]}" switch; do
        if [ -e "/run/netns/$prefix-$node" ]; then ip netns delete "$prefix-$node"; fi
    done
    case $folder in
    / | "") fail "no folder to remove" ;;
    *) if [ -f "$folder/password" ]; then rm -rf "$folder"; fi ;;
    esac
}

command=${1:-}
shift || true
case $command in
up) up "$@" ;;
status) status ;;
primary) primary ;;
kill-replica) kill_by_file "app$1" KILL "$folder/app$1/conclave.pid" ;;
kill-primary) kill_primary ;;
partition) partition "$@" ;;
heal) heal ;;
start) start "$@" ;;
stop) kill_by_file "$1" TERM "$folder/$1/conclave.pid" ;;
exec) in_node "$@" ;;
prefix) echo "$prefix" ;;
down) down ;;
# The second half of `launch`.
_in_node) exec ip netns exec "$prefix-$1" "${@:2}" ;;
_as_postgres) exec ip netns exec "$prefix-$1" "${user_postgres[@]}" HOME="$folder/$1" "${@:2}" ;;
*) fail "no command $command: one of up, status, primary, kill-replica, kill-primary, partition, heal, start, stop, exec, prefix, down" ;;
esac
