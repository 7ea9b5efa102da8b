//! Percentages on the command line.

use std::str::FromStr;

/// A percentage with two decimals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Percent {
    /// Hundredths of a percent, from 0 to [`Percent::WHOLE`].
    hundredths: u32,
}

impl Percent {
    /// 100 %, in hundredths of a percent.
    pub(super) const WHOLE: u32 = 10_000;

    /// Whether a draw from 0 to [`Percent::WHOLE`] - 1 is among so many percent.
    pub(super) fn has(self, draw: u32) -> bool {
        draw < self.hundredths
    }
}

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || "a percentage from `0%` to `100%` is expected, with at most two decimals, such as `0.5%`".to_owned();
        let number = text.strip_suffix('%').ok_or_else(wrong)?.trim_end();
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(decimals) || decimals.len() > 2 || whole.len() > 3 {
            return Err(wrong());
        }
        let parse = |text: &str| text.parse::<u32>().map_err(|_| wrong());
        let hundredths = parse(whole)? * 100 + parse(&format!("{decimals:0<2}"))?;
        if hundredths > Self::WHOLE { Err(wrong()) } else { Ok(Self { hundredths }) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_read_exactly() {
        for (text, hundredths) in
            [("0%", 0), ("1%", 100), ("0.5%", 50), ("12.34%", 1_234), ("100%", 10_000), ("7 %", 700)]
        {
            assert_eq!(text.parse::<Percent>().unwrap(), Percent { hundredths }, "{text}");
        }
        for text in ["", "%", "1", "-1%", "100.01%", "1.234%", "1,5%", "1.%", ".5%", "9999%", "٣%"] {
            assert!(text.parse::<Percent>().unwrap_err().contains("`0.5%`"), "{text}");
        }
    }

    #[test]
    fn a_draw_is_among_so_many_percent() {
        let percent: Percent = "0.5%".parse().unwrap();
        assert_eq!((0..Percent::WHOLE).filter(|draw| percent.has(*draw)).count(), 50);
        assert!(!Percent::default().has(0));
    }
}
