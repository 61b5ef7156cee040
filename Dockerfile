# syntax=docker/dockerfile:1

# The image of the service: the program and its configs, without a compiler. Run it with
# docker-compose.master.yml, or see docs/operations.md. The in-process model is left out;
# `docker build --build-arg FEATURES=local,grammars .` adds it.
#
# Each base image is pinned to a release, not to a digest. To get a digest, run
# docker buildx imagetools inspect NAME:TAG.

FROM rust:1.95.0-slim-bookworm AS build
ARG FEATURES="grammars"
# Only the in-process model needs more than the C compiler of the base image: cmake and a C++
# compiler for llama.cpp, and libclang for its bindings. The Debian release sets their versions.
# hadolint ignore=DL3008
RUN case ",$FEATURES," in *,local,*) \
        apt-get update \
        && apt-get install -y --no-install-recommends clang cmake g++ libclang-dev make \
        && rm -rf /var/lib/apt/lists/* ;; \
    esac
WORKDIR /src
COPY . .
# The caches keep the registry and the compiled dependencies between builds. The program is copied
# out of them, because they are not part of the image.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked --bin conclave --features "$FEATURES" \
    && install -s target/release/conclave /usr/local/bin/conclave

FROM debian:12.15-slim
RUN useradd --system --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin conclave \
    && install -d -o conclave -g conclave /app/data
WORKDIR /app
# The certificates are for the providers' TLS.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /usr/local/bin/conclave /usr/local/bin/conclave
COPY llm.config*.json ./
# A numeric user, so that `runAsNonRoot` of Kubernetes can verify that it is not root.
USER 10001:10001
# Listens on all addresses, because requests come from outside the container. Conclave refuses such
# an address unless there is a token (CONCLAVE_TOKEN, or one of `conclave token create`).
ENV CONCLAVE_BIND=0.0.0.0:8080
EXPOSE 8080
# The only folder that the service writes to. The root file system can be read-only.
VOLUME /app/data
STOPSIGNAL SIGTERM
# The image has no curl. Ready means that the database answers, every role has a model, and no
# shutdown has begun.
HEALTHCHECK --interval=30s --timeout=6s --start-period=20s --retries=3 CMD ["conclave", "health", "--ready"]
ENTRYPOINT ["conclave"]
CMD ["serve"]
# At the end, so that a new commit does not rebuild the layers above. scripts/docker-lint.sh checks
# the version.
ARG VERSION=0.1.0
ARG REVISION=""
LABEL org.opencontainers.image.title="Conclave" \
    org.opencontainers.image.description="Committee of language models behind one HTTP API" \
    org.opencontainers.image.version="$VERSION" \
    org.opencontainers.image.revision="$REVISION" \
    org.opencontainers.image.licenses="MIT OR Apache-2.0"
