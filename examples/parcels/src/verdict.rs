//! What becomes of an order, and of a call. All of it follows from the request alone: the same call gets the same answer
//! before and after a restart.

use crate::order::Order;

/// The heaviest parcel a driver may lift alone.
const HEAVIEST_KG: f64 = 29.9;
/// Islands across the Pacific that no carrier of this shop serves.
const UNSERVED: [&str; 5] = ["AS", "FM", "MH", "MP", "PW"];
/// One order in so many has an address that no driver finds.
const UNDELIVERABLE_IN: u64 = 5_000;
/// One label in so many is not read at the gate, and its parcel must come with another truck.
const UNREAD_IN: u64 = 2_000;
/// One call in so many is turned away because the depot is busy.
const BUSY_IN: u64 = 25;

/// What becomes of one order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// It is on the truck.
    Loaded,
    /// It will never be on one.
    Refused(&'static str),
    /// Not on this truck, but another one may take it.
    Again(&'static str),
}

/// The verdicts on the orders of one truck, in their order.
pub(crate) fn judge(truck: &str, orders: &[Order]) -> Vec<Verdict> {
    let mut settled = false;
    orders
        .iter()
        .map(|order| {
            let verdict = match refusal(order) {
                Some(reason) => Verdict::Refused(reason),
                // Every call settles at least one order, so the next call is for another truck and fewer orders.
                None if settled && is_unread(truck, order) => Verdict::Again("label not readable, send it again"),
                None => Verdict::Loaded,
            };
            settled |= !matches!(verdict, Verdict::Again(_));
            verdict
        })
        .collect()
}

/// Why an order is refused for good, if it is.
fn refusal(order: &Order) -> Option<&'static str> {
    if order.weight_kg > HEAVIEST_KG {
        Some("parcel heavier than 29.9 kg")
    } else if UNSERVED.contains(&order.state.as_str()) {
        Some("no carrier serves the destination")
    } else if hash(&[&order.name]).is_multiple_of(UNDELIVERABLE_IN) {
        Some("address not deliverable")
    } else {
        None
    }
}

fn is_unread(truck: &str, order: &Order) -> bool {
    hash(&[truck, &order.name]).is_multiple_of(UNREAD_IN)
}

/// Whether a call is turned away for now. Attempts of one truck that follow each other are never both turned away.
pub(crate) fn is_busy(truck: &str, attempt: u32) -> bool {
    (hash(&[truck]) % BUSY_IN + u64::from(attempt)).is_multiple_of(BUSY_IN)
}

/// FNV-1a with a last mixing, for its high and low bits alone are weak. The standard library's hash may change with
/// its version; this one must give the same verdicts for ever.
fn hash(parts: &[&str]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for part in parts {
        for byte in part.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(name: &str, state: &str, weight_kg: f64) -> Order {
        Order {
            name: name.to_owned(),
            zip_code: "11742".to_owned(),
            city: "Holtsville".to_owned(),
            state: state.to_owned(),
            depot: "117".to_owned(),
            weight_text: weight_kg.to_string(),
            weight_kg,
        }
    }

    fn named(number: usize) -> Order {
        order(&format!("ORD-{number:06}"), "NY", 4.0)
    }

    #[test]
    fn reasons_follow_from_the_order() {
        assert_eq!(refusal(&order("ORD-000001", "NY", 29.9)), None);
        assert_eq!(refusal(&order("ORD-000001", "NY", 30.0)), Some("parcel heavier than 29.9 kg"));
        assert_eq!(refusal(&order("ORD-000001", "FM", 4.0)), Some("no carrier serves the destination"));
    }

    #[test]
    fn some_addresses_are_refused_and_always_the_same() {
        let refused: Vec<usize> = (1..=42_049).filter(|number| refusal(&named(*number)).is_some()).collect();
        assert_eq!(refused, [4_389usize, 16_239, 22_154, 23_687, 26_406, 27_285]);
    }

    #[test]
    fn orders_sent_again_come_to_an_end_at_the_next_truck() {
        let mut open: Vec<Order> = (0..10_000).map(named).collect();
        let first = judge("truck", &open);
        assert_eq!(first, judge("truck", &open));
        let mut round = 0;
        while !open.is_empty() {
            round += 1;
            let verdicts = judge(&format!("truck-{round}"), &open);
            let before = open.len();
            let mut verdicts = verdicts.iter();
            open.retain(|_| matches!(verdicts.next(), Some(Verdict::Again(_))));
            assert!(open.len() < before);
        }
        assert!(round > 1);
    }

    #[test]
    fn the_first_order_of_a_call_is_always_settled() {
        for number in 0..10_000 {
            let verdicts = judge("truck", &[named(number)]);
            assert!(!matches!(verdicts.as_slice(), [Verdict::Again(_)]), "{number}");
        }
    }

    #[test]
    fn a_busy_depot_takes_the_next_attempt() {
        let mut busy = 0;
        for truck in 0..2_500 {
            let truck = format!("truck-{truck}");
            for attempt in 0..BUSY_IN as u32 {
                if is_busy(&truck, attempt) {
                    busy += 1;
                    assert!(!is_busy(&truck, attempt + 1));
                }
            }
        }
        assert_eq!(busy, 2_500);
        let first = (0..2_500).filter(|truck| is_busy(&format!("truck-{truck}"), 1)).count();
        assert!((50..200).contains(&first), "{first}");
    }
}
