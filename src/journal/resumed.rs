//! Counts how often processes ended at a run's current point.

use super::{Entry, Event};

/// Processes in a row that ended at the same point of a run, the later ones in a CPU-heavy piece.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deaths {
    pub count: u32,
    /// The piece in which the last of them ended.
    pub piece: Option<String>,
}

/// Counts the deaths in the journal of a run that was just claimed. Returns `None` for the first
/// claim.
///
/// The first process records no starts of pieces, since that would cost a write for each. Its end
/// counts only if the next process, which does record them, ends in a piece too.
pub(super) fn deaths(entries: &[Entry]) -> Option<Deaths> {
    let claims = entries
        .iter()
        .filter(|entry| matches!(entry.event, Event::Claimed(_)))
        .count();
    if claims < 2 {
        return None;
    }
    let since = entries
        .iter()
        .rposition(|entry| entry.event.is_progress())
        .map_or(0, |at| at + 1);
    let mut deaths = Deaths::default();
    let (before, after) = entries.split_at(since);
    let claim = |entry: &Entry| {
        if let Event::Claimed(claim) = &entry.event {
            Some(claim.owner.clone())
        } else {
            None
        }
    };
    let mut owner = before.iter().rev().find_map(claim);
    let mut last: Option<&Event> = None;
    // The entry before each claim is the last one that the previous process wrote.
    for entry in after {
        if let Some(next) = claim(entry) {
            // A process that lost its lease and claims again has not ended.
            if owner.as_ref() != Some(&next) {
                deaths = match last {
                    Some(Event::ComputeStarted(started)) => Deaths {
                        count: deaths.count.max(1) + 1,
                        piece: Some(started.piece.clone()),
                    },
                    _ => Deaths::default(),
                };
            }
            owner = Some(next);
        }
        last = Some(&entry.event);
    }
    Some(deaths)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::journal::{CallResult, CallSettled, Claimed, ComputeStarted, Hinted};

    fn count(story: &str) -> Option<u32> {
        let entries: Vec<Entry> = (1..)
            .zip(story.chars())
            .map(|(seq, letter)| {
                let event = match letter {
                    'c' => Event::Claimed(Claimed {
                        epoch: seq,
                        owner: format!("process {seq}"),
                    }),
                    'a' => Event::Claimed(Claimed {
                        epoch: seq,
                        owner: "always the same".into(),
                    }),
                    's' => Event::ComputeStarted(ComputeStarted {
                        epoch: seq,
                        number: 1,
                        piece: "score".into(),
                    }),
                    'd' => Event::CallSettled(CallSettled {
                        call: format!("call {seq}"),
                        result: CallResult::InDoubt,
                        cost: crate::domain::Usd::ZERO,
                        latency_ms: 0,
                        usage: None,
                        served: None,
                    }),
                    _ => Event::Hinted(Hinted {
                        task_types: vec![],
                        signals: vec![],
                        unseen: vec![],
                        images: 0,
                    }),
                };
                let (key, body, prev, hash) =
                    (event.key(), String::new(), String::new(), String::new());
                Entry {
                    seq,
                    at: Timestamp::UNIX_EPOCH,
                    key,
                    body,
                    prev,
                    hash,
                    event,
                }
            })
            .collect();
        deaths(&entries).map(|deaths| deaths.count)
    }

    #[test]
    fn only_processes_that_ended_in_a_piece_at_the_same_point_count() {
        assert_eq!(count("c"), None, "a first process");
        assert_eq!(
            count("cpppc"),
            Some(0),
            "an end that may have had any cause"
        );
        assert_eq!(count("cppcsc"), Some(2));
        assert_eq!(count("cppcscsc"), Some(3));
        assert_eq!(
            count("cppcdssscdsc"),
            Some(3),
            "calls in doubt are no progress"
        );
        assert_eq!(count("cppcspc"), Some(0), "progress after the piece");
        assert_eq!(count("cppcscspc"), Some(0), "progress in a later process");
        assert_eq!(count("cppcsdc"), Some(0), "an end after the piece");
        assert_eq!(count("cppcccccc"), Some(0), "restarts between pieces");
        assert_eq!(count("cppcsccsc"), Some(2), "not in a row");
        assert_eq!(
            count("appasasasa"),
            Some(0),
            "a process that loses its lease and claims again"
        );
        assert_eq!(
            count("cppcsasasc"),
            Some(3),
            "and what ended before it still counts"
        );
    }
}
