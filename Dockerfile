# syntax=docker/dockerfile:1

# The image of the service: the binary and its configs, no compiler, no shell tools beyond the base.
# Run it with docker-compose.master.yml, or see docs/operations.md.

FROM rust:1-bookworm AS build
# llama.cpp is compiled by cmake; its bindings are made with libclang.
RUN apt-get update \
    && apt-get install -y --no-install-recommends cmake clang libclang-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
# The caches keep the registry and the compiled dependencies between builds; what is to stay is copied out of them.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked --bin conclave \
    && cp target/release/conclave /usr/local/bin/conclave

FROM debian:bookworm-slim
# The certificates are for the providers' TLS; libstdc++ is what the in-process model links to.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates libstdc++6 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin conclave \
    && install -d -o conclave -g conclave /app/data
WORKDIR /app
COPY --from=build /usr/local/bin/conclave /usr/local/bin/conclave
COPY llm.config.json llm.config.local.json ./
# By number, so that `runAsNonRoot` and the like can see that it is not root.
USER 10001:10001
# Inside a container loopback is nobody's: listen everywhere. Conclave refuses that without CONCLAVE_TOKEN.
ENV CONCLAVE_BIND=0.0.0.0:8080
EXPOSE 8080
# The one folder that is written to; the root file system can be read-only.
VOLUME /app/data
STOPSIGNAL SIGTERM
# The binary asks its own /health: there is no curl here.
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 CMD ["conclave", "health"]
ENTRYPOINT ["conclave"]
CMD ["serve"]
