-- The full-text index of memories reads `words_of`: the content with folded case, without accents, and
-- with pairs of letters for scripts without spaces. Older memories keep their words as they are.
ALTER TABLE memories ADD COLUMN words_of TEXT NOT NULL DEFAULT '';
UPDATE memories SET words_of = content;
ALTER TABLE memories DROP COLUMN words;
ALTER TABLE memories ADD COLUMN words TSVECTOR NOT NULL
    GENERATED ALWAYS AS (to_tsvector('english'::regconfig, words_of)) STORED;
CREATE INDEX memories_by_words ON memories USING GIN (words);

-- The limit on a user's stored bytes counts all guilds.
DROP INDEX memories_by_owner;
CREATE INDEX memories_by_user ON memories (source, user_id, guild_id, created_ms);
CREATE INDEX sheets_by_user ON sheets (source, user_id);
