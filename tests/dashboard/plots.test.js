// What the plots of the dashboard compute, without a browser.
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {test} from "node:test";

// The module as it is, but for what it imports: that needs a page.
const source = readFileSync(`${process.env.PAGE}/plots.js`, "utf8").replace(/^import .*$/gm, "").replace(/^export function Plots[^]*$/m, "");
const {between, parseMetrics, path, pointOf, readingOf} = await import(`data:text/javascript,${encodeURIComponent(source)}`);

const text = `# HELP fanfold_items_acked Items.
# TYPE fanfold_items_acked counter
fanfold_items_acked 300
fanfold_batch_size_bucket{le="5"} 2
fanfold_batch_size_sum 90
fanfold_batch_size_count 4
`;

test("counters become rates and averages", () => {
  const now = readingOf(parseMetrics(text), 12_000);
  assert.deepEqual(now, {at: 12_000, done: 300, members: 90, batches: 4, waited: 0, called: 0});
  const before = {...now, at: 10_000, done: 100, members: 30, batches: 1};
  assert.deepEqual(between(before, now), {at: 12_000, rate: 100, size: 20, wait: null});
});

test("a rate does not jump between the moments at which acks are applied", () => {
  const at = (seconds, done) => ({...readingOf(new Map(), seconds * 1000), done});
  const readings = [at(0, 0), at(2, 2000), at(4, 2000), at(6, 6000), at(8, 8000)];
  assert.deepEqual([2, 3, 4, 5].map((number) => Math.round(pointOf(readings.slice(0, number)).rate)), [1000, 500, 1000, 1000]);
});

test("a line is interrupted where nothing happened", () => {
  assert.equal(path([1, 2, null, 1], 2).match(/M/g).length, 2);
  assert.equal(path([null, null], 0), "");
  assert.ok(!path([0, 0], 0).includes("NaN"));
});
