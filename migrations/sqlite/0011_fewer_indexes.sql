-- A run is in fewer indexes, and in some of them only while it is in flight or once it has ended.
DROP INDEX runs_by_kind;
DROP INDEX runs_by_kind_and_state;

DROP INDEX runs_by_state;
CREATE INDEX runs_by_state ON runs (state, accepted_ms) WHERE state = 'queued' OR state = 'running';

DROP INDEX runs_by_asker;
CREATE INDEX runs_by_asker ON runs (user_id, source, guild_id, channel_id, finished_ms) WHERE finished_ms IS NOT NULL;

DROP INDEX runs_by_end;
CREATE INDEX runs_by_end ON runs (finished_ms) WHERE finished_ms IS NOT NULL;

DROP INDEX runs_by_guild_and_time;
CREATE INDEX runs_by_guild_and_time ON runs (guild_id, accepted_ms) WHERE guild_id <> '';
