# syntax=docker/dockerfile:1

# The image of the service: the program and its configs, no compiler. Run it with docker-compose.master.yml, or see
# docs/operations.md. The in-process model is left out; `docker build --build-arg FEATURES=local .` adds it.
#
# The bases are pinned to a release each, not to a digest. For a digest: docker buildx imagetools inspect NAME:TAG.

FROM rust:1.95.0-slim-bookworm AS build
ARG FEATURES=""
# Only the in-process model needs more than the C compiler of the base: cmake and a C++ compiler for llama.cpp, libclang
# for its bindings. Their versions are those of the Debian release.
# hadolint ignore=DL3008
RUN case ",$FEATURES," in *,local,*) \
        apt-get update \
        && apt-get install -y --no-install-recommends clang cmake g++ libclang-dev make \
        && rm -rf /var/lib/apt/lists/* ;; \
    esac
WORKDIR /src
COPY . .
# The caches keep the registry and the compiled dependencies between builds; the program is copied out of them.
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
# A number, so that `runAsNonRoot` of Kubernetes and the like can see that it is not root.
USER 10001:10001
# Inside a container other machines come in on all addresses. Conclave refuses that without CONCLAVE_TOKEN.
ENV CONCLAVE_BIND=0.0.0.0:8080
EXPOSE 8080
# The one folder that is written to; the root file system can be read-only.
VOLUME /app/data
STOPSIGNAL SIGTERM
# There is no curl here. Ready: the database answers, every role has a model, and no shutdown has begun.
HEALTHCHECK --interval=30s --timeout=6s --start-period=20s --retries=3 CMD ["conclave", "health", "--ready"]
ENTRYPOINT ["conclave"]
CMD ["serve"]
# At the end, so that another commit does not make the layers above anew. scripts/docker-lint.sh compares the version.
ARG VERSION=0.1.0
ARG REVISION=""
LABEL org.opencontainers.image.title="Conclave" \
    org.opencontainers.image.description="Committee of language models behind one HTTP API" \
    org.opencontainers.image.version="$VERSION" \
    org.opencontainers.image.revision="$REVISION" \
    org.opencontainers.image.licenses="MIT OR Apache-2.0"
