-- The last reply to someone in a place is read from the end of an index, not sorted from all of them.
DROP INDEX runs_by_asker;
CREATE INDEX runs_by_asker ON runs (user_id, source, guild_id, channel_id, finished_ms);
