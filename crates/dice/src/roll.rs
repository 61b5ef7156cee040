//! Rolls an expression with the caller's random source, and reports every die.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::number::{self, shown, whole};
use crate::{
    Again, Dice, Expression, Kind, MAX_DICE, Named, Node, Number, Operation, Selector, Set, Sides,
};

/// Maximum absolute value of a total. Many readers of JSON have doubles, which are not exact beyond
/// it.
const MAX_TOTAL: i64 = 9_000_000_000_000_000;

/// Maximum number of dice that the texts of one call list.
const DICE_IN_TEXT: usize = 100;

/// The result of a roll.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rolled {
    /// The total, rounded towards zero.
    pub total: i64,
    /// The dice of each dice term, in the order of the expression.
    pub dice: Vec<Group>,
    /// The expression with its dice: `4d6kh3 (6, 5, 4, ~~1~~) + 2 = 17`.
    pub text: String,
}

/// The dice of one dice term.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// The term as written: `4d6kh3`.
    pub expression: String,
    pub rolls: Vec<Die>,
}

/// One die.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Die {
    /// The final value.
    #[serde(serialize_with = "plain")]
    pub value: Number,
    /// True if the value counts towards the total.
    pub kept: bool,
    /// The earlier values, before rerolls, `mi`, `ma` or compound explosions.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "all_plain")]
    pub before: Vec<Number>,
    /// True if the die caused a further roll by an explosion or `ra`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub exploded: bool,
    /// True if `cs` or `cf` marked the die.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub marked: bool,
}

fn plain<S: Serializer>(value: &Number, serializer: S) -> Result<S::Ok, S::Error> {
    in_json(value).serialize(serializer)
}

fn all_plain<S: Serializer>(values: &[Number], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(in_json))
}

/// Returns a whole number as an integer.
fn in_json(value: &Number) -> Value {
    match i64::try_from(value.to_integer()) {
        Ok(number) if value.is_integer() => json!(number),
        _ => json!(*value.numer() as f64 / *value.denom() as f64),
    }
}

impl Die {
    fn new(value: Number) -> Self {
        Self {
            value,
            kept: true,
            before: vec![],
            exploded: false,
            marked: false,
        }
    }

    fn becomes(&mut self, value: Number) {
        self.before.push(std::mem::replace(&mut self.value, value));
    }
}

/// The most rounds of explosions of one term. Each round looks at all of its dice.
const MAX_EXPLOSIONS: usize = 1000;

/// The reason why an expression cannot be rolled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RollError {
    #[error("a division by zero")]
    DivisionByZero,
    #[error("these dice would be rolled without an end")]
    Endless,
    #[error("more than {MAX_DICE} dice would be rolled")]
    TooManyDice,
    #[error("the total or a part of it is too large to be counted exactly")]
    TooLarge,
}

impl Expression {
    /// Rolls the expression several times. `die` receives the number of sides and returns a face from
    /// 1 to that number. A Fate die is rolled with 3 sides, or with 6 for `dF.1`. The limits on dice
    /// rolled and dice listed in texts apply to all repetitions together.
    ///
    /// # Errors
    /// If a divisor is zero, dice explode without an end, more than [`MAX_DICE`] dice are rolled, or
    /// the total or a part of it is too large.
    pub fn roll_times(
        &self,
        times: u32,
        die: &mut dyn FnMut(i64) -> i64,
    ) -> Result<Vec<Rolled>, RollError> {
        let mut table = Roller::new(die);
        (0..times).map(|_| self.at(&mut table)).collect()
    }

    fn at(&self, table: &mut Roller<'_>) -> Result<Rolled, RollError> {
        let (value, text) = table.value(&self.root)?;
        let total = i64::try_from(value.to_integer()).unwrap_or(i64::MAX);
        if total.unsigned_abs() > MAX_TOTAL.unsigned_abs() {
            return Err(RollError::TooLarge);
        }
        let text = format!("{text} = {total}");
        Ok(Rolled {
            total,
            dice: std::mem::take(&mut table.groups),
            text,
        })
    }
}

fn sum(dice: &[Die]) -> Result<Number, RollError> {
    let kept = dice.iter().filter(|die| die.kept);
    number::sum(kept.map(|die| die.value))
}

/// Keeps only the selected dice, or drops them.
fn keep_or_drop(dice: &mut [Die], operation: &Operation) {
    let chosen = selected(dice, &operation.selectors);
    let keeps = operation.kind == Kind::Keep;
    for (index, die) in dice.iter_mut().enumerate() {
        die.kept &= chosen.binary_search(&index).is_ok() == keeps;
    }
}

/// Returns the indices of the kept dice that any selector selects, in ascending order.
fn selected(dice: &[Die], selectors: &[Selector]) -> Vec<usize> {
    let mut kept: Vec<(usize, Number)> = dice
        .iter()
        .enumerate()
        .filter(|(_, die)| die.kept)
        .map(|(index, die)| (index, die.value))
        .collect();
    let mut chosen: Vec<usize> = vec![];
    for selector in selectors {
        match selector {
            Selector::Highest(most) => {
                kept.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
                chosen.extend(kept.iter().take(*most).map(|(index, _)| *index));
            }
            Selector::Lowest(most) => {
                kept.sort_by(|a, b| a.1.cmp(&b.1).then(a.0.cmp(&b.0)));
                chosen.extend(kept.iter().take(*most).map(|(index, _)| *index));
            }
            valued => {
                let taken = kept.iter().filter(|(_, value)| valued.takes(*value));
                chosen.extend(taken.map(|(index, _)| *index));
            }
        }
    }
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

struct Roller<'a> {
    die: &'a mut dyn FnMut(i64) -> i64,
    rolled_dice: usize,
    groups: Vec<Group>,
    /// The number of dice that the texts list so far.
    written: usize,
}

impl<'a> Roller<'a> {
    fn new(die: &'a mut dyn FnMut(i64) -> i64) -> Self {
        Self {
            die,
            rolled_dice: 0,
            groups: vec![],
            written: 0,
        }
    }

    fn throw(&mut self, sides: Sides) -> Result<Number, RollError> {
        self.rolled_dice += 1;
        if self.rolled_dice > MAX_DICE {
            return Err(RollError::TooManyDice);
        }
        let face = match sides {
            Sides::Number(sides) => (self.die)(sides),
            Sides::Fate => (self.die)(3) - 2,
            Sides::BlankFate => match (self.die)(6) {
                1 => -1,
                6 => 1,
                _ => 0,
            },
        };
        Ok(whole(face))
    }

    /// Rolls a part and returns its value and its text.
    fn value(&mut self, node: &Node) -> Result<(Number, String), RollError> {
        Ok(match node {
            Node::Number(number) => (*number, shown(*number)),
            Node::Labelled(inner, label) => {
                let (value, text) = self.value(inner)?;
                (value, format!("{text} [{label}]"))
            }
            Node::Negative(inner) => {
                let (value, text) = self.value(inner)?;
                let sign = if text == "0" { "" } else { "-" };
                (-value, format!("{sign}{text}"))
            }
            Node::Binary(left, Named(sign, result), right) => {
                let (left, before) = self.value(left)?;
                let (right, after) = self.value(right)?;
                let value = result(left, right)?;
                (value, format!("{before} {sign} {after}"))
            }
            Node::Call(Named(name, result), arguments) => {
                let parts = arguments.iter().map(|node| self.value(node));
                let parts = parts.collect::<Result<Vec<_>, _>>()?;
                let (values, texts): (Vec<Number>, Vec<String>) = parts.into_iter().unzip();
                (result(&values), format!("{name}{})", texts.join(", ")))
            }
            Node::Set(set) => self.set(set)?,
            Node::Dice(dice) => self.dice(dice)?,
        })
    }

    fn set(&mut self, set: &Set) -> Result<(Number, String), RollError> {
        let (mut dice, mut texts, mut places) = (vec![], vec![], vec![]);
        for item in &set.items {
            let from = self.groups.len();
            let (value, text) = self.value(item)?;
            dice.push(Die::new(value));
            texts.push(text);
            places.push(from..self.groups.len());
        }
        for operation in &set.operations {
            keep_or_drop(&mut dice, operation);
        }
        for ((die, text), place) in dice.iter().zip(&mut texts).zip(places) {
            if !die.kept {
                *text = format!("~~{}~~", text.replace("~~", ""));
                let dropped = self.groups.get_mut(place).unwrap_or_default();
                dropped
                    .iter_mut()
                    .flat_map(|group| &mut group.rolls)
                    .for_each(|die| die.kept = false);
            }
        }
        Ok((sum(&dice)?, format!("({})", texts.join(", "))))
    }

    fn dice(&mut self, dice: &Dice) -> Result<(Number, String), RollError> {
        let mut rolls = Vec::with_capacity(dice.count as usize);
        for _ in 0..dice.count {
            rolls.push(Die::new(self.throw(dice.sides)?));
        }
        for operation in &dice.operations {
            self.operate(&mut rolls, operation, dice.sides)?;
        }
        let text = format!("{} ({})", dice.text, self.written(&rolls));
        let value = sum(&rolls)?;
        self.groups.push(Group {
            expression: dice.text.clone(),
            rolls,
        });
        Ok((value, text))
    }

    fn operate(
        &mut self,
        rolls: &mut Vec<Die>,
        operation: &Operation,
        sides: Sides,
    ) -> Result<(), RollError> {
        let selectors = &operation.selectors;
        match operation.kind {
            Kind::Keep | Kind::Drop => keep_or_drop(rolls, operation),
            Kind::Reroll(again) => loop {
                let chosen = selected(rolls, selectors);
                for index in &chosen {
                    let value = self.throw(sides)?;
                    if let Some(die) = rolls.get_mut(*index) {
                        die.becomes(value);
                    }
                }
                if chosen.is_empty() || again == Again::Once {
                    break;
                }
            },
            Kind::Add => {
                let chosen = selected(rolls, selectors);
                if let Some(die) = chosen.first().and_then(|index| rolls.get_mut(*index)) {
                    die.exploded = true;
                    rolls.push(Die::new(self.throw(sides)?));
                }
            }
            Kind::Explode => self.explode(rolls, selectors, sides)?,
            Kind::Compound | Kind::Penetrate => self.explode_in_place(rolls, operation, sides)?,
            Kind::AtLeast(least) => {
                let low = rolls.iter_mut().filter(|die| die.kept && die.value < least);
                low.for_each(|die| die.becomes(least));
            }
            Kind::AtMost(most) => {
                let high = rolls.iter_mut().filter(|die| die.kept && die.value > most);
                high.for_each(|die| die.becomes(most));
            }
            Kind::Unique(again) => self.unique(rolls, again, sides)?,
            Kind::SortUp => rolls.sort_by_key(|die| die.value),
            Kind::SortDown => rolls.sort_by_key(|die| Reverse(die.value)),
            Kind::Mark => {
                for index in selected(rolls, selectors) {
                    if let Some(die) = rolls.get_mut(index) {
                        die.marked = true;
                    }
                }
            }
        }
        Ok(())
    }

    fn explode(
        &mut self,
        rolls: &mut Vec<Die>,
        selectors: &[Selector],
        sides: Sides,
    ) -> Result<(), RollError> {
        for _ in 0..MAX_EXPLOSIONS {
            let before = rolls.len();
            for index in selected(rolls, selectors) {
                if let Some(die) = rolls.get_mut(index).filter(|die| !die.exploded) {
                    die.exploded = true;
                    rolls.push(Die::new(self.throw(sides)?));
                }
            }
            if rolls.len() == before {
                return Ok(());
            }
        }
        Err(RollError::Endless)
    }

    /// Explodes the selected dice one by one. Compound explosions add each further roll to the die.
    /// Penetrating ones insert a die with the roll minus one after it.
    fn explode_in_place(
        &mut self,
        rolls: &mut Vec<Die>,
        operation: &Operation,
        sides: Sides,
    ) -> Result<(), RollError> {
        let selectors = &operation.selectors;
        let first = selected(rolls, selectors);
        let mut done = vec![];
        for (index, mut die) in std::mem::take(rolls).into_iter().enumerate() {
            let mut bursts = first.binary_search(&index).is_ok();
            let mut further = vec![];
            while bursts {
                let face = self.throw(sides)?;
                die.exploded = true;
                if operation.kind == Kind::Compound {
                    die.becomes(number::add(die.value, face)?);
                } else {
                    further.push(Die::new(face - 1));
                }
                bursts = selectors.iter().any(|it| it.takes(face));
            }
            done.push(die);
            done.extend(further);
        }
        *rolls = done;
        Ok(())
    }

    /// Rerolls each kept die whose value an earlier kept die already shows.
    fn unique(&mut self, rolls: &mut [Die], again: Again, sides: Sides) -> Result<(), RollError> {
        let mut seen = BTreeSet::new();
        for die in rolls.iter_mut().filter(|die| die.kept) {
            let mut first = true;
            while (first || again == Again::UntilNot) && seen.contains(&die.value) {
                let value = self.throw(sides)?;
                die.becomes(value);
                first = false;
            }
            seen.insert(die.value);
        }
        Ok(())
    }

    /// Formats the dice for the text: dropped ones struck out, exploded ones with `!`, marked ones
    /// with `*`.
    fn written(&mut self, rolls: &[Die]) -> String {
        let room = DICE_IN_TEXT.saturating_sub(self.written);
        self.written += rolls.len().min(room);
        let mut texts: Vec<String> = rolls.iter().take(room).map(in_text).collect();
        if rolls.len() > room {
            texts.push(format!("... {} more", rolls.len() - room));
        }
        texts.join(", ")
    }
}

fn in_text(die: &Die) -> String {
    let before = die.before.iter().map(|before| shown(*before) + ">");
    let before: String = before.collect();
    let exploded = if die.exploded { "!" } else { "" };
    let marked = if die.marked { "*" } else { "" };
    let struck = if die.kept { "" } else { "~~" };
    let value = shown(die.value);
    format!("{struck}{before}{value}{exploded}{marked}{struck}")
}
