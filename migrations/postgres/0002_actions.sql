-- Actions are runs of their own kind. What commands change belongs to one user in one guild ('' is none) and outlives the
-- run that wrote it. The transcript of a scene is the messages of its actions.
ALTER TABLE runs ADD COLUMN kind TEXT NOT NULL DEFAULT 'chat';

CREATE INDEX runs_by_scene ON runs (guild_id, channel_id, id) WHERE kind = 'action';

CREATE TABLE sheets (
    source     TEXT             NOT NULL,
    guild_id   TEXT             NOT NULL,
    user_id    TEXT             NOT NULL,
    name_key   TEXT COLLATE "C" NOT NULL,
    name       TEXT             NOT NULL,
    sheet      TEXT             NOT NULL,
    updated_ms BIGINT           NOT NULL,
    run        TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (source, guild_id, user_id, name_key)
);

CREATE TABLE memories (
    run        TEXT COLLATE "C" PRIMARY KEY,
    source     TEXT     NOT NULL,
    guild_id   TEXT     NOT NULL,
    user_id    TEXT     NOT NULL,
    content    TEXT     NOT NULL,
    created_ms BIGINT   NOT NULL,
    words      TSVECTOR NOT NULL GENERATED ALWAYS AS (to_tsvector('english'::regconfig, content)) STORED
);

CREATE INDEX memories_by_owner ON memories (source, guild_id, user_id);
CREATE INDEX memories_by_words ON memories USING GIN (words);
