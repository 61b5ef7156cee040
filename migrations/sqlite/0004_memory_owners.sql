-- The index of words knows whose a memory is, so that a search reads no more than its user's own. An owner is one word of
-- letters and digits, whatever the names in it are made of.
ALTER TABLE memories ADD COLUMN owner TEXT
    GENERATED ALWAYS AS (hex(source || char(31) || guild_id || char(31) || user_id)) VIRTUAL;

DROP TRIGGER memories_added;
DROP TRIGGER memories_removed;
DROP TABLE memory_words;

CREATE VIRTUAL TABLE memory_words USING fts5 (
    owner, content, content = 'memories', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
);

INSERT INTO memory_words (memory_words) VALUES ('rebuild');

CREATE TRIGGER memories_added AFTER INSERT ON memories BEGIN
    INSERT INTO memory_words (rowid, owner, content) VALUES (new.id, new.owner, new.content);
END;

CREATE TRIGGER memories_removed AFTER DELETE ON memories BEGIN
    INSERT INTO memory_words (memory_words, rowid, owner, content) VALUES ('delete', old.id, old.owner, old.content);
END;
