// Reissues: what failed or is missing is called again, of one fan-out or of many, in one way.
import {send} from "./api.js";

/** How many items a reissue would call again. */
export const reissuable = ({ended, failed, missing, reissued_as: as}) => ended && !as ? failed + missing : 0;

/** Reissues what failed in a fan-out, and what is missing in it. */
export const reissue = (fanout, more, signal) => send("POST", `/fanouts/${fanout.id}/reissue`, {missing: fanout.missing > 0, ...more}, signal);
