/** What can go wrong. All errors are `FanfoldError`s. */

import type { Fanout } from "./models.js";

/** Anything that this client throws. */
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

/** The API answered with a problem. */
export class ApiError extends FanfoldError {
  /** Names the kind of problem; it never changes. Empty if something before Fanfold answered. */
  readonly code: string;
  readonly detail: string;
  /** The fields that are wrong. */
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

/** No answer came, however often the request was repeated. It may have been carried out. */
export class Unreachable extends FanfoldError {}

/** The time is up, and the fan-out has not ended. */
export class NotEnded extends FanfoldError {
  constructor(
    /** The fan-out as it was last seen. */
    readonly fanout: Fanout,
  ) {
    super(`fan-out ${fanout.id} has not ended: ${fanout.state}, ${fanout.done} of ${fanout.total} done`);
  }
}

/** Items of a group whose acks were refused: they do not exist (any more). */
export interface Refused {
  /** `<fanout>:<group>`. */
  readonly group: string;
  /** Their indexes, alone (`5`) or as ranges (`7-9`). Empty if the answer does not name them. */
  readonly items: readonly string[];
  readonly problem: string;
}

/**
 * Some acks name items that do not exist. All others were sent. Repeating them changes nothing, so that they are no longer in
 * the buffer.
 */
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

/** Some acks could not be sent. They are still in the buffer: flush it again. */
export class AcksNotSent extends FanfoldError {
  constructor(
    /** How many acks wait in the buffer. */
    readonly items: number,
    readonly causes: readonly unknown[],
    /** Acks that were sent, but refused. */
    readonly refused: readonly Refused[] = [],
  ) {
    const said = new Set(causes.map((cause) => (cause instanceof Error ? cause.message : String(cause))));
    super(`${items} acks could not be sent: ${[...said].join("; ")}`, { cause: causes[0] });
  }
}
