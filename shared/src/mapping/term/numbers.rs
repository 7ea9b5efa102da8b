//! Numbers: whole ones of up to 64 bits, signed or not, and fractions.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::node::Operator;

/// A number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Num {
    Whole(i128),
    Fraction(f64),
}

impl Num {
    pub(super) fn of(value: &Value) -> Option<Self> {
        let Value::Number(number) = value else { return None };
        let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
        whole.map(Self::Whole).or_else(|| number.as_f64().map(Self::Fraction))
    }

    /// None: it is too large.
    pub(super) fn value(self) -> Option<Value> {
        match self {
            Self::Whole(whole) => {
                let signed = i64::try_from(whole).map(Number::from);
                signed.or_else(|_| u64::try_from(whole).map(Number::from)).ok().map(Value::Number)
            }
            Self::Fraction(fraction) => Number::from_f64(fraction).map(Value::Number),
        }
    }

    fn fraction(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Fraction(fraction) => fraction,
        }
    }

    pub(super) fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) => Some(one.cmp(&other)),
            _ => self.fraction().partial_cmp(&other.fraction()),
        }
    }

    pub(super) fn negative(self) -> Self {
        match self {
            Self::Whole(whole) => Self::Whole(-whole),
            Self::Fraction(fraction) => Self::Fraction(-fraction),
        }
    }

    /// A whole number with a whole one, or a fraction with a fraction, as in CEL.
    pub(super) fn calculate(self, operator: Operator, other: Self) -> Result<Self, String> {
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) => {
                if other == 0 && matches!(operator, Operator::Over | Operator::Rest) {
                    return Err("divides by 0".to_owned());
                }
                let result = match operator {
                    Operator::Plus => one.checked_add(other),
                    Operator::Minus => one.checked_sub(other),
                    Operator::Times => one.checked_mul(other),
                    Operator::Over => one.checked_div(other),
                    _ => one.checked_rem(other),
                };
                result.map(Self::Whole).ok_or_else(|| "gives a number that is too large".to_owned())
            }
            (Self::Fraction(one), Self::Fraction(other)) => match operator {
                Operator::Plus => Ok(Self::Fraction(one + other)),
                Operator::Minus => Ok(Self::Fraction(one - other)),
                Operator::Times => Ok(Self::Fraction(one * other)),
                Operator::Over => Ok(Self::Fraction(one / other)),
                _ => Err("has no rest of a fraction; `int(…)` makes whole numbers".to_owned()),
            },
            _ => Err("mixes a whole number with a fraction; `double(…)` and `int(…)` make one of the other".to_owned()),
        }
    }
}
