-- What users have deleted of their sheets and memories, without its content, so that an imported run does
-- not bring it back. A record is the run of a memory, or the hash of a sheet's name.

CREATE TABLE deleted_records (
    source     TEXT    NOT NULL,
    guild_id   TEXT    NOT NULL,
    user_id    TEXT    NOT NULL,
    record     TEXT    NOT NULL,
    deleted_ms INTEGER NOT NULL,
    PRIMARY KEY (source, guild_id, user_id, record)
) STRICT;
