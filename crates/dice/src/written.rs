//! Translates dice as players write them to the grammar of [`Expression`].
//!
//! ```text
//! written = { edge } [ times ( "#" | "x" ) ] rolled { edge | "x" times } [ ( "#" | "\" ) comment | words ]
//! rolled  = comparison | "[[" comparison "]]" | "repeat(" comparison "," times ")"
//! dice    = [ count ] "d" sides { operation } { " " operation | edge }
//! edge    = [ "with" | "at" | "on" ] ( "adv" | "advantage" | "dis" | "disadv" | "disadvantage" )
//! ```
//!
//! Alone, `k3` keeps the three highest dice. After a space `d1` drops the lowest, as in the bots that
//! write it so. After a sum, an operation applies to its dice if there is one term of dice:
//! `5d6+2 k4`. What bots read differently is an error that names the ways to say it.

use std::ops::Range;

use crate::reader::{Extras, Place, Reader, Result, Term};
use crate::{COMPARISONS, Expression, Kind, Node, ParseError, Sides};

/// Dice as a player wrote them.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// The number of repetitions. [`crate::MAX_TIMES`] is not enforced.
    pub times: Option<u32>,
    /// The dice, without a comment.
    pub expression: Expression,
    /// The text after `#`, trimmed and not empty.
    pub comment: Option<String>,
    /// The words after the dice that are no notation, trimmed.
    pub words: String,
    /// Says that the first of `words` was not expected.
    unexpected: Option<ParseError>,
}

impl Written {
    /// Returns the dice if all of the text is notation.
    ///
    /// # Errors
    /// If words are left.
    pub fn complete(self) -> Result<Self> {
        match self.unexpected {
            Some(error) => Err(error),
            None => Ok(self),
        }
    }
}

/// Reads dice as players write them.
///
/// # Errors
/// - If the text does not begin with dice or numbers.
/// - If what they are translated to is not a valid [`Expression`].
/// - If an advantage has no d20, or more than one, to apply to.
pub fn written(text: &str, place: Place) -> Result<Written> {
    let mut reader = Reader::of(text)?;
    reader.extras = Some(Extras {
        place,
        edits: vec![],
        dice: vec![],
        edge: None,
    });
    reader.spaces();
    while reader.edge()? {
        reader.spaces();
    }
    if reader.begins_with_a_sign() {
        let detail = "bots differ in what a sign before dice means: an advantage is d20 adv, a disadvantage d20 dis";
        return Err(reader.wrong(detail));
    }
    let times = reader.times_before();
    let (part, repeated) = reader.rolled()?;
    if reader.explodes_or_repeats() {
        let detail =
            "bots differ in what x means here: exploding dice are 5d10!, several rolls are 10#5d10";
        return Err(reader.wrong(detail));
    }
    let times = times_of(&mut reader, times, repeated)?;
    reader.full_stop();
    let unexpected = reader.ambiguous().or_else(|| reader.unexpected());
    if reader.is_within_a_word() {
        return Err(unexpected.unwrap_or_else(|| reader.wrong("dice end here")));
    }
    let rest = reader.rest().trim().to_owned();
    let expression = Expression::parse(&reader.translated(part)?)?;
    let comment = rest
        .strip_prefix(['#', '\\'])
        .map(|comment| comment.trim().to_owned());
    // "6#six" could be a number with a comment.
    if !expression.has_dice() && (times.is_some() || comment.is_some()) {
        return Err(reader.wrong("there are no dice here"));
    }
    let mut further = comment.iter().flat_map(|text| text.split(';').skip(1));
    if further.any(|text| written(text, place).is_ok_and(|it| it.expression.has_dice())) {
        return Err(reader.wrong("these are several rolls: send them one by one"));
    }
    if let Some(detail) = ambiguous_comparison(&expression) {
        return Err(reader.wrong(detail));
    }
    Ok(Written {
        times,
        expression,
        words: if comment.is_some() {
            String::new()
        } else {
            rest
        },
        unexpected: unexpected.filter(|_| comment.is_none()),
        comment: comment.filter(|comment| !comment.is_empty()),
    })
}

/// Reads what follows the dice, and returns how many times they are rolled, if it is said: before the
/// dice (`times`), in them (`repeated`) or after them.
fn times_of(
    reader: &mut Reader,
    mut times: Option<u32>,
    mut repeated: Option<u32>,
) -> Result<Option<u32>> {
    loop {
        match repeated.take().or_else(|| reader.times_after()) {
            Some(_) if times.is_some() => {
                return Err(reader.wrong("how many times is said twice"));
            }
            Some(number) => times = Some(number),
            None if reader.edge()? || reader.operation_after() => {}
            None => return Ok(times),
        }
        reader.spaces();
    }
}

/// Says how `5d10>=7` is read: some bots compare the total, others count the dice. `3d6!=6` explodes in
/// some.
fn ambiguous_comparison(expression: &Expression) -> Option<String> {
    let Node::Binary(left, operator, _) = &expression.root else {
        return None;
    };
    let Node::Dice(dice) = &**left else {
        return None;
    };
    let mut kinds = dice.operations.iter().map(|operation| operation.kind);
    let reduces = kinds.any(|kind| matches!(kind, Kind::Keep | Kind::Drop));
    if dice.count < 2 || reduces || !COMPARISONS.contains(operator) {
        return None;
    }
    let (whole, dice) = (expression.text(), &dice.text);
    let compared = whole.strip_prefix(dice.as_str())?;
    let other = match compared.strip_prefix("!=") {
        Some(faces) => format!("exploding dice are {dice}e{}", faces.trim()),
        None => format!("the dice that are {} are not counted", compared.trim()),
    };
    Some(format!(
        "bots differ in what {whole} means: ({dice}){compared} compares the total, and {other}"
    ))
}

/// True if a word of a text is dice. Dice with a sign of their own are no dice here.
pub fn is_inside(text: &str) -> bool {
    let is_mark = |c: char| !c.is_alphanumeric() && !matches!(c, '+' | '-' | '\u{2212}' | '%');
    let mut words = text
        .split_whitespace()
        .map(|word| word.trim_matches(is_mark));
    words.any(|word| {
        let dice = written(word, Place::Explicit).and_then(Written::complete);
        word.starts_with(char::is_alphanumeric) && dice.is_ok_and(|it| it.expression.has_dice())
    })
}

impl Reader {
    /// Returns the text that is not read yet.
    fn rest(&self) -> String {
        self.chars.iter().skip(self.at).collect()
    }

    /// Reads the expression, also in the brackets of an inline roll or of `repeat(1d4+1, 3)`. Returns
    /// its place and the number of repetitions.
    fn rolled(&mut self) -> Result<(Range<usize>, Option<u32>)> {
        let is_repeated = self.eat("repeat(") || self.eat("repeat (");
        let is_inline = !is_repeated && self.eat("[[");
        self.spaces();
        let from = self.at;
        self.comparison()?;
        let part = from..self.at;
        self.spaces();
        if is_inline && !self.eat("]]") {
            return Err(self.wrong("]] is missing"));
        }
        let mut times = None;
        if is_repeated {
            let comma = self.eat(",");
            self.spaces();
            times = self.digits().filter(|_| comma);
            self.spaces();
            if times.is_none() || !self.eat(")") {
                return Err(self.wrong("say it like this: repeat(1d4+1, 3)"));
            }
        }
        self.spaces();
        Ok((part, times))
    }

    /// Reads `6#` or `6x`, and after a command the `6` of `6 4d6`.
    fn times_before(&mut self) -> Option<u32> {
        let start = self.at;
        let times = self.digits();
        let apart = self.peek().is_some_and(char::is_whitespace);
        self.spaces();
        let is_set =
            apart && self.takes_german_dice() && (self.at_digit() || self.peek() == Some('('));
        if times.is_some() && (is_set || self.eat_one_of(&['#', 'x', '×'])) {
            self.spaces();
            return times;
        }
        self.at = start;
        None
    }

    /// True before `+d20`, which is an advantage for some bots.
    fn begins_with_a_sign(&self) -> bool {
        let rest = self.rest().to_lowercase();
        let unsigned = rest.strip_prefix(['+', '-']);
        let die = unsigned.map(|it| it.strip_prefix('1').unwrap_or(it));
        let after = die.and_then(|it| it.strip_prefix(['d', 'w'])?.strip_prefix("20"));
        after.is_some_and(|it| !it.starts_with(|c: char| c.is_ascii_digit()))
    }

    /// Reads the end of a sentence: `2d6+3.`
    fn full_stop(&mut self) {
        let start = self.at;
        self.read_while(|c| c == '.');
        self.spaces();
        if self.peek().is_some() {
            self.at = start;
        }
    }

    /// True if what is left is glued to what was read: `4d6xo`, `2d6!fire`.
    fn is_within_a_word(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|at| self.chars.get(at));
        let is_word = |c: &char| c.is_alphanumeric();
        before.is_some_and(|c| is_word(c) || *c == '!')
            && self.chars.get(self.at).is_some_and(is_word)
    }

    /// True before the `x` of `5d10x10`: bots read it as exploding dice or as several rolls.
    fn explodes_or_repeats(&self) -> bool {
        let before = self.since(0);
        let sides = before.trim_end_matches(|c: char| c.is_ascii_digit());
        sides.len() < before.len()
            && sides.ends_with(['d', 'D', 'w', 'W'])
            && self.peek().is_some_and(|c| c.eq_ignore_ascii_case(&'x'))
    }

    /// Reads `x6`.
    fn times_after(&mut self) -> Option<u32> {
        let start = self.at;
        if self.eat_one_of(&['x', '×']) {
            self.spaces();
            let times = self.digits();
            if times.is_some() && !self.peek().is_some_and(char::is_alphanumeric) {
                return times;
            }
        }
        self.at = start;
        None
    }

    fn digits(&mut self) -> Option<u32> {
        let digits = self.read_while(|c| c.is_ascii_digit());
        digits.parse().ok()
    }

    fn eat_one_of(&mut self, signs: &[char]) -> bool {
        let found = self.peek().is_some_and(|c| signs.contains(&c));
        self.at += usize::from(found);
        found
    }

    /// Reads a word of letters. Empty if there is none, or if a digit follows.
    fn word(&mut self) -> String {
        let word = self.read_while(char::is_alphabetic);
        if self.peek().is_some_and(char::is_alphanumeric) {
            String::new()
        } else {
            word.to_ascii_lowercase()
        }
    }

    /// Reads an advantage, if one follows.
    ///
    /// # Errors
    /// If there was one before.
    fn edge(&mut self) -> Result<bool> {
        let start = self.at;
        if self.eat(",") {
            self.spaces();
        }
        let mut word = self.word();
        if matches!(word.as_str(), "with" | "at" | "on") {
            self.spaces();
            word = self.word();
        }
        let edge = match word.as_str() {
            "adv" | "advantage" => "2d20kh1",
            "dis" | "disadv" | "disadvantage" => "2d20kl1",
            _ => {
                self.at = start;
                return Ok(false);
            }
        };
        match &mut self.extras {
            Some(extras) if extras.edge.is_none() => extras.edge = Some(edge),
            _ => return Err(self.wrong("the advantage is said twice")),
        }
        Ok(true)
    }

    /// Reads what may follow dice beyond the grammar: operations after a space, and an advantage.
    pub fn after_dice(&mut self, mut dice: Term) -> Result<()> {
        if self.extras.is_none() {
            return Ok(());
        }
        if let Some(keep) = self.lone_keep(dice.place.start) {
            self.edit(keep, format!("kh{}", self.since(keep + 1)));
        }
        loop {
            let start = self.at;
            self.spaces();
            let edge = self.edge()?;
            let operation = if edge || self.at == start {
                None
            } else {
                self.spaced_operation(dice.count, dice.sides)
            };
            dice.is_plain &= operation.is_none();
            match operation {
                Some(operation) => self.edit(start, operation),
                None if edge => self.edit(start, ""),
                None => {
                    self.at = start;
                    break;
                }
            }
        }
        if let Some(extras) = &mut self.extras {
            extras.dice.push(dice);
        }
        Ok(())
    }

    /// Reads an operation after a sum, if the sum has one term of dice and nothing else
    /// changes them.
    fn operation_after(&mut self) -> bool {
        let start = self.at;
        let before = start.checked_sub(1).and_then(|at| self.chars.get(at));
        let is_apart = before.is_some_and(|c| c.is_whitespace());
        let Some(Extras {
            edge: None, dice, ..
        }) = &self.extras
        else {
            return false;
        };
        let [it] = dice.as_slice() else {
            return false;
        };
        let (at, count, sides) = (it.place.end, it.count, it.sides);
        if !is_apart || !it.is_plain {
            return false;
        }
        let operation = self.spaced_operation(count, sides);
        let (Some(operation), Some(extras)) = (operation, &mut self.extras) else {
            self.at = start;
            return false;
        };
        extras.edits.push((at..at, operation));
        extras.dice.clear();
        true
    }

    /// Returns the error that bots differ in what follows, or `None` if they do not.
    fn ambiguous(&self) -> Option<ParseError> {
        let rest = self.rest().to_lowercase();
        if rest.starts_with('!') {
            let detail = "bots differ in what ! means here: exploding dice are 3d8!, a comment is 3d8 # comment";
            return Some(self.wrong(detail));
        }
        let word = rest.split_whitespace().next()?;
        let readings = [
            ("r", "ro", "ro<="),
            ("ir", "rr", "rr<="),
            ("ie", "e", "!>="),
        ];
        readings.iter().find_map(|(name, exact, from)| {
            let n = word.strip_prefix(name)?.parse::<u32>().ok()?;
            let detail = format!("bots differ in which dice {word} takes: {exact}{n} takes each {n}, {from}{n} others too");
            Some(self.wrong(detail))
        })
    }

    /// Returns the place of the `k` of `4d6k3`, if it is the only operation of the dice that began at
    /// `from`. All bots but one keep the highest then.
    fn lone_keep(&self, from: usize) -> Option<usize> {
        let dice = self.since(from);
        let before = dice.trim_end_matches(|c: char| c.is_ascii_digit());
        let plain = before.strip_suffix(['k', 'K'])?;
        let is_plain = |c: char| c.is_ascii_digit() || "dDwW%".contains(c);
        let is_lone = before.len() < dice.len() && plain.chars().all(is_plain);
        is_lone.then(|| from + plain.chars().count())
    }

    /// Reads an operation after a space, and returns it as the grammar has it. `r2` is
    /// none, because bots differ in what it rerolls. For some bots "!" begins a comment, so before
    /// other words it is none either.
    fn spaced_operation(&mut self, count: usize, sides: Sides) -> Option<String> {
        let ends = |c: char| c.is_whitespace() || "+-*/),#".contains(c);
        let word = self.read_while(|c| !ends(c)).to_ascii_lowercase();
        let mut after = self.chars.iter().skip(self.at);
        let next = after.find(|c| !c.is_whitespace());
        if word == "!" && next.is_some_and(|c| !"+-*/),]#\\".contains(*c)) {
            return None;
        }
        let is_number = |text: &str| text.parse::<u32>().is_ok();
        let operation = match (word.get(..1)?, word.get(1..)?) {
            ("k", number) if number.is_empty() || is_number(number) => format!("kh{number}"),
            ("d", number) if is_number(number) => format!("dl{number}"),
            ("r", number) if is_number(number) => return None,
            ("i", most) if *most == format!("e{}", sides.faces().end()) => most.to_owned(),
            _ => word,
        };
        let symbol = operation.starts_with('!');
        let keeps = matches!(operation.as_str(), "kh" | "kl" | "dl" | "dh");
        let numbered = operation.ends_with(|c: char| c.is_ascii_digit());
        let dropped = operation
            .strip_prefix("dl")
            .or(operation.strip_prefix("dh"));
        let leaves = dropped.is_none_or(|n| n.parse::<usize>().unwrap_or(1) < count);
        let mut alone = Reader::new(operation.chars().collect());
        let is_operation = matches!(alone.dice_operation(sides), Ok(Some(_)));
        ((symbol || keeps || numbered) && leaves && is_operation && alone.peek().is_none())
            .then_some(operation)
    }

    /// Returns a part of the text as the grammar has it.
    ///
    /// # Errors
    /// If there is an advantage, but not exactly one d20.
    fn translated(&mut self, part: Range<usize>) -> Result<String> {
        let Some(mut extras) = self.extras.take() else {
            return Ok(String::new());
        };
        if let Some(edge) = extras.edge {
            let is_d20 = |it: &&Term| it.is_plain && (it.count, it.sides) == (1, Sides::Number(20));
            let mut d20s = extras.dice.iter().filter(is_d20);
            let (Some(Term { place: d20, .. }), None) = (d20s.next(), d20s.next()) else {
                return Err(self.wrong("an advantage needs exactly one d20, as in 1d20 adv"));
            };
            extras
                .edits
                .retain(|(range, _)| !d20.contains(&range.start));
            extras.edits.push((d20.clone(), edge.to_owned()));
        }
        extras.edits.sort_by_key(|(range, _)| range.start);
        let (mut text, mut at) = (String::new(), part.start);
        for (range, with) in &extras.edits {
            text.extend(self.chars.get(at..range.start).unwrap_or_default());
            text.push_str(with);
            at = range.end;
        }
        text.extend(self.chars.get(at..part.end).unwrap_or_default());
        Ok(text.trim().to_owned())
    }
}

#[cfg(test)]
mod tests;
