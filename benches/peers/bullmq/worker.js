// Takes the children: nothing is to be done for an item.
import { Worker } from "bullmq";

const connection = { host: "127.0.0.1", port: Number(process.argv[2]), maxRetriesPerRequest: null };
let done = 0;
const worker = new Worker("items", async () => { done += 1; }, { connection, concurrency: 100 });
await worker.waitUntilReady();
process.send("ready");
process.on("message", () => process.send({ done }));
