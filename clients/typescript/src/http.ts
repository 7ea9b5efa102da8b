/** Requests to the HTTP API: signed for AWS_IAM unless the API is on this machine, and retried. */

import { createHash, createHmac } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { SQSClient, type SQSClientConfig } from "@aws-sdk/client-sqs";
import { SignatureV4 } from "@smithy/signature-v4";

import { ApiError, FanfoldError, type Problem, Unreachable } from "./errors.js";
import type { Json } from "./models.js";

const AGAIN = new Set([429, 500, 502, 503, 504]);
const REGION = /\.execute-api\.([a-z0-9-]+)\./;

export interface HttpOptions {
  readonly credentials: SQSClientConfig["credentials"] | undefined;
  readonly region: string | undefined;
  readonly sign: boolean | undefined;
  readonly attempts: number;
  readonly timeout: number;
}

/** The client of one API. */
export class Http {
  readonly #url: URL;
  readonly #signer: SignatureV4 | undefined;

  constructor(
    url: string,
    readonly options: HttpOptions,
  ) {
    const parsed = URL.canParse(url) ? new URL(url) : undefined;
    if (!parsed || !["http:", "https:"].includes(parsed.protocol)) {
      throw new TypeError(`url: \`${url}\`: the address of the HTTP API is expected, such as http://localhost:8080`);
    }
    if (!(options.attempts >= 1)) throw new RangeError(`attempts: ${options.attempts}: at least 1 is expected`);
    this.#url = parsed;
    const local = ["localhost", "127.0.0.1", "[::1]"].includes(parsed.hostname);
    if (options.sign ?? !local) this.#signer = signer(options, REGION.exec(parsed.hostname)?.[1]);
  }

  /**
   * Returns the response's document. Retries with the same headers after no answer that can be read, 429, 500, 502, 503 and 504;
   * with `once`, only after 429, when nothing was done. Throws `ApiError`, `Unreachable`.
   */
  async call(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
    { once = false }: { readonly once?: boolean } = {},
  ): Promise<Json> {
    const data = body === undefined ? undefined : JSON.stringify(body);
    const sent = data === undefined ? headers : { "content-type": "application/json", ...headers };
    for (let attempt = 1; ; attempt++) {
      const last = attempt >= this.options.attempts;
      try {
        const answer = await this.#send(method, path, data, sent);
        if (answer.status < 300) return answer.document;
        const again = once ? answer.status === 429 : AGAIN.has(answer.status);
        if (last || !again) throw new ApiError(`${method} ${path}`, answer.status, answer.document);
      } catch (error) {
        if (error instanceof FanfoldError) throw error;
        const why = error instanceof Error ? (error.cause ?? error) : error;
        const times = `${attempt} attempt${attempt > 1 ? "s" : ""}`;
        if (last || once) throw new Unreachable(`${method} ${path}: no answer after ${times}: ${why}`, { cause: error });
      }
      await pause(attempt);
    }
  }

  async #send(method: string, path: string, body: string | undefined, headers: Record<string, string>) {
    const url = new URL(this.#url.href.replace(/\/+$/, "") + path);
    const signed = this.#signer ? await sign(this.#signer, method, url, body, headers) : headers;
    const answer = await fetch(url, {
      method,
      headers: signed,
      body: body ?? null,
      redirect: "manual",
      signal: AbortSignal.timeout(this.options.timeout),
    });
    const text = await answer.text();
    const document = object(text);
    // It was cut off, or something in front of Fanfold answered. The request may have been carried out.
    if (document === undefined && answer.ok) throw new Error(`the answer cannot be read: ${text.slice(0, 1_000)}`);
    return { status: answer.status, document: document ?? { detail: text.slice(0, 1_000) } };
  }
}

/** Pauses before the next attempt: up to 0.2 s, doubling to 5 s. */
export async function pause(attempt: number): Promise<void> {
  await sleep((0.5 + Math.random() / 2) * Math.min(200 * 2 ** (attempt - 1), 5_000));
}

function object(text: string): (Json & Problem) | undefined {
  try {
    const read: unknown = JSON.parse(text);
    return typeof read === "object" && read !== null && !Array.isArray(read) ? (read as Json) : undefined;
  } catch {
    return undefined;
  }
}

/** Signs with the credentials that the SDK finds: environment, profile, the function's role. */
function signer(options: HttpOptions, regionOfUrl: string | undefined): SignatureV4 {
  const region = regionOfUrl ?? options.region;
  const sdk = new SQSClient({
    ...(region === undefined ? {} : { region }),
    ...(options.credentials === undefined ? {} : { credentials: options.credentials }),
  });
  return new SignatureV4({
    service: "execute-api",
    region: async () => sdk.config.region(),
    credentials: async () => sdk.config.credentials(),
    sha256: Sha256,
  });
}

async function sign(v4: SignatureV4, method: string, url: URL, body: string | undefined, headers: Record<string, string>) {
  const request = {
    method,
    protocol: url.protocol,
    hostname: url.hostname,
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    headers: { ...headers, host: url.host },
    body,
  };
  try {
    const { host: _, ...signed } = (await v4.sign(request)).headers;
    return signed;
  } catch (error) {
    throw new FanfoldError(`the request cannot be signed: ${error instanceof Error ? error.message : error}`, { cause: error });
  }
}

/** SHA-256, or HMAC-SHA-256 if there is a secret, in the form that the signer needs. */
class Sha256 {
  readonly #hash;
  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash("sha256") : createHmac("sha256", secret as string | NodeJS.ArrayBufferView);
  }
  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(data as string | NodeJS.ArrayBufferView);
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
  reset(): void {}
}
