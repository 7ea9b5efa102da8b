//! The notices of one invocation, by receiver. A receiver that hangs holds the invocations that call it; it may hold only
//! some of them, so that the rest serve other receivers.

use std::collections::BTreeMap;

use fanfold::delivery::Delivery;
use fanfold::limits::{NOTICE_LEASE, NOTICES_AT_ONCE_MAX, PLACE_PAUSES};
use fanfold::messages::NotifyMessage;
use fanfold::store::places::{Party, Place};
use futures::{StreamExt, stream};
use tracing::Instrument;

use crate::destinations::holds;
use crate::look::{Asked, Due};
use crate::{Notify, NotifyError};

/// A message and what became of it.
type Handled = (Delivery, NotifyMessage, Result<(), NotifyError>);

/// A message whose notice is due.
type Ready = (Delivery, NotifyMessage, Box<Due>);

impl Notify {
    /// Does what the messages of an invocation ask for.
    pub(crate) async fn process(&self, messages: Vec<(Delivery, NotifyMessage)>) -> Vec<Handled> {
        let looked = messages.into_iter().map(|(delivery, message)| async move {
            let look = async {
                match self.look(&message).await {
                    Ok(Asked::Later(wait)) => self.later(&message, message.due, wait).await.map(|()| Asked::Nothing),
                    asked => asked,
                }
            };
            let asked = look.instrument(message.about.span()).await;
            (delivery, message, asked)
        });
        let mut looked = stream::iter(looked).buffer_unordered(NOTICES_AT_ONCE_MAX);
        let mut handled = Vec::new();
        let mut receivers: BTreeMap<Option<String>, Vec<Ready>> = BTreeMap::new();
        while let Some((delivery, message, asked)) = looked.next().await {
            match asked {
                Ok(Asked::Try(due)) => {
                    receivers.entry(holds(&due.destination)).or_default().push((delivery, message, due));
                }
                Ok(_) => handled.push((delivery, message, Ok(()))),
                Err(error) => handled.push((delivery, message, Err(error))),
            }
        }
        drop(looked);
        let tries = receivers.into_iter().map(|(name, ready)| self.try_receiver(name, ready));
        let tried = stream::iter(tries).buffer_unordered(NOTICES_AT_ONCE_MAX).collect::<Vec<_>>().await;
        handled.extend(tried.into_iter().flatten());
        handled
    }

    /// Delivers to one receiver, if there is a place for this invocation; otherwise the notices wait for one, which uses up
    /// no try.
    async fn try_receiver(&self, name: Option<String>, ready: Vec<Ready>) -> Vec<Handled> {
        let Some(name) = name else { return self.try_each(ready).await };
        let now = self.world.now();
        let party = Party::Receiver(name.clone());
        let place = Place { party, record: 0, holder: self.world.uuid(), until: now.plus(NOTICE_LEASE) };
        match self.places.take_any(place, self.places_max, now, self.world.random.next()).await {
            Ok(Some(place)) => {
                let tried = self.try_each(ready).await;
                if let Err(error) = self.places.release(&place).await {
                    tracing::warn!(%error, party = ?place.party, "a place is held until its lease is over");
                }
                tried
            }
            Ok(None) => self.wait_for_place(ready).await,
            Err(error) => {
                tracing::error!(%error, receiver = name, "no place can be taken");
                self.wait_for_place(ready).await
            }
        }
    }

    async fn try_each(&self, ready: Vec<Ready>) -> Vec<Handled> {
        let tries = ready.into_iter().map(|(delivery, message, due)| async move {
            let result = self.try_once(&due).instrument(due.about.span()).await;
            (delivery, message, result)
        });
        stream::iter(tries).buffer_unordered(NOTICES_AT_ONCE_MAX).collect().await
    }

    async fn wait_for_place(&self, ready: Vec<Ready>) -> Vec<Handled> {
        let mut handled = Vec::with_capacity(ready.len());
        for (delivery, message, due) in ready {
            let again = message.turned_away();
            let wait = PLACE_PAUSES.after(again.waits, self.world.random.next());
            let result = match self.crowded(&due.about).await {
                Ok(true) => self.turn_away(&due).await,
                Ok(false) => self.later(&again, due.notice.due, wait).await,
                Err(error) => Err(error),
            };
            handled.push((delivery, message, result));
        }
        handled
    }
}
