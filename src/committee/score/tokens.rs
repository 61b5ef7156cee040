//! Cuts a line of prose with arithmetic in it into numbers, operators, units and what is none of these.

use std::sync::LazyLock;

use regex::Regex;

use super::pattern::pattern;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Token {
    Number {
        value: f64,
        decimals: i32,
        percent: bool,
    },
    Operator(char),
    Open,
    Close,
    Equals {
        about: bool,
    },
    /// A plain word, perhaps a unit.
    Word,
    /// A percentage "of" a number.
    Of,
    /// Something that makes the neighbourhood no plain arithmetic: a variable, a function, a factorial.
    Unknown,
    /// Punctuation: an expression ends here.
    Stop,
}

/// The tokens of a line; LaTeX for plain operators is understood.
pub(super) fn tokenize(line: &str) -> Vec<Token> {
    let line = plain_latex(line);
    let chars: Vec<char> = line.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or(' ');
    let mut out: Vec<Token> = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        let c = at(i);
        i += 1;
        match c {
            c if c.is_whitespace() => {}
            '$' | '€' | '£' => {}
            '0'..='9' => {
                let (token, next) = number(&chars, i - 1);
                i = next;
                let list_number = out.is_empty() && matches!(at(i), '.' | ')') && at(i + 1) == ' ';
                out.push(if list_number { Token::Stop } else { token });
                if at(i) == '!' || (at(i).is_alphabetic() && !matches!(at(i), 'x') && is_variable(&chars, i)) {
                    out.push(Token::Unknown);
                    i += 1;
                }
            }
            '.' if at(i).is_ascii_digit() && !at(i.wrapping_sub(2)).is_ascii_digit() => {
                let (token, next) = number(&chars, i - 1);
                i = next;
                out.push(token);
            }
            '*' if at(i) == '*' => {
                // "2**3" is a power, "**12**" is bold.
                i += 1;
                let left = matches!(out.last(), Some(Token::Number { .. } | Token::Close))
                    && !at(i.wrapping_sub(3)).is_whitespace();
                if left && (at(i).is_ascii_digit() || at(i) == '(') {
                    out.push(Token::Operator('^'));
                }
            }
            '+' | '*' | '/' | '^' => out.push(Token::Operator(c)),
            '×' | '·' | '∙' | '⋅' => out.push(Token::Operator('*')),
            '÷' => out.push(Token::Operator('/')),
            '-' | '−' | '–' if at(i) != '>' => out.push(Token::Operator('-')),
            '%' => out.push(Token::Operator('%')),
            '(' | '[' | '{' => out.push(if after_name(&chars, i - 1) { Token::Unknown } else { Token::Open }),
            ')' | ']' | '}' => out.push(Token::Close),
            '=' if matches!(at(i), '=' | '>') || matches!(at(i.wrapping_sub(2)), '!' | '<' | '>' | ':' | '=') => {
                out.push(Token::Unknown);
            }
            '=' => out.push(Token::Equals { about: false }),
            '≈' => out.push(Token::Equals { about: true }),
            'x' | 'X' if factor_sign(&chars, i - 1, &out) => out.push(Token::Operator('*')),
            c if c.is_alphabetic() => {
                let begin = i - 1;
                while at(i).is_alphanumeric()
                    || at(i) == '\''
                    || (matches!(at(i), '/' | '-') && at(i + 1).is_alphabetic())
                {
                    i += 1;
                }
                let word: String = chars.get(begin..i).unwrap_or_default().iter().collect::<String>().to_lowercase();
                out.push(word_token(&word, out.last()));
            }
            '\\' | '_' | '!' | '√' | 'π' | '°' => out.push(Token::Unknown),
            _ => out.push(Token::Stop),
        }
    }
    out
}

fn word_token(word: &str, last: Option<&Token>) -> Token {
    match word {
        "of" if matches!(last, Some(Token::Number { percent: true, .. })) => Token::Of,
        "plus" => Token::Operator('+'),
        "minus" => Token::Operator('-'),
        "times" if matches!(last, Some(Token::Number { .. } | Token::Close)) => Token::Operator('*'),
        // A single letter, or a known function, stands for a value that we do not have.
        _ if word.chars().count() == 1 && !matches!(word, "a" | "i") => Token::Unknown,
        "sqrt" | "log" | "ln" | "sin" | "cos" | "tan" | "mod" | "floor" | "ceil" | "gcd" | "lcm" | "max" | "min"
        | "pi" | "hundred" | "thousand" | "million" | "billion" | "dozen" | "half" | "twice" | "double" | "squared"
        | "cubed" | "third" | "thirds" | "quarter" | "choose" | "am" | "pm" => Token::Unknown,
        _ => Token::Word,
    }
}

/// "3x" or "2ab" is a term with a variable; "5km" and "5th" are a number with its unit.
fn is_variable(chars: &[char], at: usize) -> bool {
    let run = chars.get(at..).unwrap_or_default().iter().take_while(|c| c.is_alphabetic()).count();
    run == 1 && !matches!(chars.get(at), Some('m' | 'g' | 's' | 'h' | 'k' | 'K' | 'M' | 'B' | 'V' | 'W' | 'L' | 'l'))
}

/// An "x" between two operands is a multiplication sign.
fn factor_sign(chars: &[char], at: usize, before: &[Token]) -> bool {
    let next = chars.get(at + 1..).unwrap_or_default().iter().find(|c| !c.is_whitespace() && !matches!(c, '$'));
    matches!(before.last(), Some(Token::Number { .. } | Token::Close | Token::Word))
        && next.is_some_and(|c| c.is_ascii_digit() || matches!(c, '(' | '[' | '.'))
}

/// A bracket right behind a letter belongs to a function: "f(2)".
fn after_name(chars: &[char], at: usize) -> bool {
    at.checked_sub(1).and_then(|i| chars.get(i)).is_some_and(|c| c.is_alphabetic())
}

fn number(chars: &[char], from: usize) -> (Token, usize) {
    let at = |i: usize| chars.get(i).copied().unwrap_or(' ');
    let digits = |i: usize, n: usize| (i..i + n).all(|i| at(i).is_ascii_digit());
    let (mut i, mut text, mut decimals) = (from, String::new(), 0);
    loop {
        match at(i) {
            c if c.is_ascii_digit() => {
                text.push(c);
                if text.contains('.') {
                    decimals += 1;
                }
            }
            ',' if digits(i + 1, 3) && !at(i + 4).is_ascii_digit() && !text.contains('.') => {}
            '.' if at(i + 1).is_ascii_digit() && !text.contains('.') => text.push('.'),
            _ => break,
        }
        i += 1;
    }
    // "17 % 5" is a remainder, "40%" a percentage.
    let percent = at(i) == '%';
    if percent {
        i += 1;
    }
    (Token::Number { value: text.parse().unwrap_or(f64::NAN), decimals, percent }, i)
}

/// The LaTeX that stands for plain operators, rewritten; other commands stay and make their neighbourhood unknown.
pub(super) fn plain_latex(line: &str) -> String {
    if !line.contains('\\') {
        return line.to_owned();
    }
    let mut text = line.to_owned();
    for (from, to) in [
        (r"\times", "×"),
        (r"\cdot", "×"),
        (r"\div", "÷"),
        (r"\approx", "≈"),
        (r"\left", ""),
        (r"\right", ""),
        (r"\%", "%"),
        (r"\$", ""),
        (r"\,", ""),
        (r"\!", ""),
        (r"\;", " "),
        (r"\quad", " ; "),
        (r"\(", " "),
        (r"\)", " ; "),
        (r"\[", " "),
        (r"\]", " ; "),
        (r"\dfrac", r"\frac"),
        (r"\tfrac", r"\frac"),
    ] {
        text = text.replace(from, to);
    }
    for _ in 0..16 {
        let Some(simple) = fraction_once(&text) else { break };
        text = simple;
    }
    text
}

/// `\frac{a}{b}` without inner braces becomes `((a)/(b))`; innermost first.
fn fraction_once(text: &str) -> Option<String> {
    static FRACTION: LazyLock<Regex> = LazyLock::new(|| pattern(r"\\frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}"));
    FRACTION.is_match(text).then(|| FRACTION.replace_all(text, "(($1)/($2))").into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_variables_and_bold_are_told_apart() {
        let number = |value: f64| Token::Number { value, decimals: 0, percent: false };
        assert_eq!(tokenize("5 km × **2**"), [number(5.0), Token::Word, Token::Operator('*'), number(2.0)]);
        assert_eq!(tokenize("2y"), [number(2.0), Token::Unknown]);
        assert_eq!(tokenize(r"\frac{1}{2}").len(), 9);
    }
}
