-- Actions are runs of their own kind. What commands change belongs to one user in one guild ('' is none) and outlives the
-- run that wrote it. The transcript of a scene is the messages of its actions.
ALTER TABLE runs ADD COLUMN kind TEXT NOT NULL DEFAULT 'chat';

CREATE INDEX runs_by_scene ON runs (guild_id, channel_id, id) WHERE kind = 'action';

CREATE TABLE sheets (
    source     TEXT    NOT NULL,
    guild_id   TEXT    NOT NULL,
    user_id    TEXT    NOT NULL,
    name_key   TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    sheet      TEXT    NOT NULL,
    updated_ms INTEGER NOT NULL,
    run        TEXT    NOT NULL,
    PRIMARY KEY (source, guild_id, user_id, name_key)
) STRICT;

CREATE TABLE memories (
    id         INTEGER PRIMARY KEY,
    run        TEXT    NOT NULL UNIQUE,
    source     TEXT    NOT NULL,
    guild_id   TEXT    NOT NULL,
    user_id    TEXT    NOT NULL,
    content    TEXT    NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX memories_by_owner ON memories (source, guild_id, user_id);

CREATE VIRTUAL TABLE memory_words USING fts5 (
    content, content = 'memories', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TRIGGER memories_added AFTER INSERT ON memories BEGIN
    INSERT INTO memory_words (rowid, content) VALUES (new.id, new.content);
END;

CREATE TRIGGER memories_removed AFTER DELETE ON memories BEGIN
    INSERT INTO memory_words (memory_words, rowid, content) VALUES ('delete', old.id, old.content);
END;
