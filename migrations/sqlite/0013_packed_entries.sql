-- The bodies of entries that are written together are stored once, compressed, in the last of their rows.
-- The other rows, and this one, have an empty body. An empty prev stands for the hash of the entry before.

ALTER TABLE entries ADD COLUMN packed BLOB;
