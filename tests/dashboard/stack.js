// A stack of its own for a test: `fanfold up`, `fanfold sandbox`, a browser.
import {spawn} from "node:child_process";
import {mkdtemp, rm, writeFile} from "node:fs/promises";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {chromium} from "playwright-core";

const FANFOLD = join(import.meta.dirname, "fanfold");
const BROWSER = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

/** Starts a program at any free port, and waits for the line that has `ready` in it, and its address. Returns the process, and its URL. */
async function start(args, ready, env = {}) {
  const child = spawn(FANFOLD, [...args, "--listen", "127.0.0.1:0"], {stdio: ["ignore", "pipe", "pipe"], env: {...process.env, ...env}});
  let said = "";
  const url = await new Promise((done, failed) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (data) => {
        said += data;
        // What follows the last end of a line is not whole yet.
        const line = said.split("\n").slice(0, -1).find((line) => line.includes(ready));
        if (line) done(line.match(/http:\/\/[\d.]+:\d+/)[0]);
      });
    }
    child.on("exit", (code) => failed(new Error(`fanfold ${args[0]} ended with ${code}: ${said}`)));
  });
  return {child, url};
}

/** A stack, a batch API that the options of the sandbox describe, and a browser. */
export class Stack {
  children = [];

  static async start(sandbox = []) {
    const stack = new Stack();
    stack.folder = await mkdtemp(join(tmpdir(), "fanfold-dashboard-"));
    stack.batchApi = `${await stack.run(["sandbox", ...sandbox], "stop it with")}/batches`;
    stack.url = await stack.run(["up", "--data", stack.folder], "dashboard is at");
    stack.browser = await chromium.launch({executablePath: process.env.CHROMIUM, args: BROWSER});
    return stack;
  }

  /** Starts a program that ends with the stack. Returns its URL. */
  async run(...program) {
    const {child, url} = await start(...program);
    this.children.push(child);
    return url;
  }

  async stop() {
    await this.browser?.close();
    for (const child of this.children) child.kill("SIGTERM");
    await Promise.all(this.children.map((child) => child.exitCode ?? new Promise((done) => child.on("exit", done))));
    await rm(this.folder, {recursive: true, force: true});
  }

  /** A dashboard of this stack by a command of its own, as over a deployed stack. Returns its address. */
  dashboard() {
    return this.run(["dashboard", "--endpoint", this.url], "dashboard is at");
  }

  /** The same with the name of a deployed stack. The AWS CLI is a program that says what `cloudwatch` is, of each minute, or denies it. */
  async deployed(cloudwatch) {
    const bin = await mkdtemp(join(this.folder, "aws-"));
    const stacks = {Stacks: [{Outputs: [{OutputKey: "Url", OutputValue: this.url}]}]};
    const program = `#!${process.execPath}
      const ids = ["m0", "m1", "m2", "m3", "m4"], values = ${JSON.stringify(cloudwatch)};
      if (process.argv[2] === "cloudformation") console.log(${JSON.stringify(JSON.stringify(stacks))});
      else if (!values) { console.error("An error occurred (AccessDenied) when calling the GetMetricData operation"); process.exit(254); }
      else {
        const times = [...Array(8).keys()].map((ago) => new Date(Date.now() - ago * 60000).toISOString().replace(/:..[.].*/, ":00+00:00"));
        console.log(JSON.stringify({MetricDataResults: ids.map((Id, at) => ({Id, Timestamps: times, Values: times.map(() => values[at])}))}));
      }`;
    await writeFile(join(bin, "aws"), program, {mode: 0o755});
    return this.run(["dashboard", "--stack", "shop", "--no-sign"], "dashboard is at", {PATH: `${bin}:${process.env.PATH}`});
  }

  /** A request to the API, as any program sends it. */
  async send(method, path, body) {
    const response = await fetch(this.url + path, {method, headers: {"content-type": "application/json"},
      body: body === undefined ? undefined : JSON.stringify(body)});
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text) : null;
  }

  /** Stores a policy, by which tasks with the same `to` share batches. */
  policy(kind, more = {}) {
    return this.send("PUT", `/policies/${kind}`, {kind, target: "content.to", max_batch: 10, linger: "0s", batch_api: {url: this.batchApi}, ...more});
  }

  /** Opens a sealed fan-out with a task per item. */
  async fanout(items, kind, user_key, to = (index) => `t${index % 3}`) {
    const fanout = await this.send("POST", "/fanouts", {items, seal: true, user_key});
    const ids = fanout.groups.flatMap(({id, upto}) => Array.from({length: upto}, (_, index) => `${fanout.id}:${id}:${index}`));
    const tasks = ids.map((id, index) => ({id, kind, content: {to: to(index), n: index}}));
    for (let at = 0; at < items; at += 5000) await this.send("POST", "/tasks", {tasks: tasks.slice(at, at + 5000)});
    return fanout;
  }

  /** A page at an address of the dashboard. What the browser complains of is collected in `page.complaints`. */
  async page(hash = "#/", options = {}) {
    const context = await this.browser.newContext({viewport: {width: 1280, height: 900}, ...options});
    const page = await context.newPage();
    page.complaints = [];
    page.on("pageerror", (error) => page.complaints.push(error.message));
    page.on("console", (message) => message.type() === "error" && page.complaints.push(message.text()));
    await page.goto(`${this.url}/dashboard/${hash}`);
    return page;
  }
}
