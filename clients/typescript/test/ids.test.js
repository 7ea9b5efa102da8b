import assert from "node:assert/strict";
import { test } from "node:test";

import { expand, expandRanges, parseItem } from "fanfold-client";
import { FANOUT, GROUP } from "./helpers.js";

test("groups are expanded in order", () => {
  const groups = [{ id: "a", upto: 2 }, { id: "b", upto: 1 }];
  assert.deepEqual([...expand("f", groups)], ["f:a:0", "f:a:1", "f:b:0"]);
  assert.deepEqual([...expand("f", [])], []);
});

test("ranges are expanded in order", () => {
  const items = [...expandRanges([`${GROUP}:3-5`, `${GROUP}:7167`, `${GROUP}:9-9`])];
  assert.deepEqual(items, [3, 4, 5, 7167, 9].map((index) => `${GROUP}:${index}`));
});

test("an item id is read", () => {
  assert.deepEqual(parseItem(`${GROUP}:7167`), { group: GROUP, index: 7_167 });
});

test("what is no item id is refused", () => {
  const tails = ["", ":", ":7168", ":01", ":+1", ":-1", ":1:2", ":1-2", ":1 ", ":1\n", ":١"];
  for (const text of ["", FANOUT, `${GROUP.toUpperCase()}:1`, ...tails.map((tail) => GROUP + tail)]) {
    assert.throws(() => parseItem(text), /is not an item id/, text);
  }
});

test("what is no range is refused", () => {
  for (const tail of ["5-4", "5-7168", "5-", "1-2-3"]) {
    assert.throws(() => [...expandRanges([`${GROUP}:${tail}`])], /is not an item id/, tail);
  }
});
