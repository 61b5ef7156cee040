//! Cuts a formula, in LaTeX or plain notation, into numbers, names, functions and signs; `algebra` reads them.

use super::text::is_function_word;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Number(f64),
    Name(String),
    Function(Function),
    Root,
    Fraction,
    Sign(char),
    Relation(&'static str),
    Open(char),
    Close(char),
    Comma,
    Union,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Sin,
    Cos,
    Tan,
    Ln,
    Log,
    Exp,
}

fn function(name: &str) -> Option<Function> {
    Some(match name {
        "sin" => Function::Sin,
        "cos" => Function::Cos,
        "tan" => Function::Tan,
        "ln" => Function::Ln,
        "log" => Function::Log,
        "exp" => Function::Exp,
        _ => return None,
    })
}

impl Function {
    pub fn of(self, x: f64) -> f64 {
        match self {
            Function::Sin => x.sin(),
            Function::Cos => x.cos(),
            Function::Tan => x.tan(),
            Function::Ln => x.ln(),
            Function::Log => x.log10(),
            Function::Exp => x.exp(),
        }
    }
}

pub(super) fn scan(text: &str) -> Option<Vec<Token>> {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or(' ');
    let run = |from: usize, kind: fn(&char) -> bool| {
        chars.get(from..).unwrap_or_default().iter().take_while(|c| kind(c)).collect::<String>()
    };
    let mut out = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        let c = at(i);
        i += 1;
        match c {
            c if c.is_whitespace() => {}
            '0'..='9' | '.' => {
                let mut digits = run(i - 1, |c| c.is_ascii_digit() || *c == '.');
                i += digits.len() - 1;
                // "1{,}000" and "1,000" are thousands where exactly three figures follow.
                while digits.len() <= 9 && !digits.contains('.') {
                    let skip = if at(i) == '{' && at(i + 1) == ',' && at(i + 2) == '}' { 3 } else { 0 };
                    let group = run(i + skip, char::is_ascii_digit);
                    if skip == 0 || group.len() != 3 {
                        break;
                    }
                    digits.push_str(&group);
                    i += skip + 3;
                }
                out.push(Token::Number(digits.parse().ok()?));
            }
            '\\' => {
                let name = run(i, char::is_ascii_alphabetic);
                if name.is_empty() {
                    match at(i) {
                        '{' => out.push(Token::Open('s')),
                        '}' => out.push(Token::Close('s')),
                        ',' | '!' | ';' | ' ' | ':' => {}
                        _ => return None,
                    }
                    i += 1;
                    continue;
                }
                i += name.len();
                command(&name, &mut out)?;
            }
            c if c.is_alphabetic() => {
                let word = run(i - 1, |c| c.is_alphabetic());
                i += word.chars().count() - 1;
                match (c, word.as_str()) {
                    ('π', _) => out.push(Token::Number(std::f64::consts::PI)),
                    (_, "sqrt") => out.push(Token::Root),
                    (_, "pi") => out.push(Token::Number(std::f64::consts::PI)),
                    (_, word) if function(word).is_some() => out.extend(function(word).map(Token::Function)),
                    (_, word) if word.chars().count() > 2 || is_function_word(word) && word.len() > 1 => return None,
                    (_, word) => out.extend(word.chars().map(|c| Token::Name(c.to_string()))),
                }
            }
            '_' => {
                let Some(Token::Name(name)) = out.last_mut() else { return None };
                let braced = at(i) == '{';
                let index = run(i + usize::from(braced), char::is_ascii_alphanumeric);
                let index: String = if braced { index } else { index.chars().take(1).collect() };
                if index.is_empty() || braced && at(i + 1 + index.len()) != '}' {
                    return None;
                }
                name.push('_');
                name.push_str(&index);
                i += index.len() + if braced { 2 } else { 0 };
            }
            '√' => out.push(Token::Root),
            '+' | '*' | '/' | '^' => out.push(Token::Sign(c)),
            '-' | '−' => out.push(Token::Sign('-')),
            '·' | '×' | '⋅' => out.push(Token::Sign('*')),
            '²' => out.extend([Token::Sign('^'), Token::Number(2.0)]),
            '³' => out.extend([Token::Sign('^'), Token::Number(3.0)]),
            '=' => out.push(Token::Relation("=")),
            '<' if at(i) == '=' => {
                i += 1;
                out.push(Token::Relation("<="));
            }
            '>' if at(i) == '=' => {
                i += 1;
                out.push(Token::Relation(">="));
            }
            '<' => out.push(Token::Relation("<")),
            '>' => out.push(Token::Relation(">")),
            '≤' => out.push(Token::Relation("<=")),
            '≥' => out.push(Token::Relation(">=")),
            '∞' => out.push(Token::Name("infinity".to_owned())),
            '∪' => out.push(Token::Union),
            ',' | ';' => out.push(Token::Comma),
            '(' | '[' | '{' => out.push(Token::Open(c)),
            ')' | ']' | '}' => out.push(Token::Close(c)),
            _ => return None,
        }
    }
    Some(out)
}

fn command(name: &str, out: &mut Vec<Token>) -> Option<()> {
    match name {
        "frac" | "dfrac" | "tfrac" => out.push(Token::Fraction),
        "sqrt" => out.push(Token::Root),
        "cdot" | "times" => out.push(Token::Sign('*')),
        "div" => out.push(Token::Sign('/')),
        "pi" => out.push(Token::Number(std::f64::consts::PI)),
        "infty" => out.push(Token::Name("infinity".to_owned())),
        "cup" => out.push(Token::Union),
        "le" | "leq" => out.push(Token::Relation("<=")),
        "ge" | "geq" => out.push(Token::Relation(">=")),
        "lt" => out.push(Token::Relation("<")),
        "gt" => out.push(Token::Relation(">")),
        "left" | "right" | "quad" => {}
        "alpha" | "beta" | "gamma" | "delta" | "theta" | "lambda" | "mu" | "phi" | "omega" | "epsilon" | "sigma"
        | "rho" | "tau" => out.push(Token::Name(name.to_owned())),
        name => out.push(Token::Function(function(name)?)),
    }
    Some(())
}
