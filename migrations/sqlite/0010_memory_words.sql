-- The full-text index of memories reads `words_of`: the content with folded case, without accents, and
-- with pairs of letters for scripts without spaces. Older memories keep their words as they are.
ALTER TABLE memories ADD COLUMN words_of TEXT NOT NULL DEFAULT '';
UPDATE memories SET words_of = content;

DROP TRIGGER memories_added;
DROP TRIGGER memories_removed;
DROP TABLE memory_words;

CREATE VIRTUAL TABLE memory_words USING fts5 (
    owner, words_of, content = 'memories', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
);

INSERT INTO memory_words (memory_words) VALUES ('rebuild');

CREATE TRIGGER memories_added AFTER INSERT ON memories BEGIN
    INSERT INTO memory_words (rowid, owner, words_of) VALUES (new.id, new.owner, new.words_of);
END;

CREATE TRIGGER memories_removed AFTER DELETE ON memories BEGIN
    INSERT INTO memory_words (memory_words, rowid, owner, words_of) VALUES ('delete', old.id, old.owner, old.words_of);
END;

-- The limit on a user's stored bytes counts all guilds.
DROP INDEX memories_by_owner;
CREATE INDEX memories_by_user ON memories (source, user_id, guild_id, created_ms);
CREATE INDEX sheets_by_user ON sheets (source, user_id);
