-- The search tables kept the words of deleted rows until they were merged. From now on a deletion removes
-- them at once, and what earlier deletions left is dropped.

INSERT INTO memory_words (memory_words, rank) VALUES ('secure-delete', 1);
INSERT INTO memory_words (memory_words) VALUES ('rebuild');
INSERT INTO learned_words (learned_words, rank) VALUES ('secure-delete', 1);
INSERT INTO learned_words (learned_words) VALUES ('rebuild');
