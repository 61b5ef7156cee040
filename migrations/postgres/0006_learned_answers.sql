-- Learned answers: the projection of the `learned` events. `user_id` is '' in a guild, whose members share an answer.
CREATE TABLE learned_answers (
    run         TEXT COLLATE "C" PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    source      TEXT             NOT NULL,
    guild_id    TEXT             NOT NULL,
    user_id     TEXT             NOT NULL,
    content     TEXT             NOT NULL,
    answer      TEXT             NOT NULL,
    confidence  DOUBLE PRECISION NOT NULL,
    revoked     BIGINT           NOT NULL,
    learned_ms  BIGINT           NOT NULL,
    changed_ms  BIGINT           NOT NULL,
    words       TSVECTOR         NOT NULL GENERATED ALWAYS AS (to_tsvector('english'::regconfig, content)) STORED
);

CREATE INDEX learned_by_owner ON learned_answers (source, guild_id, user_id);
CREATE INDEX learned_by_words ON learned_answers USING GIN (words);
