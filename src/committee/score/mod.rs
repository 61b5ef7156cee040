//! The scoring engine: deterministic, no I/O. See SPEC 5 and 13.1.
