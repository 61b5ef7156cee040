//! SQL statements that both databases share. Statements that differ (claims, leases, locks) are in
//! each store's module.

pub(super) const BY_KEY: &str = "SELECT id, body_hash FROM runs WHERE idempotency_key = $1";

pub(super) const INSERT_RUN: &str = "
    INSERT INTO runs (id, state, mode, source, user_id, guild_id, channel_id, message, parent, cap_nanos,
                      accepted_ms, idempotency_key, body_hash, head_seq, head_hash, kind)
    VALUES ($1, 'queued', $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0, $13, $14)";

/// The runs in flight that continue a run, with the bodies of their `accepted` entries.
pub(super) const LIVE_CONTINUATIONS: &str = "
    SELECT runs.id, entries.body FROM runs JOIN entries ON entries.run = runs.id AND entries.key = 'accepted'
    WHERE runs.parent = $1 AND runs.state IN ('queued', 'running')";

pub(super) const RUN: &str = "SELECT * FROM runs WHERE id = $1";

pub(super) const IN_FLIGHT: &str = "SELECT COUNT(*) FROM runs WHERE state IN ('queued', 'running')";

pub(super) const LAST_REPLY: &str = "
    SELECT * FROM runs
    WHERE user_id = $1 AND source = $2 AND guild_id = $3 AND channel_id = $4 AND kind = 'chat'
      AND state IN ('answered', 'clarification') AND finished_ms >= $5
    ORDER BY finished_ms DESC, id DESC LIMIT 1";

pub(super) const CANCEL: &str = "UPDATE runs SET cancel_requested = 1 WHERE id = $1";

pub(super) const ENTRIES: &str = "SELECT run, seq, at_ms, key, body, prev, hash FROM entries WHERE run = $1 AND seq > $2 ORDER BY seq";

/// Leaves out an event whose key the run already has.
pub(super) const INSERT_ENTRY: &str = "
    INSERT INTO entries (run, seq, at_ms, key, body, prev, hash) VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (run, key) DO NOTHING";

pub(super) const SET_HEAD: &str = "UPDATE runs SET head_seq = $1, head_hash = $2 WHERE id = $3";

pub(super) const ADD_SPENT: &str = "UPDATE runs SET spent_nanos = spent_nanos + $1 WHERE id = $2";

pub(super) const END: &str = "UPDATE runs SET state = $1, cause = $2, c_final = $3, finished_ms = $4, owner = NULL WHERE id = $5";

/// The spending of finished runs plus the caps of runs in flight.
pub(super) const EXPOSURE: &str = "
    SELECT CAST(COALESCE(SUM(CASE WHEN state IN ('queued', 'running') AND cap_nanos > spent_nanos THEN cap_nanos
                                  ELSE spent_nanos END), 0) AS BIGINT)
    FROM runs WHERE accepted_ms >= $1 AND ($2 IS NULL OR user_id = $2) AND ($3 IS NULL OR guild_id = $3)";

/// Keeps a sheet that is newer: a restored archive may bring an older one.
pub(super) const PUT_SHEET: &str = "
    INSERT INTO sheets (source, guild_id, user_id, name_key, name, sheet, updated_ms, run)
    SELECT source, guild_id, user_id, $2, $3, $4, $5, id FROM runs WHERE id = $1
    ON CONFLICT (source, guild_id, user_id, name_key)
    DO UPDATE SET name = excluded.name, sheet = excluded.sheet, updated_ms = excluded.updated_ms, run = excluded.run
    WHERE excluded.updated_ms >= sheets.updated_ms";

pub(super) const SHEETS: &str = "
    SELECT name, sheet, updated_ms FROM sheets WHERE source = $1 AND guild_id = $2 AND user_id = $3
    ORDER BY updated_ms DESC, run DESC";

pub(super) const PUT_MEMORY: &str = "
    INSERT INTO memories (run, source, guild_id, user_id, content, created_ms)
    SELECT id, source, guild_id, user_id, $2, $3 FROM runs WHERE id = $1
    ON CONFLICT (run) DO NOTHING";

pub(super) const MEMORY_COUNT: &str =
    "SELECT COUNT(*) FROM memories WHERE source = $1 AND guild_id = $2 AND user_id = $3";

/// Outside of guilds, a scene contains only one user's lines.
pub(super) const SCENE: &str = "
    SELECT id, user_id, message FROM runs
    WHERE kind = 'action' AND source = $1 AND guild_id = $2 AND channel_id = $3 AND ($2 <> '' OR user_id = $4)
      AND parent IS NULL
    ORDER BY id DESC LIMIT $5";

pub(super) const ADD_TOKEN: &str = "INSERT INTO tokens (id, name, scopes, hash, created_ms, expires_ms) VALUES ($1, $2, $3, $4, $5, $6)";

pub(super) const TOKEN: &str = "SELECT * FROM tokens WHERE id = $1";

pub(super) const TOKENS: &str = "SELECT * FROM tokens ORDER BY created_ms, id";

pub(super) const REVOKE_TOKEN: &str =
    "UPDATE tokens SET revoked_ms = $2 WHERE id = $1 AND revoked_ms IS NULL";

pub(super) const ARCHIVED_RUN: &str = "SELECT idempotency_key, body_hash FROM runs WHERE id = $1 AND state NOT IN ('queued', 'running')";

pub(super) const KNOWN: &str = "SELECT id FROM runs WHERE id = $1 OR idempotency_key = $2";

pub(super) const PRUNABLE: &str = "SELECT COUNT(*) FROM runs WHERE finished_ms < $1";

pub(super) const SCHEMA: &str = "SELECT MAX(version) FROM _sqlx_migrations WHERE success";
