// A BullMQ flow: one parent with a child per item. Usage: node flow.js PORT FILE, a JSON list of items.
// Prints how long it took from the first request to the parent's end, and how often which job was done.
import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { FlowProducer, Worker } from "bullmq";

const [port, file] = [Number(process.argv[2]), process.argv[3]];
const connection = { host: "127.0.0.1", port, maxRetriesPerRequest: null };
const items = JSON.parse(readFileSync(file, "utf8"));

// The children's worker has a process of its own.
const worker = fork(new URL("worker.js", import.meta.url), [String(port)]);
await once(worker, "message");

let counts;
const ended = new Promise((resolve) => {
  new Worker("parents", async (job) => {
    counts = await job.getDependenciesCount({ processed: true, unprocessed: true });
    resolve();
  }, { connection });
});
const began = performance.now();
const flow = new FlowProducer({ connection });
const children = items.map((data) => ({ name: "item", queueName: "items", data }));
await flow.add({ name: "all", queueName: "parents", children });
const added = performance.now();
await ended;
const over = performance.now();
worker.send("report");
const [done] = await once(worker, "message");
worker.kill();
await once(worker, "exit");
console.log(JSON.stringify({
  items: items.length,
  seconds: (over - began) / 1000,
  adding_seconds: (added - began) / 1000,
  done: done.done,
  processed: counts.processed,
}));
process.exit(0);
