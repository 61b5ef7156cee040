//! Turns LaTeX into plain notation: `\times` into "×", `\text{km}` into "km". Fractions, roots and
//! names such as `\theta` stay as they are.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::text::pattern;

/// Returns the text in plain notation. A line break of an aligned formula and an arrow become a
/// semicolon, where an expression ends.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    static COMMAND: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"\^\{?\\circ\}?|\\(?:begin|end)\{[^}\n]*\}?|\\[dtc]?(frac|sqrt)(\d)(\d)?|\\\\[\s&]*=?|\\([A-Za-z]+|.)",
        )
    });
    let text = without_dollars(text);
    if !text.contains(['\\', '{', '~', '½', '⅓', '¼', '⅔', '¾']) {
        return text;
    }
    let mut text = plain_numbers(&text).into_owned();
    for (from, to) in [
        ("½", r"\frac{1}{2}"),
        ("⅓", r"\frac{1}{3}"),
        ("⅔", r"\frac{2}{3}"),
        ("¼", r"\frac{1}{4}"),
        ("¾", r"\frac{3}{4}"),
    ] {
        text = text.replace(from, to);
    }
    Cow::Owned(COMMAND.replace_all(&unwrapped(text), command).into_owned())
}

/// Returns the text with the separators and spaces of its numbers in plain notation: "1{,}5" is "1.5",
/// "1{,}500" and "1,\!500" are "1,500", "2\,500" is "2 500", and "5~km" is "5 km". Before three
/// digits, a comma in braces may be either sign.
pub fn plain_numbers(text: &str) -> Cow<'_, str> {
    static COMMA: LazyLock<Regex> = LazyLock::new(|| pattern(r"(\d+)(?:\{,\}|,\\!)(\d+)"));
    static SPACE: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(\d)\\[,;: ](\d|\\(?:text|mathrm)\b|[%€£$¥°]|\p{L}{2})"));
    static TIE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(\d)~([^\d\s])"));
    if !text.contains(['\\', '{', '~']) {
        return Cow::Borrowed(text);
    }
    let mut text = text.to_owned();
    let decimal = |found: &Captures<'_>| {
        let part = |n: usize| found.get(n).map_or("", |part| part.as_str());
        let may_group = part(2).len() == 3 && part(1) != "0";
        [part(1), if may_group { "," } else { "." }, part(2)].concat()
    };
    // The digits of one match may begin the next one: "1{,}234{,}567".
    while let Cow::Owned(plain) = COMMA.replace_all(&text, decimal) {
        text = plain;
    }
    let text = SPACE.replace_all(&text, "$1\u{202f}$2");
    Cow::Owned(TIE.replace_all(&text, "$1 $2").into_owned())
}

/// Returns the text without commands that only change its looks, such as `\text{...}`.
pub fn unwrapped(mut text: String) -> String {
    static GROUP: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"\\(?:text|textbf|mathrm|mathbf|mbox|boxed|operatorname)\s*\{([^{}]*(?:\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}[^{}]*)*)\}",
        )
    });
    while let Cow::Owned(bare) = GROUP.replace_all(&text, "$1") {
        text = bare;
    }
    text
}

fn command(found: &Captures<'_>) -> String {
    let part = |n: usize| found.get(n).map_or("", |part| part.as_str());
    let whole = part(0);
    if found.get(2).is_some() {
        let first = format!("\\{}{{{}}}", part(1), part(2));
        let second = found.get(3).map(|digit| match part(1) {
            "frac" => format!("{{{}}}", digit.as_str()),
            _ => digit.as_str().to_owned(),
        });
        return first + &second.unwrap_or_default();
    }
    let plain = match part(4) {
        "" if whole.starts_with('^') => "°",
        // A line ends here, unless the next one continues with a relation.
        "" if whole.ends_with('=') => "=",
        "" => ";",
        "times" | "cdot" | "ast" => "×",
        "div" => "÷",
        "approx" | "simeq" => "≈",
        "le" | "leq" | "leqslant" | "lt" => "≤",
        "ge" | "geq" | "geqslant" | "gt" => "≥",
        "quad" | "qquad" | "implies" | "Rightarrow" | "rightarrow" | "to" | "therefore"
        | "Longrightarrow" => ";",
        "left" | "right" | "displaystyle" | "big" | "Big" | "bigg" => "",
        "dfrac" | "tfrac" | "cfrac" => r"\frac",
        "circ" | "degree" => "°",
        "pi" => "π",
        "pm" | "mp" | "ldots" | "dots" | "cdots" | "sum" | "prod" | "int" | "bmod" | "pmod"
        | "mod" | "infty" | "cup" | "{" | "}" => "±",
        "%" => "%",
        "$" => "$",
        "," => "\u{202f}",
        "(" | ")" | "[" | "]" | "!" | ";" | ":" | " " => " ",
        _ => whole,
    };
    plain.to_owned()
}

/// Removes the dollar signs around mathematics; those of money stay. As in Pandoc, a sign opens
/// mathematics if no space follows it, and the next one on the line has no space before it and no
/// digit after it.
fn without_dollars(text: &str) -> Cow<'_, str> {
    if !text.contains('$') {
        return Cow::Borrowed(text);
    }
    let text = text.replace("$$", "");
    let pieces: Vec<&str> = text.split('$').collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(piece) = pieces.get(at) {
        out.push_str(piece);
        at += 1;
        let Some(inside) = pieces.get(at) else { break };
        let behind = pieces.get(at + 1);
        let is_closed = behind.is_some_and(|it| !it.starts_with(|c: char| c.is_ascii_digit()));
        let is_tight = !inside.starts_with(char::is_whitespace)
            && !inside.ends_with(|c: char| c.is_whitespace() || c == '\\');
        if is_closed && is_tight && !inside.contains('\n') && !piece.ends_with('\\') {
            out.push_str(inside);
            at += 1;
        } else {
            out.push('$');
        }
    }
    Cow::Owned(out)
}
