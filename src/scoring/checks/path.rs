//! Finds the stated equations that lead to the final answer. Other equations earn nothing, because
//! "2 + 2 = 4" proves no answer.

use crate::scoring::expr::{Equation, Recomputed};

/// The result of recomputing the stated equations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::scoring) struct Path {
    /// Equations on the way to the answer that hold.
    pub right: usize,
    /// Equations on the way to the answer that do not hold.
    pub wrong: usize,
    /// False equations elsewhere.
    pub unconnected: usize,
    /// True if the equation that states the answer itself holds; `None` without one.
    pub last: Option<bool>,
}

impl Path {
    /// Returns 1 if the answer's own last step holds and no step before it fails, -1 if one fails,
    /// and 0 if none is stated.
    pub fn verdict(&self) -> f64 {
        match self.last {
            _ if self.wrong > 0 => -1.0,
            Some(true) => 1.0,
            Some(false) => -1.0,
            None => 0.0,
        }
    }
}

/// Follows the equations back from the answer to its inputs. Without a number as the answer, no
/// equation leads to it. Unclear equations count for nothing.
pub(in crate::scoring) fn path_to(answer: Option<f64>, equations: &[Equation]) -> Path {
    let mut needed: Vec<f64> = answer.into_iter().collect();
    let mut out = Path::default();
    let clear = equations
        .iter()
        .filter(|it| it.recomputed != Recomputed::Unclear);
    for step in clear.rev() {
        let holds = step.recomputed == Recomputed::Right;
        let Some(at) = needed.iter().position(|value| near(*value, step.stated)) else {
            out.unconnected += usize::from(!holds);
            continue;
        };
        if at == 0 {
            out.last.get_or_insert(holds);
        }
        out.right += usize::from(holds);
        out.wrong += usize::from(!holds);
        for value in &step.operands {
            if !needed.iter().any(|known| near(*known, *value)) {
                needed.push(*value);
            }
        }
    }
    out
}

/// True if two values are equal, also after rounding to a whole number or to two decimals.
fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 0.005_f64.max(1e-12 * a.abs().max(b.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_steps_on_the_way_to_the_answer_count() {
        let step = |operands: &[f64], stated, holds| Equation {
            operands: operands.to_vec(),
            stated,
            recomputed: if holds {
                Recomputed::Right
            } else {
                Recomputed::Wrong
            },
        };
        let steps = [
            step(&[2.0, 2.0], 4.0, true),
            step(&[48.0, 0.15], 7.2, true),
            step(&[1.0, 1.0], 3.0, false),
            step(&[48.0, 7.2], 55.2, true),
        ];
        let found = |answer| {
            let path = path_to(answer, &steps);
            (path.right, path.wrong, path.unconnected, path.last)
        };
        assert_eq!(found(Some(55.2)), (2, 0, 1, Some(true)));
        assert_eq!(found(Some(9.0)), (0, 0, 1, None));
        assert_eq!(found(None), (0, 0, 1, None));
        let path = path_to(Some(244.8), &[step(&[204.0, 1.19], 244.8, false)]);
        assert_eq!((path.last, path.verdict()), (Some(false), -1.0));
    }
}
