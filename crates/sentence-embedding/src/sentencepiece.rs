//! The parts of a SentencePiece model file that segmentation needs. The format:
//! <https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto>.

use prost::Message;

/// A model of the kind "unigram" with the default rules for white space.
#[derive(Clone, PartialEq, Message)]
pub struct Model {
    #[prost(message, repeated, tag = "1")]
    pub pieces: Vec<Piece>,
    #[prost(message, optional, tag = "3")]
    pub normalizer: Option<NormalizerSpec>,
}

/// An entry of the vocabulary. Its position in the list is its token.
#[derive(Clone, PartialEq, Message)]
pub struct Piece {
    #[prost(string, optional, tag = "1")]
    pub text: Option<String>,
    /// Its log probability.
    #[prost(float, optional, tag = "2")]
    pub score: Option<f32>,
    /// [`NORMAL`] if absent.
    #[prost(int32, optional, tag = "3")]
    pub kind: Option<i32>,
}

/// The kind of a piece that stands for text.
pub const NORMAL: i32 = 1;

#[derive(Clone, PartialEq, Message)]
pub struct NormalizerSpec {
    /// See [`crate::normalizer`].
    #[prost(bytes = "vec", optional, tag = "2")]
    pub charsmap: Option<Vec<u8>>,
}

pub fn parse(bytes: &[u8]) -> Result<Model, String> {
    Model::decode(bytes).map_err(|error| error.to_string())
}
