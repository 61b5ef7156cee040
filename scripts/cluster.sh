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
# It needs root, and the packages that `scripts/setup.sh cluster` installs. The files that it writes
# are those of docker-compose.scale.yml, with other addresses.
set -euo pipefail

folder=${CONCLAVE_CLUSTER:-${TMPDIR:-/tmp}/conclave-cluster}
prefix=cc$(printf '%s' "$folder" | cksum | cut -d ' ' -f 1)
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
nodes=(db1 db2 witness app1 app2 app3 lb)
databases=(db1 db2)
replicas=(app1 app2 app3)

# The seconds of the lease of the primary, and the lease of a run (the default of the service).
ttl=${CONCLAVE_CLUSTER_TTL:-20}
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
        --initial-cluster "$cluster" --initial-cluster-state new --logger zap
}

write_patroni() {
    local node=$1 at
    at=$(address "$node")
    cat >"$folder/$node/patroni.yml" <<END
scope: conclave
name: $node
restapi:
  listen: $at:8008
  connect_address: $at:8008
etcd3:
  hosts: $(address db1):2379,$(address db2):2379,$(address witness):2379
bootstrap:
  dcs:
    ttl: $ttl
    loop_wait: 5
    retry_timeout: 5
    # A commit is answered when the standby has it on disk. Only such a standby is promoted.
    synchronous_mode: true
    # With two nodes the primary goes on alone when the standby is gone; docs/scale.md has the reasons.
    synchronous_mode_strict: false
    postgresql:
      use_pg_rewind: true
      parameters:
        max_connections: 200
        synchronous_commit: 'on'
        wal_sender_timeout: 10s
        wal_receiver_timeout: 10s
  initdb:
    - encoding: UTF8
    - locale: C.UTF-8
    - data-checksums
postgresql:
  listen: $at:5432
  connect_address: $at:5432
  bin_dir: $(programs)
  data_dir: $folder/$node/data
  pgpass: $folder/$node/pgpass
  authentication:
    superuser: { username: postgres, password: $(cat "$folder/password") }
    replication: { username: replicator, password: $(cat "$folder/password") }
    rewind: { username: rewind, password: $(cat "$folder/password") }
  parameters:
    unix_socket_directories: $folder/$node
    timezone: UTC
  pg_hba:
    - host all all 10.77.0.0/24 scram-sha-256
    - host replication replicator 10.77.0.0/24 scram-sha-256
    - local all all scram-sha-256
END
    chown postgres "$folder/$node/patroni.yml"
    chmod 600 "$folder/$node/patroni.yml"
}

start_patroni() { launch as_postgres "$1" patroni patroni "$folder/$1/patroni.yml"; }

# HAProxy beside a replica: leads to the primary, and breaks the connections to a former one.
write_database_proxy() {
    local node
    {
        cat <<END
global
    maxconn 500
defaults
    mode tcp
    timeout connect 2s
    # Connections for notifications are silent for long.
    timeout client 24h
    timeout server 24h
    timeout check 1s
    option clitcpka
    option srvtcpka
listen primary
    bind 127.0.0.1:5432
    option httpchk OPTIONS /primary
    http-check expect status 200
    default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
END
        for node in "${databases[@]}"; do
            echo "    server $node $(address "$node"):5432 check port 8008"
        done
    } >"$folder/database.cfg"
}

# HAProxy in front of the replicas.
write_balancer() {
    local node
    {
        cat <<END
global
    maxconn 8000
defaults
    mode http
    timeout connect 2s
    # Longer than the longest deadline of a run, for clients that wait for the reply.
    timeout client 330s
    timeout server 330s
    timeout check 5s
    timeout queue 5s
    # Another replica is tried only if no connection could be made: the request was not sent.
    retries 2
    option redispatch 1
    retry-on conn-failure
frontend clients
    bind $(address lb):8080
    # Without any ready replica the service itself says why, with Retry-After.
    use_backend unready if { nbsrv(ready) eq 0 }
    default_backend ready
backend ready
    balance leastconn
    option httpchk GET /ready
    http-check expect status 200
    default-server inter 1s fall 2 rise 1
END
        for node in "${replicas[@]}"; do
            echo "    server $node $(address "$node"):8080 check"
        done
        cat <<END
backend unready
    balance roundrobin
    option httpchk GET /health
    http-check expect status 200
    default-server inter 1s fall 2 rise 1
END
        for node in "${replicas[@]}"; do
            echo "    server $node $(address "$node"):8080 check"
        done
    } >"$folder/balancer.cfg"
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

create_database() {
    local at
    at=$(address "$(primary)")
    PGPASSWORD=$(cat "$folder/password") PGCONNECT_TIMEOUT=3 in_node lb psql --quiet --no-psqlrc \
        --host="$at" --username=postgres --dbname=postgres --set=ON_ERROR_STOP=1 \
        --set=password="$(cat "$folder/password")" <<'END'
CREATE ROLE conclave LOGIN PASSWORD :'password';
CREATE DATABASE conclave OWNER conclave;
END
}

up() {
    local binary=${1:-} node
    [ -x "$binary" ] || fail "usage: scripts/cluster.sh up BINARY"
    check
    [ ! -e "$folder" ] || fail "$folder exists: run 'scripts/cluster.sh down' first"
    # Children of the temporary folder are entered by the user postgres.
    mkdir -m 755 "$folder"
    trap 'down >/dev/null 2>&1' ERR
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
    for node in "${databases[@]}"; do
        write_patroni "$node"
        start_patroni "$node"
    done
    wait_for 60 "a primary" primary >/dev/null
    wait_for 60 "a synchronous standby" has_synchronous_standby
    create_database
    write_database_proxy
    write_balancer
    launch in_node lb haproxy haproxy -db -f "$folder/balancer.cfg"
    for node in "${replicas[@]}"; do
        launch in_node "$node" haproxy haproxy -db -f "$folder/database.cfg"
    done
    # HAProxy counts a server as up until its first check.
    sleep 3
    for node in "${replicas[@]}"; do start_replica "$node"; done
    for node in "${replicas[@]}"; do wait_for 30 "the replica $node" is_ready "$node"; done
    wait_for 10 "the balancer" is_status "http://$(address lb):8080/ready" 200
    trap - ERR
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

start() {
    case ${1:-} in
    db1 | db2) start_patroni "$1" ;;
    app1 | app2 | app3) start_replica "$1" ;;
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
down) down ;;
# The second half of `launch`.
_in_node) exec ip netns exec "$prefix-$1" "${@:2}" ;;
_as_postgres) exec ip netns exec "$prefix-$1" "${user_postgres[@]}" HOME="$folder/$1" "${@:2}" ;;
*) fail "no command $command: one of up, status, primary, kill-replica, kill-primary, partition, heal, start, stop, exec, down" ;;
esac
