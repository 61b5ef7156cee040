//! The part of the lexer that reads LaTeX: commands, escapes and dollar signs.

use super::super::units::{self, Spelling};
use super::{Kind, Lexer, Notation, Relation, Sign};

impl Lexer<'_> {
    /// Reads a dollar sign as money or mathematics. As in Pandoc, it opens mathematics if no space
    /// follows it, and the next one on the line has no space before it and no digit after it.
    pub(super) fn dollar(&mut self, begin: usize) {
        if self.dollar.take() == Some(begin) {
            return;
        }
        let next = self.char(self.at);
        if next == '$' {
            self.at += 1;
            return;
        }
        let close = self.at + self.run(self.at, |c| c != '$' && c != '\n');
        let ends = self.char(close) == '$'
            && !self.before(close).is_whitespace()
            && self.before(close) != '\\';
        if ends && !next.is_whitespace() && !self.char(close + 1).is_ascii_digit() {
            self.dollar = Some(close);
            return;
        }
        self.money(begin);
    }

    fn money(&mut self, begin: usize) {
        let from = self.at + self.run(self.at, |c| matches!(c, ' ' | '-' | '−'));
        let figure = self.char(from).is_ascii_digit()
            || self.char(from) == '.' && self.char(from + 1).is_ascii_digit();
        if let Some(dollars) = units::written("$", Spelling::Strict).filter(|_| figure) {
            self.push(Kind::Currency(dollars), begin);
        }
    }

    pub(super) fn command(&mut self, begin: usize) {
        let length = self.run(self.at, |c| c.is_ascii_alphabetic());
        let name = self.slice(self.at, self.at + length);
        self.at += length;
        if name.is_empty() {
            return self.escaped(begin);
        }
        let kind = match name {
            "frac" | "dfrac" | "tfrac" | "cfrac" => {
                self.single = if self.char(self.at).is_ascii_digit() {
                    2
                } else {
                    0
                };
                Kind::Fraction
            }
            "sqrt" => {
                self.single = u8::from(self.char(self.at).is_ascii_digit());
                Kind::Root
            }
            "times" | "cdot" | "ast" => Kind::Sign(Sign::Times),
            "div" => Kind::Sign(Sign::Over),
            "approx" | "simeq" => Kind::Relation(Relation::About),
            "le" | "leq" | "leqslant" => Kind::Relation(Relation::LessEqual),
            "ge" | "geq" | "geqslant" => Kind::Relation(Relation::GreaterEqual),
            "lt" => Kind::Relation(Relation::Less),
            "gt" => Kind::Relation(Relation::Greater),
            "ne" | "neq" | "equiv" | "sim" => Kind::Relation(Relation::Other),
            "left" | "right" | "displaystyle" | "big" | "Big" | "bigg" => return,
            "quad" | "qquad" if self.notation == Notation::Formula => return,
            "quad" | "qquad" | "implies" | "Rightarrow" | "rightarrow" | "to" | "therefore"
            | "Longrightarrow" => Kind::Break,
            "begin" | "end" => {
                self.at += self.run(self.at, |c| c != '}' && c != '\n') + 1;
                Kind::Break
            }
            "text" | "textbf" | "mathrm" | "mathbf" | "mbox" | "boxed" | "operatorname" => {
                self.at += self.run(self.at, char::is_whitespace);
                if self.char(self.at) == '{' {
                    self.at += 1;
                    self.braces.push(true);
                }
                return;
            }
            "cup" => Kind::Union,
            "circ" | "degree" => Kind::Word("°"),
            "pm" | "mp" | "ldots" | "dots" | "cdots" | "sum" | "prod" | "int" | "bmod" | "pmod"
            | "mod" => Kind::Unknown,
            name => Kind::Name(name),
        };
        self.push(kind, begin);
    }

    fn escaped(&mut self, begin: usize) {
        let sign = self.char(self.at);
        self.at += 1;
        match sign {
            '{' => {
                self.braces.push(false);
                self.push(Kind::Open('s'), begin);
            }
            '}' => {
                self.braces.pop();
                self.push(Kind::Close('s'), begin);
            }
            '%' => self.push(Kind::Percent, begin),
            '$' => self.money(begin),
            '(' | ')' | '[' | ']' | ',' | '!' | ';' | ':' | ' ' => self.spaced = true,
            // A line of an aligned formula ends here, unless the next one continues with a
            // relation.
            '\\' => {
                let blanks = self.run(self.at, |c| c.is_whitespace() || c == '&');
                if self.char(self.at + blanks) != '=' {
                    self.push(Kind::Break, begin);
                }
            }
            _ => self.push(Kind::Unknown, begin),
        }
    }
}
