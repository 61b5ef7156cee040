//! Parses an expression by recursive descent over its characters. Limits the length, the depth and
//! every number.

use crate::number::{self, whole};
use crate::reader::{Reader, Result, Term};
use crate::{
    Again, COMPARISONS, Dice, EQUAL, Expression, FUNCTIONS, Kind, MAX_DECIMALS, MAX_DEPTH,
    MAX_DICE, MAX_NUMBER, Named, Node, Number, Operation, Operator, PRODUCTS, ParseError, SUMS,
    Selector, Set, Sides,
};

/// Implements [`Expression::parse`].
pub(super) fn expression(text: &str) -> Result<Expression> {
    let mut reader = Reader::of(text)?;
    reader.spaces();
    let root = reader.comparison()?;
    if let Some(error) = reader.unexpected() {
        return Err(error);
    }
    if root.dice() > MAX_DICE {
        return Err(too_many_dice(1));
    }
    let text = reader.since(0).trim().to_owned();
    Ok(Expression { root, text })
}

fn too_many_dice(at: usize) -> ParseError {
    ParseError::new(at, format!("at most {MAX_DICE} dice are rolled at once"))
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
        self.chain(&COMPARISONS, Self::sum)
    }

    fn sum(&mut self) -> Result<Node> {
        self.chain(&SUMS, Self::product)
    }

    fn product(&mut self) -> Result<Node> {
        self.chain(&PRODUCTS, Self::unary)
    }

    /// Reads operands joined by left-associative operators of the same precedence.
    fn chain(
        &mut self,
        operators: &[Operator],
        operand: fn(&mut Self) -> Result<Node>,
    ) -> Result<Node> {
        let mut left = operand(self)?;
        loop {
            self.spaces();
            let Some(operator) = operators.iter().find(|it| self.eat(it.0)) else {
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
            let label = self.read_while(|c| c != ']');
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
                if self.since(from).contains('.') {
                    return Ok(Node::Number(number));
                }
                if self.at_die() {
                    return self.dice(from, number.to_integer());
                }
                if self.eat("d") {
                    return Err(self.wrong("how many sides has the die?"));
                }
                Ok(Node::Number(number))
            }
            Some(_) if self.at_die() => self.dice(from, 1),
            Some(c) if c.is_ascii_alphabetic() => self.call(),
            Some(c) => Err(self.wrong(format!("{c:?} was not expected here"))),
            None => Err(self.wrong("a number or dice were expected here")),
        }
    }

    /// Reads a number, with or without decimals.
    ///
    /// # Errors
    /// If there is no number, or if it exceeds [`MAX_NUMBER`] or [`MAX_DECIMALS`].
    fn number(&mut self) -> Result<Number> {
        let from = self.at;
        let mut digits = self.read_while(|c| c.is_ascii_digit());
        let mut decimals = String::new();
        let decimal = self.chars.get(self.at + 1);
        if self.starts(".") && decimal.is_some_and(char::is_ascii_digit) {
            self.at += 1;
            decimals = self.read_while(|c| c.is_ascii_digit());
        }
        let wrong = |detail: String| Err(ParseError::new(from + 1, detail));
        if self.at == from {
            return wrong("a number was expected here".to_owned());
        }
        let decimals = decimals.trim_end_matches('0');
        if decimals.len() > MAX_DECIMALS {
            return wrong(format!("a number has at most {MAX_DECIMALS} decimals"));
        }
        digits.push_str(decimals);
        match number::decimal(&digits, decimals.len()) {
            Some(number) if number <= whole(MAX_NUMBER) => Ok(number),
            _ => wrong(format!("a number is at most {MAX_NUMBER}")),
        }
    }

    /// Reads a whole number if a digit follows. Accepts decimals that are zero.
    ///
    /// # Errors
    /// If the number is not whole or exceeds [`MAX_NUMBER`].
    fn whole(&mut self) -> Result<Option<i64>> {
        if !self.at_digit() {
            return Ok(None);
        }
        let from = self.at;
        let number = self.number()?;
        if !number.is_integer() {
            let detail = "a whole number was expected here";
            return Err(ParseError::new(from + 1, detail));
        }
        Ok(i64::try_from(number.to_integer()).ok())
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

    fn dice(&mut self, from: usize, count: i128) -> Result<Node> {
        if self.eat("w") {
            self.edit(self.at - 1, "d");
        } else {
            self.at += 1;
        }
        if count > MAX_DICE as i128 {
            return Err(too_many_dice(from + 1));
        }
        let sides = self.sides()?;
        let operations = self.operations(Self::dice_operation, sides)?;
        let text = self.since(from);
        self.after_dice(Term {
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

    /// Reads all operations that follow. Merges adjacent operations that do the same to selected dice,
    /// so `k1k2` keeps ones and twos.
    fn operations(
        &mut self,
        read: fn(&mut Self, Sides) -> Result<Option<Operation>>,
        sides: Sides,
    ) -> Result<Vec<Operation>> {
        let mut all: Vec<Operation> = vec![];
        while let Some(next) = read(self, sides)? {
            match all.last_mut() {
                Some(last) if last.kind == next.kind && !next.selectors.is_empty() => {
                    last.selectors.extend(next.selectors);
                }
                _ => all.push(next),
            }
        }
        Ok(all)
    }

    fn set_operation(&mut self, _: Sides) -> Result<Option<Operation>> {
        let (kind, selector) = if self.eat("k") {
            (Kind::Keep, self.keep_selector()?)
        } else if self.eat("p") {
            (Kind::Drop, self.selector()?)
        } else {
            return Ok(None);
        };
        let selectors = vec![selector];
        Ok(Some(Operation { kind, selectors }))
    }

    pub fn dice_operation(&mut self, sides: Sides) -> Result<Option<Operation>> {
        let low = Selector::Compared(EQUAL, whole(*sides.faces().start()));
        let high = Selector::Compared(EQUAL, whole(*sides.faces().end()));
        let names = [
            "rr", "ro", "ra", "r", "e", "!!", "!p", "!", "min", "mi", "max", "ma", "uo", "u", "sd",
            "sa", "s", "cs", "cf", "dl", "dh", "d",
        ];
        let start = self.at;
        let name = names.into_iter().find(|name| self.eat(name));
        let name = name.filter(|name| match *name {
            "!" => !self.starts("="),
            "d" => self.at_digit(),
            _ => true,
        });
        let Some(name) = name else {
            self.at = start;
            return self.set_operation(sides);
        };
        let (kind, selector) = match name {
            "rr" => (Kind::Reroll(Again::UntilNot), Some(self.selector()?)),
            "ro" => (Kind::Reroll(Again::Once), Some(self.selector_or(low)?)),
            "ra" => (Kind::Add, Some(self.selector()?)),
            "r" => (Kind::Reroll(Again::UntilNot), Some(self.selector_or(low)?)),
            "e" => (Kind::Explode, Some(self.selector()?)),
            "!!" => (Kind::Compound, Some(self.compared_or(high)?)),
            "!p" => (Kind::Penetrate, Some(self.compared_or(high)?)),
            "!" => (Kind::Explode, Some(self.compared_or(high)?)),
            "min" | "mi" => (Kind::AtLeast(self.signed()?), None),
            "max" | "ma" => (Kind::AtMost(self.signed()?), None),
            "uo" => (Kind::Unique(Again::Once), None),
            "u" => (Kind::Unique(Again::UntilNot), None),
            "sd" => (Kind::SortDown, None),
            "sa" | "s" => (Kind::SortUp, None),
            "cs" => (Kind::Mark, Some(self.compared_or(high)?)),
            "cf" => (Kind::Mark, Some(self.compared_or(low)?)),
            "dh" => (Kind::Drop, Some(Selector::Highest(self.how_many()?))),
            _ => (Kind::Drop, Some(Selector::Lowest(self.how_many()?))),
        };
        let selectors = selector.into_iter().collect();
        Ok(Some(Operation { kind, selectors }))
    }

    /// Reads what follows `k`: a selector, or nothing. `kh`, `kl` and `k` alone mean one die.
    fn keep_selector(&mut self) -> Result<Selector> {
        if self.eat("h") {
            Ok(Selector::Highest(self.how_many()?))
        } else if self.eat("l") {
            Ok(Selector::Lowest(self.how_many()?))
        } else if self.at_digit() || matches!(self.peek(), Some('<' | '>')) {
            self.selector()
        } else {
            Ok(Selector::Highest(1))
        }
    }

    fn how_many(&mut self) -> Result<usize> {
        Ok(self.whole()?.map_or(1, |number| number as usize))
    }

    /// Reads a selector: `l2`, `h1`, `<3`, `>4`, `<=3`, `>=4`, `<>5`, `5` or `=5`.
    fn selector(&mut self) -> Result<Selector> {
        let signs = ["l", "h", "<>", "<=", ">=", "<", ">", "="];
        let sign = signs.into_iter().find(|sign| self.eat(sign));
        let Some(number) = self.whole()? else {
            return Err(self.wrong("which dice? A number is missing"));
        };
        let sign = match sign {
            Some("l") => return Ok(Selector::Lowest(number as usize)),
            Some("h") => return Ok(Selector::Highest(number as usize)),
            Some("<>") => "!=",
            sign => sign.unwrap_or_default(),
        };
        let operator = COMPARISONS.into_iter().find(|it| it.0 == sign);
        let operator = operator.unwrap_or(EQUAL);
        Ok(Selector::Compared(operator, whole(number)))
    }

    fn selector_or(&mut self, otherwise: Selector) -> Result<Selector> {
        if self.at_digit() || matches!(self.peek(), Some('l' | 'h')) {
            self.selector()
        } else {
            self.compared_or(otherwise)
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

    fn signed(&mut self) -> Result<Number> {
        let negative = self.eat("-");
        let number = self.number()?;
        Ok(if negative { -number } else { number })
    }

    fn call(&mut self) -> Result<Node> {
        let Some(function) = FUNCTIONS.into_iter().find(|it| self.eat(it.0)) else {
            return Err(self.wrong("dice or a number were expected here"));
        };
        let (arguments, _) = self.inside(Self::list)?;
        let several = matches!(function, Named("min(" | "max(", _));
        if arguments.is_empty() || (arguments.len() > 1 && !several) {
            return Err(self.wrong("the function is given the wrong number of values"));
        }
        Ok(Node::Call(function, arguments))
    }

    fn set(&mut self) -> Result<Node> {
        self.at += 1;
        let (mut items, listed) = self.inside(Self::list)?;
        let operations = self.operations(Self::set_operation, Sides::Fate)?;
        // If brackets contain only one item, their operations apply to the dice or values of that
        // item.
        let alone = items.pop_if(|_| !listed);
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
            items.push(self.comparison()?);
            self.spaces();
            if self.eat(",") {
                comma = true;
            } else if !self.starts(")") {
                return Err(self.wrong(") is missing"));
            }
        }
    }
}
