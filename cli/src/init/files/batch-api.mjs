/** The batch API: gets each batch as a whole, and returns an outcome per member. */
import { createServer } from "node:http";

/** Your work. Returns an outcome per content. */
function handle(target, contents) {
  console.log(`${target}: ${contents.length} orders`);
  return contents.map((content) =>
    Number(content.kg) > 30 ? { outcome: "failed", error: "heavier than 30 kg" } : { outcome: "succeeded" },
  );
}

const server = createServer(async (request, response) => {
  let text = "";
  for await (const part of request) text += part;
  const { target, members } = JSON.parse(text);
  // The header Idempotency-Key is the same whenever a call is repeated: with it, work is done once.
  const outcomes = handle(target, members.map((member) => member.content));
  const answer = { members: members.map((member, n) => ({ id: member.id, ...outcomes[n] })) };
  response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(answer));
});

server.listen(Number(process.env.PORT), "127.0.0.1");
