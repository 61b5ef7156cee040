//! What a parser says about a code block.

/// The verdict on a code block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::scoring) enum Soundness {
    /// Its language's parser accepts it.
    Parsed,
    /// Its language's parser rejects it.
    Broken,
    /// No verdict: there is no parser, or the block is a fragment, program output or empty.
    Unknown,
    /// No verdict, and it used up the steps for a block.
    Costly,
}
