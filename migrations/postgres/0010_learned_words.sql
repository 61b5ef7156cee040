-- The full-text index of learned answers reads `words_of`: the question with folded case, without
-- accents, and with pairs of letters for scripts without spaces. Older ones keep their words as they are.
ALTER TABLE learned_answers ADD COLUMN words_of TEXT NOT NULL DEFAULT '';
UPDATE learned_answers SET words_of = content;
ALTER TABLE learned_answers DROP COLUMN words;
ALTER TABLE learned_answers ADD COLUMN words TSVECTOR NOT NULL
    GENERATED ALWAYS AS (to_tsvector('english'::regconfig, words_of)) STORED;
CREATE INDEX learned_by_words ON learned_answers USING GIN (words);
