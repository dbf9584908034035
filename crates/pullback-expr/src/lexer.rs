//! Text to tokens.

use crate::problem::{Problem, Span};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind<'a> {
    Number(f64),
    Name(&'a str),
    /// A sign or a bracket.
    Sign(&'static str),
    /// The end of a line, where it ends a statement.
    Line,
    End,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub kind: Kind<'a>,
    pub span: Span,
}

/// The longer before those that they begin with.
const SIGNS: &[&str] = &[
    "**", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "^", "@", "<", ">", "=", "(", ")", "[", "]", ",",
    ";", ":", "'",
];

/// Signs that people copy from elsewhere.
const ALIASES: &[(char, &str)] =
    &[('×', "*"), ('·', "*"), ('⋅', "*"), ('−', "-"), ('÷', "/"), ('≤', "<="), ('≥', ">="), ('≠', "!=")];

pub(crate) fn tokens(text: &str) -> Result<Vec<Token<'_>>, Problem> {
    let mut out: Vec<Token> = Vec::new();
    let mut at = 0;
    // Inside brackets a line goes on.
    let mut open = 0usize;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let start = at;
        let kind = if c == '\n' {
            at += 1;
            if open > 0 {
                continue;
            }
            Kind::Line
        } else if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        } else if c == '#' {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        } else if c.is_ascii_digit() || (c == '.' && rest[1..].starts_with(|d: char| d.is_ascii_digit())) {
            at += number_length(rest);
            number(&text[start..at], Span::new(start, at))?
        } else if c.is_alphabetic() || c == '_' {
            let more = |c: char| c.is_alphanumeric() || c == '_';
            at += rest.find(|c| !more(c)).unwrap_or(rest.len());
            Kind::Name(&text[start..at])
        } else if let Some(sign) = SIGNS.iter().find(|s| rest.starts_with(**s)) {
            at += sign.len();
            match *sign {
                "(" | "[" => open += 1,
                ")" | "]" => open = open.saturating_sub(1),
                _ => {}
            }
            Kind::Sign(if *sign == "**" { "^" } else { sign })
        } else if let Some((_, sign)) = ALIASES.iter().find(|(a, _)| *a == c) {
            at += c.len_utf8();
            Kind::Sign(sign)
        } else {
            let span = Span::new(at, at + c.len_utf8());
            return Err(Problem::at(span, format!("the character {c:?} has no meaning here")));
        };
        out.push(Token { kind, span: Span::new(start, at) });
    }
    out.push(Token { kind: Kind::End, span: Span::new(text.len(), text.len()) });
    Ok(out)
}

/// Digits, a point, an exponent.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |mut at: usize| {
        while at < bytes.len() && bytes[at].is_ascii_digit() {
            at += 1;
        }
        at
    };
    let mut at = digits(0);
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1);
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let end = digits(at + 1 + sign);
        // Without digits it is a name that follows.
        if end > at + 1 + sign {
            at = end;
        }
    }
    at
}

fn number(text: &str, span: Span) -> Result<Kind<'_>, Problem> {
    match text.parse::<f64>() {
        Ok(v) if v.is_finite() => Ok(Kind::Number(v)),
        Ok(_) => {
            Err(Problem::at(span, "the number is too large for 64 bits").help("the largest is about 1.8e308"))
        }
        Err(_) => Err(Problem::at(span, "this is not a number")),
    }
}
