/** Errors. All of them are `FanfoldError`s. */

import type { Fanout } from "./models.js";

/** Every error of this client. */
export class FanfoldError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** A problem document (RFC 9457). */
export interface Problem {
  readonly code?: string;
  readonly detail?: string;
  readonly message?: string;
  readonly errors?: readonly { readonly field: string; readonly problem: string }[];
}

/** The API returned a problem. */
export class ApiError extends FanfoldError {
  /** The problem's name; codes never change. Empty if something in front of Fanfold answered. */
  readonly code: string;
  readonly detail: string;
  /** The fields that cannot be used. */
  readonly errors: NonNullable<Problem["errors"]>;

  constructor(
    request: string,
    readonly status: number,
    problem: Problem,
  ) {
    const [code, detail] = [problem.code ?? "", problem.detail ?? problem.message ?? JSON.stringify(problem)];
    const errors = problem.errors ?? [];
    const fields = errors.slice(0, 10).map((error) => `; ${error.field}: ${error.problem}`);
    super(`${request}: ${status} ${code}: ${detail}${fields.join("")}`);
    this.code = code;
    this.detail = detail;
    this.errors = errors;
  }
}

/** The request got no answer, retries included (counts are not retried). It may have been carried out. */
export class Unreachable extends FanfoldError {}

/** The fan-out had not ended when the time was up. */
export class NotEnded extends FanfoldError {
  constructor(
    /** The fan-out in its last known state. */
    readonly fanout: Fanout,
  ) {
    super(`fan-out ${fanout.id} has not ended: ${fanout.state}, ${fanout.done} of ${fanout.total} done`);
  }
}

/** Items of a group whose acks were refused, because they do not exist (any more). */
export interface Refused {
  /** `<fanout>:<group>`. */
  readonly group: string;
  /** Their indexes (`5`) and ranges of them (`7-9`). Empty if the response does not name them. */
  readonly items: readonly string[];
  readonly problem: string;
}

/** Some acks name items that do not exist. All others were applied. Repeating these changes nothing, so the buffer dropped them. */
export class AcksRefused extends FanfoldError {
  constructor(readonly refused: readonly Refused[]) {
    super(
      refused
        .slice(0, 10)
        .map((one) => one.problem)
        .join("; "),
    );
  }
}

/** Some acks could not be sent. The buffer keeps them: flush it again. */
export class AcksNotSent extends FanfoldError {
  constructor(
    /** How many acks the buffer holds. */
    readonly items: number,
    readonly causes: readonly unknown[],
    /** Acks that were sent but refused. */
    readonly refused: readonly Refused[] = [],
  ) {
    const said = new Set(causes.map((cause) => (cause instanceof Error ? cause.message : String(cause))));
    super(`${items} acks could not be sent: ${[...said].join("; ")}`, { cause: causes[0] });
  }
}
