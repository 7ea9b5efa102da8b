/** The README's examples, as they stand there and `run` has compiled them: a producer and a worker, over queues that are here. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";

import { Fanfold } from "fanfold-client";
import { stack } from "./helpers.js";

/** Starts a server that is SQS to a client: it hands what comes to a queue to `take`, by the queue's name. */
async function queues(test, take) {
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const { QueueUrl, MessageBody, Entries } = JSON.parse(Buffer.concat(chunks).toString());
    const md5 = (text) => createHash("md5").update(text).digest("hex");
    const sent = async (body, id) => {
      await take(QueueUrl.split("/").at(-1), body);
      return { Id: id, MessageId: md5(body), MD5OfMessageBody: md5(body) };
    };
    const answer = Entries
      ? { Successful: await Promise.all(Entries.map((entry) => sent(entry.MessageBody, entry.Id))), Failed: [] }
      : await sent(MessageBody);
    response.writeHead(200, { "content-type": "application/x-amz-json-1.0" }).end(JSON.stringify(answer));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  test.after(() => server.close());
  return `http://127.0.0.1:${server.address().port}`;
}

test("the examples run as they stand", { timeout: 120_000 }, async (test) => {
  const url = await stack(test);
  const fanfold = new Fanfold(url);
  const said = [];
  let handler, came = 0;
  const sqs = await queues(test, async (queue, body) => {
    if (queue === "acks") {
      assert.deepEqual((await fanfold.ack(JSON.parse(body))).refused, []);
      return;
    }
    const record = { messageId: String(came++), body, attributes: { ApproximateReceiveCount: "1" } };
    assert.deepEqual(await handler({ Records: [record] }), { batchItemFailures: [] });
  });
  Object.assign(process.env, {
    FANFOLD_URL: url, JOBS_QUEUE_URL: `${sqs}/123456789012/jobs`, ACK_QUEUE_URL: `${sqs}/123456789012/acks`,
    AWS_ENDPOINT_URL_SQS: sqs, AWS_REGION: "eu-west-1", AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test",
  });
  test.mock.method(console, "log", (...words) => said.push(words));
  ({ handler } = await import("./readme/worker.js"));
  // What follows the producer in the README goes on with its client and its fan-out, and is compiled with it.
  await import("./readme/producer.js");
  assert.deepEqual(said, [...Array(3).fill(["rendering", "a"]), ["completed", 3, 0], [["catalog 7"]]]);
});
