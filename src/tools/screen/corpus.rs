//! The screen against sentences that were labelled by others than the author of its patterns.

use super::screen;

/// The least share of rejected sentences that are labelled bad, and of bad ones that are rejected.
const MIN_PRECISION: f64 = 0.9;
const MIN_RECALL: f64 = 0.7;

#[test]
fn labelled_sentences_are_told_apart() {
    let corpus = include_str!("../../../tests/fixtures/explanations.tsv");
    for set in ["seen", "unseen"] {
        let (mut caught, mut missed, mut wronged, mut good) = (0.0, 0.0, 0.0, 0.0);
        for line in corpus.lines().skip(1) {
            let columns: Vec<&str> = line.split('\t').collect();
            let [own, label, _, text] = columns[..] else {
                panic!("{line}");
            };
            if own != set {
                continue;
            }
            match (label, screen(text, &[], &[]).is_empty()) {
                ("bad", false) => caught += 1.0,
                ("bad", true) => missed += 1.0,
                (_, false) => wronged += 1.0,
                (_, true) => good += 1.0,
            }
        }
        let precision = caught / (caught + wronged);
        let recall = caught / (caught + missed);
        println!(
            "{set}: {} sentences, precision {precision:.3}, recall {recall:.3}",
            caught + missed + wronged + good
        );
        assert!(precision >= MIN_PRECISION && recall >= MIN_RECALL, "{set}");
    }
}
