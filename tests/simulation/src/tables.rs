//! Requests to DynamoDB as a lagging, conflicting, throttling service answers them.

use std::collections::BTreeMap;

use aws_smithy_runtime_api::client::result::ConnectorError;
use serde_json::{Value, json};

use crate::lock;
use crate::request::{Record, Request, key_name, key_of, statement_record, text};
use crate::wire::{Line, WireAnswer};
use crate::{contracts, estimated, hooks, items, nested, observe, transitions};

impl Line {
    pub(crate) async fn apply_dynamodb(&self, request: &Request, partial: bool) -> Result<WireAnswer, ConnectorError> {
        if partial && let Some(reply) = self.conflict(request) {
            return Ok(reply);
        }
        if !request.writes.is_empty() {
            return self.write(request, partial).await;
        }
        let mut reply = self.raw(&request.operation, &request.body).await?;
        if reply.status == 200 {
            match request.operation.as_str() {
                "GetItem" => self.age(request, &mut reply),
                "BatchGetItem" => {
                    self.age(request, &mut reply);
                    self.degrade_read(request, &mut reply, partial);
                }
                "Query" | "Scan" => self.degrade_index(request, &mut reply),
                _ => {}
            }
        }
        Ok(reply)
    }

    fn aged(&self, what: &'static str, count: u64) {
        if count > 0 {
            *lock(&self.sim.stats).faults.entry(what).or_default() += count;
            self.sim.trace.line("", &format!("  {count} {what}"));
        }
    }

    /// An index may lag.
    fn degrade_index(&self, request: &Request, reply: &mut WireAnswer) {
        let lag = self.sim.plan.index_lag;
        let lags = !self.sim.healed() && !lag.is_zero() && !request.body["IndexName"].is_null();
        if lags && self.sim.dice.chance(7_000) {
            let aged = lock(&self.sim.lag).age_index(request, &mut reply.body, lag, &self.sim.dice);
            self.aged("entries of an index that lagged", aged);
        }
    }

    /// Records that were changed just now may be as they were before, if the read need not be consistent: until everything
    /// rests, as they are behind by less than the pauses between sweeps then.
    fn age(&self, request: &Request, reply: &mut WireAnswer) {
        let lag = self.sim.plan.read_lag;
        if request.kind.ends_with(" eventual") && !lag.is_zero() && !self.sim.rests() {
            let aged = lock(&self.sim.lag).age_read(request, &mut reply.body, lag, &self.sim.dice);
            self.aged("records read as they were before", aged);
        }
    }

    /// Answers come in any order, some keys unread.
    fn degrade_read(&self, request: &Request, reply: &mut WireAnswer, partial: bool) {
        let table = request.table().to_owned();
        let Some(items) = reply.body["Responses"][&table].as_array_mut() else { return };
        items.sort_by_key(|item| key_of(&table, item));
        if self.sim.gate.is_none() {
            self.sim.dice.shuffle(items);
        }
        let keys = request.body["RequestItems"][&table]["Keys"].as_array().map_or(0, Vec::len);
        if partial && keys > 1 {
            let left = 1 + self.sim.dice.below(keys - 1);
            let mut keys = request.body["RequestItems"][&table]["Keys"].as_array().cloned().unwrap_or_default();
            keys.sort_by_key(|key| key_of(&table, key));
            self.sim.dice.shuffle(&mut keys);
            keys.truncate(left);
            items.retain(|item| !keys.iter().any(|key| key_of(&table, key) == key_of(&table, item)));
            let mut unprocessed = request.body["RequestItems"][&table].clone();
            unprocessed["Keys"] = Value::Array(keys);
            reply.body["UnprocessedKeys"] = json!({ table: unprocessed });
            self.sim.count("keys left unread");
        }
    }

    /// Refuses a request for a conflict with somebody's transaction, if it is one that can meet any.
    fn conflict(&self, request: &Request) -> Option<WireAnswer> {
        let transacted = request.writes.iter().any(|(table, _)| table == "FanoutsTable" || table == "GroupsTable");
        match request.operation.as_str() {
            "TransactWriteItems" => {
                let at = self.sim.dice.below(request.writes.len());
                let codes = ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"];
                let code = codes[self.sim.dice.below(10).saturating_sub(7)];
                let reason = |n| if n == at { json!({"Code": code}) } else { json!({"Code": "None"}) };
                let reasons: Vec<Value> = (0..request.writes.len()).map(reason).collect();
                self.sim.count("transaction cancelled");
                let name = "TransactionCanceledException";
                let body = json!({"__type": name, "Message": "injected", "CancellationReasons": reasons});
                Some(WireAnswer { status: 400, body })
            }
            "UpdateItem" if transacted => {
                self.sim.count("write met a transaction");
                Some(WireAnswer::error(400, "TransactionConflictException"))
            }
            _ => None,
        }
    }

    /// Writes, and remembers what was there before.
    async fn write(&self, request: &Request, partial: bool) -> Result<WireAnswer, ConnectorError> {
        let before = match &self.sim.gate {
            Some(gate) => gate.images(&request.writes),
            None => self.images(&request.writes).await?,
        };
        let leaving = request.writes.first().map(|record| observe::leaving(request, before.get(record)));
        let leaving = self.images(&leaving.unwrap_or_default()).await?;
        let reply = if request.operation == "BatchExecuteStatement" {
            self.statements(request, partial).await?
        } else {
            self.raw(&request.operation, &request.body).await?
        };
        if reply.status == 200 {
            observe::wrote(&mut lock(&self.sim.model), request);
            lock(&self.sim.model).produces(request);
            lock(&self.sim.model).control.switched(request);
            observe::began(&mut lock(&self.sim.model), request, &reply.body);
            for ((_, batch), record) in &leaving {
                if let Some(early) = observe::let_go(&self.sim, request, record) {
                    self.sim.violate(format!("batch {batch} was let go of {early}: {record}, {}", request.body));
                }
            }
            self.in_order(request).await?;
            self.has_enough(request);
            self.in_small_batches(request).await?;
            self.marked(request).await?;
            self.drained(request, &before).await?;
            let responses = reply.body["Responses"].as_array();
            let after = self.stands(request).await?;
            for (at, record) in request.writes.iter().enumerate() {
                if responses.and_then(|responses| responses.get(at)).is_none_or(|answer| answer["Error"].is_null()) {
                    let was = before.get(record).cloned();
                    let problem = self.problem_of(request, record, was.as_ref());
                    let earlier = lock(&self.sim.lag).wrote(record.clone(), was.clone());
                    // Where a run may end with any write each is looked at at once, elsewhere with the next one.
                    let (earlier, now) = match &after {
                        Some(after) => (Some(was), after.get(record).cloned()),
                        None => (earlier, was),
                    };
                    self.beside_others(record, earlier.as_ref(), now.as_ref()).await?;
                    let problem = problem.or_else(|| transitions::check(&self.sim, record, earlier, now.as_ref()));
                    problem.into_iter().for_each(|problem| self.sim.violate(problem));
                }
            }
        }
        Ok(reply)
    }

    /// What is wrong with a write that was applied, whatever comes after it. `was`: the record before it.
    fn problem_of(&self, request: &Request, record: &Record, was: Option<&Value>) -> Option<String> {
        contracts::check(&self.sim, request, was)
            .or_else(|| observe::expires(&self.sim, request, record, was))
            .or_else(|| items::changed(request, record, was))
            .or_else(|| nested::ends(&self.sim, request, record, was))
            .or_else(|| estimated::check::again(&self.sim, &self.worker.name, request))
            .or_else(|| hooks::given_up(&self.sim, request, record))
            .or_else(|| transitions::buried(&self.sim, request, record, was))
    }

    /// Looks at what became of a record, where others say whether that is right.
    async fn beside_others(
        &self,
        record: &Record,
        earlier: Option<&Option<Value>>,
        now: Option<&Value>,
    ) -> Result<(), ConnectorError> {
        if let Some(leader) = transitions::resigned(record, earlier, now) {
            self.has_ended(&leader).await?;
        }
        if let Some(bundle) = transitions::freed(record, earlier, now) {
            let bundle = self.images(&[bundle]).await?.into_values().next().unwrap_or_default();
            if text(&bundle, "state") != "dead" {
                self.sim.violate(format!("task {} is freed from a bundle that is not dead: {bundle}", record.1));
            }
        }
        Ok(())
    }

    /// What a small case's request has written.
    async fn stands(&self, request: &Request) -> Result<Option<BTreeMap<Record, Value>>, ConnectorError> {
        let Some(gate) = &self.sim.gate else { return Ok(None) };
        let after = self.images(&request.writes).await?;
        gate.wrote(&request.writes, &after);
        Ok(Some(after))
    }

    /// A leader that stepped down without a batch in flight must have found nothing to group, or have ended before.
    async fn has_ended(&self, batch: &str) -> Result<(), ConnectorError> {
        let record = ("BatchesTable".to_owned(), batch.to_owned());
        let batch = self.images(std::slice::from_ref(&record)).await?.remove(&record).unwrap_or_default();
        if text(&batch, "status") != "done" {
            self.sim.violate(format!("batch {} lost its lead before it was formed: {batch}", record.1));
        }
        Ok(())
    }

    /// Executes statements; some of them may be refused for a passing reason, and are not applied.
    async fn statements(&self, request: &Request, partial: bool) -> Result<WireAnswer, ConnectorError> {
        let statements = request.body["Statements"].as_array().cloned().unwrap_or_default();
        let codes = ["ThrottlingError", "TransactionConflict", "ProvisionedThroughputExceeded", "InternalServerError"];
        let refuse = |_| (partial && self.sim.dice.chance(4_000)).then(|| self.sim.dice.pick(&codes));
        let refused: Vec<Option<&str>> = (0..statements.len()).map(refuse).collect();
        let kept = statements.iter().zip(&refused).filter(|(_, refused)| refused.is_none());
        let kept: Vec<Value> = kept.map(|(statement, _)| statement.clone()).collect();
        let mut answers = Vec::new().into_iter();
        if !kept.is_empty() {
            let mut body = request.body.clone();
            body["Statements"] = Value::Array(kept);
            let mut reply = self.raw("BatchExecuteStatement", &body).await?;
            if reply.status != 200 {
                return Ok(reply);
            }
            if let Value::Array(responses) = reply.body["Responses"].take() {
                answers = responses.into_iter();
            }
        }
        let answer = |(statement, refused): (&Value, Option<&str>)| match refused {
            None => answers.next().unwrap_or_default(),
            Some(code) => {
                self.sim.count("statement refused");
                json!({"Error": {"Code": code, "Message": "injected"}, "TableName": statement_record(statement).0.0})
            }
        };
        let responses: Vec<Value> = statements.iter().zip(refused).map(answer).collect();
        Ok(WireAnswer::ok(json!({ "Responses": responses })))
    }

    /// Records as they are.
    pub(crate) async fn images(&self, records: &[Record]) -> Result<BTreeMap<Record, Value>, ConnectorError> {
        let mut tables: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        let mut sorted: Vec<&Record> = records.iter().collect();
        sorted.sort();
        sorted.dedup();
        for (table, key) in sorted {
            tables.entry(table).or_default().push(json!({ key_name(table): { "S": key } }));
        }
        let mut images = BTreeMap::new();
        for (table, keys) in tables {
            for keys in keys.chunks(100) {
                let body = json!({"RequestItems": { table: { "Keys": keys, "ConsistentRead": true } }});
                let mut reply = self.raw("BatchGetItem", &body).await?;
                if let Value::Array(items) = reply.body["Responses"][table].take() {
                    images.extend(items.into_iter().map(|item| ((table.to_owned(), key_of(table, &item)), item)));
                }
            }
        }
        Ok(images)
    }
}
