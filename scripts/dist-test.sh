#!/usr/bin/env bash
# scripts/dist-test.sh TARBALL [PACKAGE]: tests the output of scripts/dist.sh, and prints its
# checks. The tarball is unpacked into an empty folder and run. The Debian package is installed into
# a new minimal Debian system, run there as its unit runs it, upgraded, removed and purged.
# mmdebstrap creates that system, unless CONCLAVE_DEBIAN_ROOT names a tarball of an existing one.
# The test of the package needs root. Nothing is installed on this machine.
set -euo pipefail

fail() {
    printf 'dist-test: FAILED: %s\n' "$*" >&2
    exit 1
}

checked() { printf 'dist-test: ok: %s\n' "$*"; }

expect() {
    [ "$2" = "$3" ] || fail "$1: is '$3', expected '$2'"
}

[ "$#" -ge 1 ] || fail "usage: scripts/dist-test.sh TARBALL [PACKAGE]"
tarball=$(realpath "$1")
package=${2:+$(realpath "$2")}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml" | head -n 1)

folder=$(mktemp -d)
chmod 0755 "$folder"
service=
holder=
cleanup() {
    for process in $service $holder; do
        kill -KILL "$process" 2>/dev/null || true
    done
    rm -rf --one-file-system "$folder"
}
trap cleanup EXIT

# Waits for the service with the log $1, sets $url, and requests /health without the program's
# client.
url=
comes_up() {
    local log=$1 port line
    url=
    for _ in $(seq 120); do
        url=$(sed -n 's/.*listening on \(http:\/\/[0-9.:]*\).*/\1/p' "$log" | head -n 1)
        [ -z "$url" ] || break
        kill -0 "$service" 2>/dev/null || fail "the service ended: $(cat "$log")"
        sleep 0.5
    done
    [ -n "$url" ] || fail "the service did not come up in 60 s: $(cat "$log")"
    port=${url##*:}
    exec 9<>"/dev/tcp/127.0.0.1/$port"
    printf 'GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n' >&9
    IFS= read -r line <&9
    exec 9>&-
    expect "the answer of /health" "HTTP/1.1 200 OK" "${line%$'\r'}"
}

stops() {
    local code=0
    kill -TERM "$service"
    wait "$service" || code=$?
    service=
    expect "the exit code after SIGTERM" 0 "$code"
}

rolled() {
    [[ "$1" =~ (^|[^0-9])([5-9]|1[0-5])([^0-9]|$) ]] || fail "'roll 2d6+3' gave no total from 5 to 15: $1"
}

## The tarball

(cd "$(dirname "$tarball")" && sha256sum --check --quiet "$(basename "$tarball").sha256") || fail "the checksum of $tarball"
checked "$(basename "$tarball"): its sha256 file matches"
mkdir "$folder/tar"
tar -xzf "$tarball" -C "$folder/tar" --no-same-owner
unpacked=$(echo "$folder"/tar/*)
expect "the folders in the tarball" 1 "$(find "$folder/tar" -mindepth 1 -maxdepth 1 | wc -l)"
for file in conclave llm.config.json .env.example README.md LICENSE-MIT LICENSE-APACHE third-party-licences.txt \
    completions/conclave.bash completions/conclave.zsh completions/conclave.fish systemd/conclave.service \
    docs/llm.config.schema.json; do
    [ -s "$unpacked/$file" ] || fail "the tarball has no $file"
done
if grep -rlE '(sk-[A-Za-z0-9]{16}|_API_KEY=.)' --include='.env*' --include='*.json' "$unpacked"; then
    fail "the tarball holds what looks like a key"
fi
checked "the tarball has the program, its configs, licences, completions and the unit, and no key"

# An environment without variables of this machine.
plain=(env -i PATH=/usr/bin:/bin HOME="$folder" ANTHROPIC_API_KEY=unused)
cd "$unpacked"
expect "--version" "conclave $version" "$("${plain[@]}" ./conclave --version)"
"${plain[@]}" ./conclave config check >/dev/null || fail "config check with a key"
code=0
env -i PATH=/usr/bin:/bin HOME="$folder" ./conclave config check >/dev/null 2>"$folder/said" || code=$?
expect "config check without a key" 3 "$code"
grep -q ANTHROPIC_API_KEY "$folder/said" || fail "config check without a key does not name it: $(cat "$folder/said")"
checked "the tarball: --version, config check with and without a key"
mkdir data
rolled "$("${plain[@]}" ./conclave act "roll 2d6+3")"
: >"$folder/tar.log"
"${plain[@]}" CONCLAVE_BIND=127.0.0.1:0 ./conclave serve >"$folder/tar.log" 2>&1 &
service=$!
comes_up "$folder/tar.log"
"${plain[@]}" ./conclave health --server "$url" >/dev/null || fail "conclave health"
"${plain[@]}" ./conclave health --ready --server "$url" >/dev/null || fail "conclave health --ready"
stops
checked "the tarball: act 'roll 2d6+3', serve answers /health and /ready, SIGTERM ends it with 0"
cd /

[ -n "$package" ] || exit 0

## The Debian package

[ "$(id -u)" -eq 0 ] || fail "the Debian package was built but not tested: that needs root (sudo scripts/dist-test.sh ...)"
command -v mmdebstrap >/dev/null || fail "no mmdebstrap on the PATH: run 'scripts/setup.sh dist'"
name=$(basename "$package")
checked "$name: Depends: $(dpkg-deb --field "$package" Depends)"

# Checks the unit, with the program's path in the extracted package.
dpkg-deb --extract "$package" "$folder/files"
unit=$folder/files/usr/lib/systemd/system/conclave.service
sed "s|^ExecStart=/usr/bin/conclave|ExecStart=$folder/files/usr/bin/conclave|" "$unit" >"$folder/conclave.service"
said=$(systemd-analyze verify "$folder/conclave.service" 2>&1) || fail "systemd-analyze verify: $said"
expect "what systemd-analyze verify says of the unit" "" "$(grep -F "$folder/conclave.service" <<<"$said" || true)"
# The exposure ranges from 0 (nothing exposed) to 100. A service without these settings has 96.
exposure=$(systemd-analyze security --offline=true --threshold=20 "$folder/conclave.service" 2>/dev/null | tail -n 1) ||
    fail "systemd-analyze security: $exposure"
longest=$(sed -n 's/.*"deadlines":.*"deep": *\([0-9]*\).*/\1/p' "$folder/files/etc/conclave/llm.config.json")
patience=$(sed -n 's/^TimeoutStopSec=//p' "$unit")
[ "$patience" -gt "$((${longest:-300} + 5))" ] || fail "TimeoutStopSec=$patience is not above the longest deadline, ${longest:-300}"
checked "the unit: systemd-analyze verify says nothing, TimeoutStopSec=$patience is above ${longest:-300} s${exposure:+; ${exposure#* }}"

mkdir "$folder/sysusers" && mkdir "$folder/sysusers/etc"
systemd-sysusers --root="$folder/sysusers" "$folder/files/usr/lib/sysusers.d/conclave.conf" 2>/dev/null ||
    fail "systemd-sysusers refuses the package's file"
grep -q '^conclave:.*:/var/lib/conclave:/usr/sbin/nologin$' "$folder/sysusers/etc/passwd" || fail "systemd-sysusers made no user"
checked "systemd-sysusers makes the user conclave"

root=$folder/root
if [ -z "${CONCLAVE_DEBIAN_ROOT:-}" ]; then
    mmdebstrap --quiet --variant=minbase bookworm "$root" || fail "mmdebstrap made no Debian system; is there a network?"
else
    mkdir "$root" && tar -xf "$CONCLAVE_DEBIAN_ROOT" -C "$root"
fi
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp "$package" "$root/conclave.deb"
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
inside apt-get update -qq
code=0
inside dpkg --install /conclave.deb >"$folder/said" 2>&1 || code=$?
[ "$code" -ne 0 ] || fail "a Debian system without ca-certificates takes the package"
inside dpkg --purge conclave >/dev/null 2>&1
inside apt-get install -y -qq --no-install-recommends /conclave.deb >"$folder/said" 2>&1 || fail "$(cat "$folder/said")"
grep -q 'not started yet' "$folder/said" || fail "the installation does not say what to do next: $(cat "$folder/said")"
checked "$name installs into a minimal Debian $(cat "$root/etc/debian_version"), with what it depends on and nothing else"

has() {
    local path=$1 owner=$2 mode=$3
    expect "owner and mode of $path" "$owner $mode" "$(inside stat -c '%U:%G %a' "$path")"
}
installed() {
    has /usr/bin/conclave root:root 755
    has /usr/lib/systemd/system/conclave.service root:root 644
    has /etc/conclave/llm.config.json root:root 644
    has /etc/conclave/conclave.env root:conclave 640
    has /var/lib/conclave conclave:conclave 750
    has /usr/share/doc/conclave/copyright root:root 644
    has /usr/share/bash-completion/completions/conclave root:root 644
    [ -L "$root/var/lib/conclave/.env" ] || fail "/var/lib/conclave/.env is no link"
}
installed
# shellcheck disable=SC2016 # a field of dpkg
expect "the conffiles" "/etc/conclave/conclave.env /etc/conclave/llm.config.json" \
    "$(inside dpkg-query -W -f '${Conffiles}' conclave | awk '{ print $1 }' | sort | xargs)"
expect "files that do not belong to root" "" "$(dpkg-deb --contents "$package" | awk '$2 != "root/root"')"
expect "set-uid files" "" "$(find "$folder/files" -perm /6000)"
[ ! -e "$root/etc/systemd/system/multi-user.target.wants/conclave.service" ] || fail "the service starts before it is configured"
inside dpkg --verify conclave || fail "dpkg --verify finds altered files"
checked "owners and modes of its files, its conffiles, no set-uid file, not enabled"

# Runs the program as the unit does: with the variables of the file, in its folder, as its user
# without privileges, on a file system that is read-only except for the state. Other settings of
# systemd (system calls, address families) are not applied.
as_unit() {
    # shellcheck disable=SC2016 # expanded by the inner shells
    unshare --mount sh -ec '
        root=$1 && shift
        mount --bind "$root" "$root"
        mount -t proc proc "$root/proc"
        mount --bind "$root/var/lib/conclave" "$root/var/lib/conclave"
        mount -o remount,bind,ro "$root"
        exec chroot "$root" env -i PATH=/usr/bin:/bin HOME=/var/lib/conclave sh -ec "
            set -a && . /etc/conclave/conclave.env && set +a && umask 0077 && cd /var/lib/conclave
            exec setpriv --reuid conclave --regid conclave --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
                /usr/bin/conclave \"\$@\"" conclave "$@"' unit "$root" "$@"
}
# Runs the program as an administrator does: sudo -u conclave in the folder of the state, which has
# the settings in .env.
as_admin() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    inside setpriv --reuid conclave --regid conclave --clear-groups sh -ec 'cd /var/lib/conclave && exec conclave "$@"' conclave "$@"
}

code=0
as_unit serve >"$folder/said" 2>&1 || code=$?
expect "serve without a key" 3 "$code"
grep -q ANTHROPIC_API_KEY "$folder/said" || fail "serve without a key does not name it: $(cat "$folder/said")"
grep -q '^RestartPreventExitStatus=3$' "$unit" || fail "the unit starts again what cannot start"
sed -i -e 's/^ANTHROPIC_API_KEY=.*/ANTHROPIC_API_KEY=unused/' -e 's/^CONCLAVE_BIND=.*/CONCLAVE_BIND=127.0.0.1:0/' \
    "$root/etc/conclave/conclave.env"
as_unit config check >/dev/null || fail "config check with a key"
: >"$folder/unit.log"
as_unit serve >"$folder/unit.log" 2>&1 &
service=$!
comes_up "$folder/unit.log"
as_unit health --ready --server "$url" >/dev/null || fail "conclave health --ready"
user=$(stat -c %u "$root/var/lib/conclave")
holder=$(pgrep -u "$user" -f '^/usr/bin/conclave serve' | head -n 1)
[ -n "$holder" ] || fail "the service does not run as the user conclave"
expect "what the service may do" "0000000000000000 1" \
    "$(awk '$1 == "CapEff:" { c = $2 } $1 == "NoNewPrivs:" { n = $2 } END { print c, n }' "/proc/$holder/status")"
has /var/lib/conclave/conclave.db conclave:conclave 600
checked "the installed program, as the unit runs it: refuses without a key (3), else serves as conclave on a read-only system"

rolled "$(as_admin act "roll 2d6+3" 2>"$folder/said")"
as_admin backup before.db >/dev/null || fail "backup"
code=0
as_admin restore --force before.db 2>"$folder/said" || code=$?
expect "restore under a running service" 4 "$code"
grep -q 'in use' "$folder/said" || fail "restore under a running service says: $(cat "$folder/said")"
code=0
kill -TERM "$holder"
wait "$service" || code=$?
service=
holder=
expect "the exit code of the installed service after SIGTERM" 0 "$code"
as_admin restore --force before.db >"$folder/said" || fail "restore: $(cat "$folder/said")"
has /var/lib/conclave/conclave.db conclave:conclave 600
# A restore by root must leave a file that the service can open.
inside sh -ec 'cd /var/lib/conclave && exec conclave restore --force before.db' >/dev/null || fail "restore by root"
has /var/lib/conclave/conclave.db conclave:conclave 600
expect "the runs after the restore" 1 "$(as_admin runs --actions --json | wc -l)"
checked "the command line beside the service: act, backup, restore refused while it runs and done after it stopped"

inside dpkg --install /conclave.deb >"$folder/said" 2>&1 || fail "the upgrade: $(cat "$folder/said")"
installed
grep -q '^ANTHROPIC_API_KEY=unused$' "$root/etc/conclave/conclave.env" || fail "an upgrade lost a setting"
expect "the runs after the upgrade" 1 "$(as_admin runs --actions --json | wc -l)"
checked "an upgrade keeps settings and data"
inside dpkg --remove conclave >/dev/null
[ ! -e "$root/usr/bin/conclave" ] || fail "the program is there after its removal"
for file in var/lib/conclave/conclave.db etc/conclave/conclave.env; do
    [ -s "$root/$file" ] || fail "a removal took /$file"
done
inside dpkg --purge conclave >/dev/null
for file in var/lib/conclave etc/conclave; do
    [ ! -e "$root/$file" ] || fail "a purge left /$file"
done
checked "a removal keeps settings and data, a purge removes both"
