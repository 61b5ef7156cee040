//! The table `cost` of `make bench`: the time per byte of each routine that reads text of models or
//! users, and its growth.
//!
//! Inputs are generated: each fragment and each pair of fragments, repeated, in halves, or ended by
//! another one. Each is measured once at a small size; the slowest are measured again, up to the
//! largest size that the routine gets.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a bench: a panic is its way to fail"
)]

#[path = "../fuzz/cost.rs"]
mod cost;

use std::time::Instant;

use cost::{FRAGMENTS, Measured};

/// Sizes of the search, in bytes.
const SMALL: usize = 500;
const LARGE: usize = 4 * SMALL;

/// The number of inputs that are measured again for their growth.
const CANDIDATES: usize = 200;

/// The number of inputs measured at the largest size: this many of the slowest, and of those with
/// the fastest growth.
const FINALISTS: usize = 6;

/// A text made of up to two fragments.
#[derive(Clone, Copy)]
struct Shape {
    form: Form,
    first: &'static str,
    second: &'static str,
}

#[derive(Clone, Copy)]
enum Form {
    /// Both alternate.
    Repeated,
    /// The first fragment repeated, then the second repeated.
    Halves,
    /// The first fragment repeated, then the second once.
    Ended,
}

impl Shape {
    fn text(&self, bytes: usize) -> String {
        let Self {
            form,
            first,
            second,
        } = *self;
        let times = |unit: &str, bytes: usize| unit.repeat(bytes / unit.len().max(1));
        match form {
            Form::Repeated => times(&format!("{first}{second}"), bytes),
            Form::Halves => format!("{}{}", times(first, bytes / 2), times(second, bytes / 2)),
            Form::Ended => format!(
                "{}{second}",
                times(first, bytes.saturating_sub(second.len()))
            ),
        }
    }

    fn shown(&self) -> String {
        let Self {
            form,
            first,
            second,
        } = *self;
        match form {
            Form::Repeated => format!("{:?} repeated", format!("{first}{second}")),
            Form::Halves => format!("{first:?} then {second:?}"),
            Form::Ended => format!("{first:?} ended by {second:?}"),
        }
    }
}

/// Pairs that were slow in earlier releases.
const KNOWN: [(&str, &str); 6] = [
    ("- ", "a"),
    ("> ", "a"),
    ("1. ", "a"),
    ("1=", "1"),
    ("[", "a"),
    ("- > ", "a"),
];

fn shapes() -> Vec<Shape> {
    let mut shapes: Vec<Shape> = FRAGMENTS
        .iter()
        .map(|first| Shape {
            form: Form::Repeated,
            first,
            second: "",
        })
        .collect();
    shapes.extend(KNOWN.map(|(first, second)| Shape {
        form: Form::Ended,
        first,
        second,
    }));
    for first in FRAGMENTS {
        for second in FRAGMENTS {
            let forms = [Form::Repeated, Form::Halves, Form::Ended];
            shapes.extend(forms.map(|form| Shape {
                form,
                first,
                second,
            }));
        }
    }
    shapes
}

/// Returns the processor time of this thread in nanoseconds, so that other processes do not count.
fn cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

/// Returns the least time in nanoseconds of up to three runs.
fn nanos(routine: &Measured, text: &str) -> u64 {
    least_of(3, routine, text)
}

/// Returns the least time in nanoseconds of up to this many runs.
fn least_of(runs: usize, routine: &Measured, text: &str) -> u64 {
    let mut least = u64::MAX;
    for _ in 0..runs {
        let (before, started) = (cpu(), Instant::now());
        (routine.run)(text);
        // On an idle kernel the processor time advances in ticks, so a short run is measured by the
        // clock.
        let spent = cpu().saturating_sub(before);
        let wall = u64::try_from(started.elapsed().as_nanos()).unwrap();
        least = least.min(if spent > 0 { spent.min(wall) } else { wall });
        if least > 20_000_000 {
            break;
        }
    }
    least
}

struct Row {
    worst: f64,
    worst_shape: String,
    growth: f64,
    growth_shape: String,
    seconds: f64,
}

fn row(routine: &Measured, shapes: &[Shape], step: usize) -> Row {
    let mut found: Vec<(f64, f64, &Shape)> = vec![];
    // Measures every fragment alone, and every `step`th of the pairs.
    let (alone, pairs) = shapes.split_at(FRAGMENTS.len() + KNOWN.len());
    for shape in alone.iter().chain(pairs.iter().step_by(step)) {
        let large = least_of(1, routine, &shape.text(LARGE));
        found.push((large as f64 / LARGE as f64, 0.0, shape));
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.truncate(CANDIDATES);
    for (_, growth, shape) in &mut found {
        let (small, large) = (
            nanos(routine, &shape.text(SMALL)),
            nanos(routine, &shape.text(LARGE)),
        );
        *growth = large as f64 / small.max(1) as f64;
    }
    let mut finalists: Vec<&Shape> = found
        .iter()
        .take(FINALISTS)
        .map(|(.., shape)| *shape)
        .collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    finalists.extend(found.iter().take(FINALISTS).map(|(.., shape)| *shape));
    let mut row = Row {
        worst: 0.0,
        worst_shape: String::new(),
        growth: 0.0,
        growth_shape: String::new(),
        seconds: 0.0,
    };
    for shape in finalists {
        let (quarter, whole) = (routine.max_bytes / 4, routine.max_bytes);
        let (small, large) = (
            nanos(routine, &shape.text(quarter)),
            nanos(routine, &shape.text(whole)),
        );
        let (each, growth) = (
            large as f64 / whole as f64,
            large as f64 / small.max(1) as f64,
        );
        if each > row.worst {
            (row.worst, row.worst_shape, row.seconds) = (each, shape.shown(), large as f64 / 1e9);
        }
        if growth > row.growth {
            (row.growth, row.growth_shape) = (growth, shape.shown());
        }
    }
    row
}

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let wanted = |name: &str| {
        arguments.is_empty() || arguments.iter().any(|part| name.contains(part.as_str()))
    };
    let shapes = shapes();
    let step = std::env::var("CONCLAVE_COST_STEP")
        .ok()
        .and_then(|step| step.parse().ok())
        .unwrap_or(1);
    println!(
        "\nCost of what is read: {} generated inputs a routine. Growth is the time of four times the bytes; 4 is linear.\n",
        FRAGMENTS.len() + KNOWN.len() + (shapes.len() - FRAGMENTS.len() - KNOWN.len()) / step
    );
    println!(
        "| routine | most bytes | worst ns a byte | seconds at most | its input | worst growth | its input |"
    );
    println!(
        "| ------- | ---------: | --------------: | --------------: | --------- | -----------: | --------- |"
    );
    for routine in cost::routines()
        .iter()
        .filter(|routine| wanted(routine.name))
    {
        let row = row(routine, &shapes, step);
        println!(
            "| {} | {} | {:.0} | {:.3} | {} | {:.1} | {} |",
            routine.name,
            routine.max_bytes,
            row.worst,
            row.seconds,
            row.worst_shape.replace('|', "\\|"),
            row.growth,
            row.growth_shape.replace('|', "\\|")
        );
    }
}
