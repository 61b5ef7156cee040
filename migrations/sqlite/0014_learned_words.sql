-- The full-text index of learned answers reads `words_of`: the question with folded case, without
-- accents, and with pairs of letters for scripts without spaces. Older ones keep their words as they are.
ALTER TABLE learned_answers ADD COLUMN words_of TEXT NOT NULL DEFAULT '';
UPDATE learned_answers SET words_of = content;

DROP TRIGGER learned_added;
DROP TRIGGER learned_removed;
DROP TABLE learned_words;

CREATE VIRTUAL TABLE learned_words USING fts5 (
    owner, words_of, content = 'learned_answers', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
);

INSERT INTO learned_words (learned_words) VALUES ('rebuild');

CREATE TRIGGER learned_added AFTER INSERT ON learned_answers BEGIN
    INSERT INTO learned_words (rowid, owner, words_of) VALUES (new.id, new.owner, new.words_of);
END;

CREATE TRIGGER learned_removed AFTER DELETE ON learned_answers BEGIN
    INSERT INTO learned_words (learned_words, rowid, owner, words_of) VALUES ('delete', old.id, old.owner, old.words_of);
END;
