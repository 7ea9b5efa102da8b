//! What a workflow does: it stands for election, and, elected, forms a batch and hands it on.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;

use super::{BATCHES, LOCKS, Plain, TASKS};
use crate::Outcome;
use crate::database::{Item, get_all, number, number_of, text, text_of};

/// Who was not elected tries again after this.
const AGAIN: Duration = Duration::from_secs(1);

impl Plain {
    /// A workflow stands for election, unless its task is in a batch by now.
    pub(super) async fn elect(&self, task: &str) -> Outcome<()> {
        let stands = self.read(TASKS, task).await?;
        if text_of(&stands, "step") != "created" {
            return Ok(());
        }
        let (target, now) = (text_of(&stands, "target"), self.world.now().0);
        let take = self.dynamodb.update_item().table_name(LOCKS).key("id", text(&target));
        let take = take
            .update_expression("SET lock_holder = :me, acquired_at = :now")
            .condition_expression("attribute_not_exists(lock_holder) OR lock_holder = :me")
            .expression_attribute_values(":me", text(task))
            .expression_attribute_values(":now", number(now));
        match take.send().await {
            Ok(_) => {}
            Err(error)
                if error.as_service_error().is_some_and(|error| error.is_conditional_check_failed_exception()) =>
            {
                return self.send(&self.elect, &[task.to_owned()], AGAIN).await;
            }
            Err(error) => return Err(error.into()),
        }
        // The batch has the leader's id: a repeated message makes no second one.
        let put = self.dynamodb.put_item().table_name(BATCHES).item("id", text(task)).item("target", text(&target));
        put.item("created_at", number(now)).send().await?;
        self.send(&self.group, &[task.to_owned()], Duration::ZERO).await
    }

    /// The leader takes tasks into its batch and hands it on. A batch that is not full waits for more until it is as old as it may
    /// get.
    pub(super) async fn group(&self, batch: &str) -> Outcome<()> {
        let stands = self.read(BATCHES, batch).await?;
        let (target, created) = (text_of(&stands, "target"), number_of(&stands, "created_at"));
        let query = self.dynamodb.query().table_name(TASKS).index_name("by_target");
        let query = query
            .key_condition_expression("target = :target AND step = :created")
            .expression_attribute_values(":target", text(&target))
            .expression_attribute_values(":created", text("created"))
            .limit(i32::try_from(self.max_batch)?);
        let found = query.send().await?.items.unwrap_or_default();
        let age = Duration::from_millis(self.world.now().0.saturating_sub(created));
        if found.len() < self.max_batch && age < self.linger {
            return self.send(&self.group, &[batch.to_owned()], AGAIN).await;
        }
        // The leader's own task first: nobody else stands for it any more.
        let others = found.iter().map(|item| text_of(item, "id")).filter(|id| id != batch);
        let chosen = std::iter::once(batch.to_owned()).chain(others).take(self.max_batch).collect();
        let members = self.advance(chosen, "created", "batched").await?;
        let list = AttributeValue::L(members.iter().map(text).collect());
        let write = self.dynamodb.update_item().table_name(BATCHES).key("id", text(batch));
        write.update_expression("SET task_ids = :list").expression_attribute_values(":list", list).send().await?;
        self.advance(members, "batched", "in_progress").await?;
        self.send(&self.handle, &[batch.to_owned()], Duration::ZERO).await?;
        let release = self.dynamodb.update_item().table_name(LOCKS).key("id", text(&target));
        let release = release.update_expression("REMOVE lock_holder, acquired_at");
        let release = release.condition_expression("lock_holder = :me").expression_attribute_values(":me", text(batch));
        release.send().await?;
        Ok(())
    }

    /// Calls the batch API for a batch.
    pub(super) async fn handle(&self, batch: &str) -> Outcome<()> {
        let stands = self.read(BATCHES, batch).await?;
        let list = stands.get("task_ids").and_then(|list| list.as_l().ok()).cloned().unwrap_or_default();
        let members: Vec<String> = list.iter().filter_map(|id| id.as_s().ok().cloned()).collect();
        // With what they are about.
        let tasks = get_all(&self.dynamodb, TASKS, &members).await?;
        self.calls.call(tasks.into_keys());
        self.advance(members, "in_progress", "succeeded").await?;
        Ok(())
    }

    async fn read(&self, table: &str, id: &str) -> Outcome<Item> {
        let get = self.dynamodb.get_item().table_name(table).key("id", text(id)).consistent_read(true);
        Ok(get.send().await?.item.unwrap_or_default())
    }
}
