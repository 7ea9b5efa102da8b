/** A stack of this machine, as users start it; a server that answers as a test says; senders that fail as a test says. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { createInterface } from "node:readline";

import { expandRanges } from "fanfold-client";

export const FANOUT = "01890000-0000-7000-8000-00000000000a";
export const GROUP = `${FANOUT}:01890000-0000-7000-8000-00000000000b`;
export const OTHER = `${FANOUT}:01890000-0000-7000-8000-00000000000c`;

/** The group with this number. */
export const group = (number) => `${FANOUT}:01890000-0000-7000-8000-${number.toString(16).padStart(12, "0")}`;

/** Starts `fanfold up`; answers its address. It ends with the test. */
export async function stack(test) {
  const server = spawn(process.env.FANFOLD, ["up", "--listen", "127.0.0.1:0"], { stdio: ["ignore", "ignore", "pipe"] });
  test.after(async () => {
    server.kill();
    await once(server, "exit");
  });
  const [line] = await once(createInterface(server.stderr), "line");
  return /http:\S+(?=;)/.exec(line)[0];
}

/** Starts a server that gives these answers one after the other; `null` answers nothing. */
export async function scripted(test, ...answers) {
  const requests = [];
  const server = createServer(async (request, response) => {
    const chunks = await Array.fromAsync?.(request) ?? await all(request);
    const body = Buffer.concat(chunks).toString();
    requests.push({ method: request.method, path: request.url, headers: request.headers, body: body && JSON.parse(body) });
    const answer = answers.shift();
    if (!answer) return request.socket.destroy();
    response.writeHead(answer[0]).end(typeof answer[1] === "string" ? answer[1] : JSON.stringify(answer[1]));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  test.after(() => server.close());
  return { url: `http://127.0.0.1:${server.address().port}`, requests };
}

async function all(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

/** Takes messages; fails with `error` while there is one. */
export class FakeAcks {
  limit = 4_096;
  error;
  refused = [];
  bodies = [];
  came = Promise.withResolvers?.() ?? withResolvers();

  async send(messages) {
    const unsent = new Map(this.error ? messages.map((_, at) => [at, this.error]) : []);
    if (!this.error) this.bodies.push(...messages.map((message) => JSON.parse(message.body())));
    this.came.resolve();
    return { unsent, refused: this.refused.splice(0), fanouts: new Map() };
  }

  said() {
    return read(this.bodies);
  }
}

function withResolvers() {
  const made = {};
  made.promise = new Promise((resolve) => Object.assign(made, { resolve }));
  return made;
}

/** What messages say, as a server reads them: item -> field. */
export function read(bodies) {
  const said = {};
  for (const body of bodies) {
    for (const [field, entries] of Object.entries(body)) {
      for (const entry of entries) {
        for (const item of typeof entry === "string" ? expandRanges([entry]) : unmask(entry)) {
          if (item in said) throw new Error(`${item} is named twice`);
          said[item] = field;
        }
      }
    }
  }
  return said;
}

function unmask({ group, mask }) {
  const bits = Buffer.from(mask, "base64");
  if (bits.toString("base64") !== mask) throw new Error(`${mask} is not base64`);
  return Array.from({ length: 8 * bits.length }, (_, at) => at)
    .filter((at) => (bits[at >> 3] >> (at & 7)) & 1)
    .map((at) => `${group}:${at}`);
}
