// Fan-outs that ended and need a person: they failed or expired, or items of them failed, and nobody has reissued them.
import {gather, withQuery} from "./api.js";

const DAY = 24 * 3600 * 1000;
/** So long a reading of the lists of ended fan-outs counts: it may take ten pages. */
const KEPT = 15_000;
/** So many pages are read of each list, newest first. */
const READS = 5;

/** Whether somebody has to look at it. */
export const needsPerson = ({state, failed, missing, reissued_as: as}) =>
  !as && (state === "failed" || state === "expired" || state === "completed" && failed + missing > 0);

/** Reads them: those that ended in the last day, the latest first; and the latest that ended at all. */
export async function readWrong(signal, now = Date.now()) {
  const list = (state) => gather(withQuery("/fanouts", {state}), "fanouts", {reads: READS}, signal);
  const [cut, completed] = await Promise.all([list("failed,cancelled,expired"), list("completed")]);
  const latest = [...cut.found, ...completed.found].sort((one, other) => other.updated_at - one.updated_at);
  return {
    wrong: latest.filter((fanout) => fanout.updated_at > now - DAY && needsPerson(fanout)),
    ended: latest.slice(0, 5),
    // The lists are sorted by opening: what was opened before these, and ended today, was not seen.
    all: !cut.next && !completed.next,
    looked: cut.looked + completed.looked,
  };
}

/** The same, read again only where it may have changed: when a fan-out in progress is not any more, or some time has passed. */
export function wrongReader() {
  let [last, at, seen] = [null, 0, new Set()];
  return async (going, signal) => {
    const ids = new Set(going.map(({id}) => id));
    const gone = [...seen].some((id) => !ids.has(id));
    seen = ids;
    if (last && !gone && Date.now() - at < KEPT) return last;
    last = await readWrong(signal);
    at = Date.now();
    return last;
  };
}
