//! The words of a term.

/// A word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Name(String),
    Text(String),
    Whole(u64),
    Fraction(f64),
    /// An operator or a bracket.
    Sign(&'static str),
}

/// Signs, longer ones before their beginnings.
const SIGNS: [&str; 24] = [
    "==", "!=", "<=", ">=", "&&", "||", ".?", "[?", "<", ">", "!", "+", "-", "*", "/", "%", "?", ":", "(", ")", "[",
    "]", ",", ".",
];

/// The words of a text.
pub(super) fn split(source: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = source.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, after) = match first {
            '\'' | '"' => text(rest, first)?,
            '0'..='9' => number(rest)?,
            'a'..='z' | 'A'..='Z' | '_' => {
                let end =
                    rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(rest.len());
                (Token::Name(rest[..end].to_owned()), &rest[end..])
            }
            _ => {
                let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
                let sign = sign.ok_or_else(|| format!("has `{first}`, which is not part of an expression"))?;
                (Token::Sign(sign), &rest[sign.len()..])
            }
        };
        tokens.push(token);
        rest = after.trim_start();
    }
    Ok(tokens)
}

/// A text between quotes.
fn text(source: &str, quote: char) -> Result<(Token, &str), String> {
    let mut text = String::new();
    let mut letters = source.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            _ if letter == quote => return Ok((Token::Text(text), &source[at + 1..])),
            '\\' => text.push(match letters.next() {
                Some((_, 'n')) => '\n',
                Some((_, 'r')) => '\r',
                Some((_, 't')) => '\t',
                Some((_, escaped @ ('\\' | '\'' | '"'))) => escaped,
                other => {
                    let other = other.map(|(_, letter)| letter.to_string()).unwrap_or_default();
                    return Err(format!("has `\\{other}` in a text; there are \\n, \\r, \\t, \\\\, \\' and \\\""));
                }
            }),
            letter => text.push(letter),
        }
    }
    Err(format!("has a text without its closing {quote}"))
}

/// A number; the letter `u`, by which CEL marks its unsigned ones, may follow.
fn number(source: &str) -> Result<(Token, &str), String> {
    let digits = |text: &str| text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let mut end = digits(source);
    let mut whole = true;
    if let Some(after) = source[end..].strip_prefix('.').filter(|after| digits(after) > 0) {
        end += 1 + digits(after);
        whole = false;
    }
    if let Some(after) = source[end..].strip_prefix(['e', 'E']) {
        let signed = after.strip_prefix(['+', '-']).unwrap_or(after);
        if digits(signed) > 0 {
            end += 1 + (after.len() - signed.len()) + digits(signed);
            whole = false;
        }
    }
    let (written, rest) = source.split_at(end);
    let too_large = || format!("has the number {written}, which is too large");
    if !whole {
        let number: f64 = written.parse().map_err(|_| too_large())?;
        return if number.is_finite() { Ok((Token::Fraction(number), rest)) } else { Err(too_large()) };
    }
    let rest = rest.strip_prefix('u').unwrap_or(rest);
    Ok((Token::Whole(written.parse().map_err(|_| too_large())?), rest))
}
