#!/bin/sh
# Patroni runs this once, on the first primary, with the address of the server. It creates the user
# and the database of the service. CONCLAVE_DATABASE_PASSWORD is in the environment.
set -eu
psql --quiet --no-psqlrc --set=ON_ERROR_STOP=1 --set=password="$CONCLAVE_DATABASE_PASSWORD" "$1" <<'END'
CREATE ROLE conclave LOGIN PASSWORD :'password';
CREATE DATABASE conclave OWNER conclave;
END
