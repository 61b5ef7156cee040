-- Lists of runs, newest first, for each filter. Ids are in the order of time.
CREATE INDEX runs_by_user ON runs (user_id, id);
CREATE INDEX runs_by_kind ON runs (kind, id);
CREATE INDEX runs_by_kind_and_state ON runs (kind, state, id);
CREATE INDEX runs_by_mode ON runs (kind, mode, id);
CREATE INDEX runs_by_mode_and_state ON runs (kind, mode, state, id);
