-- Learned answers: the projection of the `learned` events. `user_id` is '' in a guild, whose members share an answer.
CREATE TABLE learned_answers (
    id          INTEGER PRIMARY KEY,
    run         TEXT    NOT NULL UNIQUE REFERENCES runs (id) ON DELETE CASCADE,
    source      TEXT    NOT NULL,
    guild_id    TEXT    NOT NULL,
    user_id     TEXT    NOT NULL,
    content     TEXT    NOT NULL,
    answer      TEXT    NOT NULL,
    confidence  REAL    NOT NULL,
    revoked     INTEGER NOT NULL,
    learned_ms  INTEGER NOT NULL,
    changed_ms  INTEGER NOT NULL,
    owner       TEXT    GENERATED ALWAYS AS (hex(source || char(31) || guild_id || char(31) || user_id)) VIRTUAL
) STRICT;

CREATE VIRTUAL TABLE learned_words USING fts5 (
    owner, content, content = 'learned_answers', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TRIGGER learned_added AFTER INSERT ON learned_answers BEGIN
    INSERT INTO learned_words (rowid, owner, content) VALUES (new.id, new.owner, new.content);
END;

CREATE TRIGGER learned_removed AFTER DELETE ON learned_answers BEGIN
    INSERT INTO learned_words (learned_words, rowid, owner, content) VALUES ('delete', old.id, old.owner, old.content);
END;
