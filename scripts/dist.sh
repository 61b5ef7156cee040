#!/usr/bin/env bash
# Builds the release without the in-process model by scripts/pgo.sh, and packs it into a tarball and
# a Debian package in dist/. Tests both at the end: see scripts/dist-test.sh. `scripts/dist.sh tarball` makes and
# tests only the tarball.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
    printf 'dist: %s\n' "$*" >&2
    exit 1
}

what=${1:-all}
case $what in
all | tarball) ;;
*) fail "usage: scripts/dist.sh [all|tarball]" ;;
esac

triple=$(rustc -vV | sed -n 's/^host: //p')
case $triple in
x86_64-unknown-linux-gnu) architecture=amd64 ;;
aarch64-unknown-linux-gnu) architecture=arm64 ;;
*) fail "no packages are made for $triple: build with 'cargo build --release --locked'" ;;
esac
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

binary=$(scripts/pgo.sh grammars)
scripts/licences.py "$triple" >"$scratch/third-party-licences.txt" || fail "the licences of the crates could not be read"
mkdir "$scratch/completions"
for shell in bash zsh fish; do
    "$binary" completions "$shell" >"$scratch/completions/conclave.$shell"
done
configs=(llm.config*.json)

make_tarball() {
    local name=conclave-$version-$triple
    local root=$scratch/$name
    install -D -m 0755 "$binary" "$root/conclave"
    install -m 0644 "${configs[@]}" .env.example README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$root"
    if [ -d configs ]; then cp -r configs "$root/configs"; fi
    install -D -m 0644 docs/llm.config.schema.json "$root/docs/llm.config.schema.json"
    install -D -m 0644 docs/operations.md docs/configuration.md "$root/docs"
    install -m 0644 "$scratch/third-party-licences.txt" "$root"
    cp -r "$scratch/completions" "$root"
    install -D -m 0644 packaging/conclave.service packaging/sysusers.conf -t "$root/systemd"
    tar --create --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw \
        --directory="$scratch" "$name" | gzip -9n >"dist/$name.tar.gz"
    (cd dist && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
}

# Prints the Debian packages of the shared libraries that the binary needs. A library that is not in
# this list must be added here.
dependencies() {
    local library glibc found=()
    glibc=$(objdump -T "$binary" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -n 1)
    [ -n "$glibc" ] || fail "the binary names no version of glibc"
    found+=("libc6 (>= $glibc)")
    while read -r library; do
        case $library in
        libc.so.6 | libm.so.6 | ld-linux-x86-64.so.2 | ld-linux-aarch64.so.1) ;; # part of libc6
        libgcc_s.so.1) found+=("libgcc-s1 (>= 4.2)") ;;
        *) fail "the binary needs $library; add its package to dependencies() in scripts/dist.sh" ;;
        esac
    done < <(objdump -p "$binary" | awk '$1 == "NEEDED" { print $2 }')
    printf '%s, ' "${found[@]}" | sed 's/, $//'
}

# Writes the settings of the service, based on .env.example. Fails if an expected line is missing.
settings() {
    local line
    cp .env.example "$1"
    for line in 'CONCLAVE_CONFIG=/etc/conclave/llm.config.json' 'DATABASE_URL=sqlite:///var/lib/conclave/conclave.db'; do
        grep -q "^\(# \)\?${line%%=*}=" "$1" || fail ".env.example has no line ${line%%=*}="
        sed -i "s|^\(# \)\?${line%%=*}=.*|$line|" "$1"
    done
    # The package has no in-process model.
    sed -i -e '/^# LOCAL_MODEL_PATH=/d' -e '/^# The weights of the in-process model/d' -e 's/ Copy to \.env and.*$//' \
        -e '/^# \(The config: a file\|\.\/llm\.config\.json, else\)/d' "$1"
}

make_package() {
    local root=$scratch/deb
    local doc=$root/usr/share/doc/conclave depends file
    depends=$(dependencies)
    install -D -m 0755 "$binary" "$root/usr/bin/conclave"
    install -D -m 0644 packaging/conclave.service -t "$root/usr/lib/systemd/system"
    install -D -m 0644 packaging/sysusers.conf "$root/usr/lib/sysusers.d/conclave.conf"
    install -D -m 0644 docs/llm.config.schema.json -t "$root/usr/share/conclave"
    install -D -m 0644 "$scratch/completions/conclave.bash" "$root/usr/share/bash-completion/completions/conclave"
    install -D -m 0644 "$scratch/completions/conclave.zsh" "$root/usr/share/zsh/vendor-completions/_conclave"
    install -D -m 0644 "$scratch/completions/conclave.fish" -t "$root/usr/share/fish/vendor_completions.d"
    install -D -m 0644 README.md .env.example docs/operations.md docs/configuration.md -t "$doc"
    gzip -9nc CHANGELOG.md >"$doc/CHANGELOG.md.gz"
    gzip -9nc "$scratch/third-party-licences.txt" >"$doc/third-party-licences.txt.gz"
    sed -e '/@MIT@/{
        r /dev/stdin
        d
    }' packaging/debian/copyright < <(sed -e 's/^$/./' -e 's/^/ /' LICENSE-MIT) >"$doc/copyright"
    if [ -d configs ]; then cp -r configs "$root/usr/share/conclave/configs"; fi
    install -d "$root/etc/conclave"
    sed 's|"\./docs/llm\.config\.schema\.json"|"/usr/share/conclave/llm.config.schema.json"|' llm.config.json \
        >"$root/etc/conclave/llm.config.json"
    settings "$root/etc/conclave/conclave.env"
    chmod -R go=rX,u+rw "$root"
    chmod 0600 "$root/etc/conclave/conclave.env"

    install -d -m 0755 "$root/DEBIAN"
    printf '%s\n' /etc/conclave/llm.config.json /etc/conclave/conclave.env >"$root/DEBIAN/conffiles"
    sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$architecture/" -e "s/@DEPENDS@/$depends/" \
        -e "s/@SIZE@/$(du -sk --apparent-size --exclude=DEBIAN "$root" | cut -f 1)/" \
        packaging/debian/control.in >"$root/DEBIAN/control"
    for file in postinst prerm postrm; do
        install -m 0755 "packaging/debian/$file" "$root/DEBIAN/$file"
    done
    (cd "$root" && find . -type f -not -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
    chmod 0644 "$root"/DEBIAN/{conffiles,control,md5sums}
    dpkg-deb --root-owner-group -Zxz --build "$root" "dist/conclave_${version}_$architecture.deb" >/dev/null
}

# A fixed time, so that the same program gives the same archives. It is set after the build, because
# a new value would recompile all C code.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH
mkdir -p dist
make_tarball
tarball=dist/conclave-$version-$triple.tar.gz
if [ "$what" = tarball ]; then
    ls -l "$tarball"
    exec scripts/dist-test.sh "$tarball"
fi
command -v dpkg-deb >/dev/null || fail "no dpkg-deb on the PATH: run 'scripts/setup.sh dist', or 'scripts/dist.sh tarball'"
make_package
package=dist/conclave_${version}_$architecture.deb
ls -l "$tarball" "$package"
exec scripts/dist-test.sh "$tarball" "$package"
