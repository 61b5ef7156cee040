//! Parses an expression by recursive descent over its characters. Limits the length, the depth and
//! every number.

use crate::reader::{Reader, Result, Term};
use crate::{
    Again, Dice, Explosion, Expression, Function, MAX_DEPTH, MAX_DICE, MAX_NUMBER, Node, Operation,
    Operator, Order, ParseError, Selector, Set, Sides,
};

/// Implements [`Expression::parse`].
pub(super) fn expression(text: &str) -> Result<Expression> {
    let mut reader = Reader::of(text)?;
    reader.spaces();
    let root = reader.comparison()?;
    let end = reader.at;
    let comment = if reader.eat("#") {
        let rest: String = reader.chars.iter().skip(reader.at).collect();
        reader.at = reader.chars.len();
        Some(rest.trim().to_owned()).filter(|comment| !comment.is_empty())
    } else {
        None
    };
    if let Some(error) = reader.unexpected() {
        return Err(error);
    }
    if root.dice() > MAX_DICE {
        return Err(ParseError {
            at: 1,
            detail: format!("at most {MAX_DICE} dice are thrown at once"),
        });
    }
    let text: String = reader.chars.iter().take(end).collect();
    let expression = Expression {
        root,
        text: text.trim().to_owned(),
        comment,
    };
    Ok(expression)
}

impl Reader {
    /// Runs `read` one nesting level deeper.
    ///
    /// # Errors
    /// If the level exceeds [`MAX_DEPTH`], or if `read` fails.
    fn inside<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.wrong(format!("nested deeper than {MAX_DEPTH}")));
        }
        let read = read(self)?;
        self.depth -= 1;
        Ok(read)
    }

    pub fn comparison(&mut self) -> Result<Node> {
        let signs = [
            ("==", Operator::Equal),
            (">=", Operator::AtLeast),
            ("<=", Operator::AtMost),
            ("!=", Operator::Unequal),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ];
        self.chain(&signs, Self::sum)
    }

    fn sum(&mut self) -> Result<Node> {
        self.chain(
            &[("+", Operator::Add), ("-", Operator::Subtract)],
            Self::product,
        )
    }

    fn product(&mut self) -> Result<Node> {
        let signs = [
            ("*", Operator::Times),
            ("//", Operator::DivideWhole),
            ("/", Operator::Divide),
            ("%", Operator::Modulo),
        ];
        self.chain(&signs, Self::unary)
    }

    /// Reads operands joined by left-associative operators of the same precedence.
    fn chain(
        &mut self,
        signs: &[(&str, Operator)],
        operand: fn(&mut Self) -> Result<Node>,
    ) -> Result<Node> {
        let mut left = operand(self)?;
        loop {
            self.spaces();
            let Some((_, operator)) = signs.iter().find(|(sign, _)| self.eat(sign)) else {
                return Ok(left);
            };
            self.spaces();
            let right = operand(self)?;
            left = Node::Binary(Box::new(left), *operator, Box::new(right));
        }
    }

    fn unary(&mut self) -> Result<Node> {
        if self.eat("+") {
            self.spaces();
            return self.inside(Self::unary);
        }
        if self.eat("-") {
            self.spaces();
            return Ok(Node::Negative(Box::new(self.inside(Self::unary)?)));
        }
        let mut node = self.value()?;
        self.spaces();
        while self.eat("[") {
            let from = self.at;
            while self.peek().is_some_and(|c| c != ']') {
                self.at += 1;
            }
            let label: String = self.chars.iter().skip(from).take(self.at - from).collect();
            if !self.eat("]") {
                return Err(self.wrong("the label has no end: ] is missing"));
            }
            node = Node::Labelled(Box::new(node), label.trim().to_owned());
            self.spaces();
        }
        Ok(node)
    }

    fn value(&mut self) -> Result<Node> {
        let from = self.at;
        match self.peek() {
            Some('(') => self.set(),
            Some(c) if c.is_ascii_digit() || c == '.' => {
                let number = self.number()?;
                let whole = number.fract() == 0.0
                    && !self
                        .chars
                        .iter()
                        .skip(from)
                        .take(self.at - from)
                        .any(|c| *c == '.');
                if whole && !self.at_die() && matches!(self.peek(), Some('d')) {
                    self.at += 1;
                    return Err(self.wrong("how many sides has the die?"));
                }
                if whole && self.at_die() {
                    self.dice(from, Some(number))
                } else {
                    Ok(Node::Number(number))
                }
            }
            Some(_) if self.at_die() => self.dice(from, None),
            Some(c) if c.is_ascii_alphabetic() => self.call(),
            Some(c) => Err(self.wrong(format!("{c:?} was not expected here"))),
            None => Err(self.wrong("a number or dice were expected here")),
        }
    }

    /// Reads a number, with or without decimals.
    ///
    /// # Errors
    /// If there is no number, or if it exceeds [`MAX_NUMBER`].
    fn number(&mut self) -> Result<f64> {
        let from = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        if self.peek() == Some('.') {
            self.at += 1;
            while self.peek().is_some_and(|c| c.is_ascii_digit()) {
                self.at += 1;
            }
        }
        let text: String = self.chars.iter().skip(from).take(self.at - from).collect();
        match text.parse::<f64>() {
            Ok(number) if number <= MAX_NUMBER => Ok(number),
            Ok(_) => Err(ParseError {
                at: from + 1,
                detail: format!("a number is at most {MAX_NUMBER:.0}"),
            }),
            Err(_) => Err(ParseError {
                at: from + 1,
                detail: "a number was expected here".into(),
            }),
        }
    }

    /// Reads a whole number if a digit follows. Accepts decimals that are zero.
    ///
    /// # Errors
    /// If the number is not whole or exceeds [`MAX_NUMBER`].
    fn whole(&mut self) -> Result<Option<i64>> {
        if !self.peek().is_some_and(|c| c.is_ascii_digit()) {
            return Ok(None);
        }
        let from = self.at;
        let number = self.number()?;
        if number.fract() != 0.0 {
            return Err(ParseError {
                at: from + 1,
                detail: "a whole number was expected here".into(),
            });
        }
        Ok(Some(number as i64))
    }

    /// Returns true if a `d` with sides follows.
    fn at_die(&self) -> bool {
        let next = self.chars.get(self.at + 1);
        let is_digit = next.is_some_and(char::is_ascii_digit);
        match self.peek() {
            Some('d') => is_digit || matches!(next, Some('%' | 'F' | 'f')),
            Some('w') => is_digit && self.takes_german_dice(),
            _ => false,
        }
    }

    fn dice(&mut self, from: usize, count: Option<f64>) -> Result<Node> {
        let is_german = matches!(self.peek(), Some('w'));
        self.at += 1;
        if is_german {
            self.edit(self.at - 1, "d");
        }
        let count = count.unwrap_or(1.0);
        if count > MAX_DICE as f64 {
            return Err(ParseError {
                at: from + 1,
                detail: format!("at most {MAX_DICE} dice are thrown at once"),
            });
        }
        let sides = self.sides()?;
        let operations = self.operations(Self::dice_operation, sides)?;
        let text = self.chars.iter().skip(from).take(self.at - from).collect();
        self.behind_dice(Term {
            place: from..self.at,
            count: count as usize,
            sides,
            is_plain: operations.is_empty(),
        })?;
        Ok(Node::Dice(Dice {
            count: count as u32,
            sides,
            operations,
            text,
        }))
    }

    fn sides(&mut self) -> Result<Sides> {
        if self.eat("%") {
            return Ok(Sides::Number(100));
        }
        if self.eat("f") {
            if self.eat(".2") {
                return Ok(Sides::Fate);
            }
            if self.eat(".1") {
                return Ok(Sides::BlankFate);
            }
            if self.peek() == Some('.') {
                return Err(self.wrong("there are dF, dF.1 and dF.2"));
            }
            return Ok(Sides::Fate);
        }
        match self.whole()? {
            Some(0) => Err(self.wrong("a die has at least one side")),
            Some(sides) => Ok(Sides::Number(sides)),
            None => Err(self.wrong("how many sides?")),
        }
    }

    /// Reads all operations that follow. Merges adjacent operations that keep, drop, add, reroll or
    /// explode dice in the same way, so `k1k2` keeps ones and twos.
    fn operations(
        &mut self,
        read: fn(&mut Self, Sides) -> Result<Option<Operation>>,
        sides: Sides,
    ) -> Result<Vec<Operation>> {
        let mut all: Vec<Operation> = vec![];
        while let Some(next) = read(self, sides)? {
            match (all.last_mut(), next) {
                (Some(Operation::Keep(known)), Operation::Keep(more))
                | (Some(Operation::Drop(known)), Operation::Drop(more))
                | (Some(Operation::Add(known)), Operation::Add(more)) => known.extend(more),
                (Some(Operation::Reroll(how, known)), Operation::Reroll(again, more))
                    if *how == again =>
                {
                    known.extend(more);
                }
                (Some(Operation::Explode(how, known)), Operation::Explode(again, more))
                    if *how == again =>
                {
                    known.extend(more);
                }
                (_, next) => all.push(next),
            }
        }
        Ok(all)
    }

    fn set_operation(&mut self, _: Sides) -> Result<Option<Operation>> {
        if self.eat("k") {
            return Ok(Some(Operation::Keep(self.keep_selector()?)));
        }
        if self.eat("p") {
            return Ok(Some(Operation::Drop(vec![self.selector()?])));
        }
        Ok(None)
    }

    pub fn dice_operation(&mut self, sides: Sides) -> Result<Option<Operation>> {
        let (low, high) = (Selector::Is(sides.lowest()), Selector::Is(sides.highest()));
        Ok(Some(if self.eat("rr") {
            Operation::Reroll(Again::UntilNot, vec![self.selector()?])
        } else if self.eat("ro") {
            Operation::Reroll(Again::Once, vec![self.selector_or(low)?])
        } else if self.eat("ra") {
            Operation::Add(vec![self.selector()?])
        } else if self.eat("r") {
            Operation::Reroll(Again::UntilNot, vec![self.selector_or(low)?])
        } else if self.eat("e") {
            Operation::Explode(Explosion::Another, vec![self.selector()?])
        } else if self.eat("!!") {
            Operation::Explode(Explosion::Compound, vec![self.compared_or(high)?])
        } else if self.eat("!p") {
            Operation::Explode(Explosion::Penetrating, vec![self.compared_or(high)?])
        } else if self.starts("!") && !self.starts("!=") {
            self.at += 1;
            Operation::Explode(Explosion::Another, vec![self.compared_or(high)?])
        } else if self.eat("min") || self.eat("mi") {
            Operation::AtLeast(self.signed()?)
        } else if self.eat("max") || self.eat("ma") {
            Operation::AtMost(self.signed()?)
        } else if self.eat("uo") {
            Operation::Unique(Again::Once)
        } else if self.eat("u") {
            Operation::Unique(Again::UntilNot)
        } else if self.eat("sd") {
            Operation::Sort(Order::Down)
        } else if self.eat("sa") || self.eat("s") {
            Operation::Sort(Order::Up)
        } else if self.eat("cs") {
            Operation::Mark(vec![self.compared_or(high)?])
        } else if self.eat("cf") {
            Operation::Mark(vec![self.compared_or(low)?])
        } else if self.eat("dl") {
            Operation::Drop(vec![Selector::Lowest(self.how_many()?)])
        } else if self.eat("dh") {
            Operation::Drop(vec![Selector::Highest(self.how_many()?)])
        } else if self.starts("d")
            && self
                .chars
                .get(self.at + 1)
                .is_some_and(char::is_ascii_digit)
        {
            self.at += 1;
            Operation::Drop(vec![Selector::Lowest(self.how_many()?)])
        } else {
            return self.set_operation(sides);
        }))
    }

    /// Reads what follows `k`: a selector, or nothing. `kh`, `kl` and `k` alone mean one die.
    fn keep_selector(&mut self) -> Result<Vec<Selector>> {
        let more = matches!(self.peek(), Some('h' | 'l' | '<' | '>'))
            || self.peek().is_some_and(|c| c.is_ascii_digit());
        if !more {
            return Ok(vec![Selector::Highest(1)]);
        }
        if self.eat("h") {
            return Ok(vec![Selector::Highest(self.how_many()?)]);
        }
        if self.eat("l") {
            return Ok(vec![Selector::Lowest(self.how_many()?)]);
        }
        Ok(vec![self.selector()?])
    }

    fn how_many(&mut self) -> Result<usize> {
        Ok(self
            .whole()?
            .map_or(1, |n| usize::try_from(n).unwrap_or(usize::MAX)))
    }

    /// Reads a selector: `l2`, `h1`, `<3`, `>4`, `<=3`, `>=4`, `<>5`, `5` or `=5`.
    fn selector(&mut self) -> Result<Selector> {
        let read: fn(i64) -> Selector = if self.eat("l") {
            |n| Selector::Lowest(usize::try_from(n).unwrap_or(0))
        } else if self.eat("h") {
            |n| Selector::Highest(usize::try_from(n).unwrap_or(0))
        } else if self.eat("<>") {
            Selector::IsNot
        } else if self.eat("<=") {
            Selector::AtMost
        } else if self.eat(">=") {
            Selector::AtLeast
        } else if self.eat("<") {
            Selector::Below
        } else if self.eat(">") {
            Selector::Above
        } else {
            let _ = self.eat("=");
            Selector::Is
        };
        match self.whole()? {
            Some(number) => Ok(read(number)),
            None => Err(self.wrong("which dice? A number is missing")),
        }
    }

    fn selector_or(&mut self, otherwise: Selector) -> Result<Selector> {
        let comes = matches!(self.peek(), Some('l' | 'h' | '<' | '>' | '='))
            || self.peek().is_some_and(|c| c.is_ascii_digit());
        if comes {
            self.selector()
        } else {
            Ok(otherwise)
        }
    }

    /// Reads a selector that starts with a comparison sign, as in `!>4`. Returns `otherwise` if
    /// none follows.
    fn compared_or(&mut self, otherwise: Selector) -> Result<Selector> {
        if matches!(self.peek(), Some('<' | '>' | '=')) {
            self.selector()
        } else {
            Ok(otherwise)
        }
    }

    fn signed(&mut self) -> Result<f64> {
        let negative = self.eat("-");
        let number = self.number()?;
        Ok(if negative { -number } else { number })
    }

    fn call(&mut self) -> Result<Node> {
        let functions = [
            ("floor(", Function::Floor),
            ("ceil(", Function::Ceil),
            ("round(", Function::Round),
            ("abs(", Function::Abs),
            ("min(", Function::Least),
            ("max(", Function::Most),
        ];
        let Some((_, function)) = functions.iter().find(|(name, _)| self.eat(name)) else {
            return Err(self.wrong("dice or a number were expected here"));
        };
        let (arguments, _) = self.inside(Self::list)?;
        let several = matches!(function, Function::Least | Function::Most);
        if arguments.is_empty() || (arguments.len() > 1 && !several) {
            return Err(self.wrong("the function is given the wrong number of values"));
        }
        Ok(Node::Call(*function, arguments))
    }

    fn set(&mut self) -> Result<Node> {
        self.at += 1;
        let (mut items, listed) = self.inside(Self::list)?;
        let operations = self.operations(Self::set_operation, Sides::Fate)?;
        // If brackets contain only one item, their operations apply to the dice or values of that
        // item.
        let alone = if listed || items.len() != 1 {
            None
        } else {
            items.pop()
        };
        Ok(match alone {
            None => Node::Set(Set { items, operations }),
            Some(Node::Dice(mut dice)) if !operations.is_empty() => {
                dice.operations.extend(operations);
                Node::Dice(dice)
            }
            Some(Node::Set(mut set)) if !operations.is_empty() => {
                set.operations.extend(operations);
                Node::Set(set)
            }
            Some(inner) => Node::Set(Set {
                items: vec![inner],
                operations,
            }),
        })
    }

    /// Reads values up to the closing bracket. Also returns true if there was a comma.
    fn list(&mut self) -> Result<(Vec<Node>, bool)> {
        let (mut items, mut comma) = (vec![], false);
        loop {
            self.spaces();
            if self.eat(")") {
                return Ok((items, comma));
            }
            if !items.is_empty() && !comma {
                return Err(self.wrong(") is missing"));
            }
            items.push(self.comparison()?);
            self.spaces();
            if self.eat(",") {
                comma = true;
            } else if self.eat(")") {
                return Ok((items, comma));
            } else {
                return Err(self.wrong(") is missing"));
            }
        }
    }
}
