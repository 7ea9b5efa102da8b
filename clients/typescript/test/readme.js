/**
 * Writes the README's examples as programs: the worker, and the producer with what goes on with its client and its fan-out.
 *
 * usage: node readme.js README FOLDER
 */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

const [readme, folder] = process.argv.slice(2);
const blocks = [...readFileSync(readme, "utf8").matchAll(/```typescript\n(.*?)```/gs)].map(([, block]) => block);
if (blocks.length !== 4) throw new Error(`the README has ${blocks.length} examples, this knows 4`);
const [producer, worker, ...others] = blocks;
mkdirSync(folder, { recursive: true });
writeFileSync(`${folder}/worker.ts`, worker);
writeFileSync(`${folder}/producer.ts`, [producer, ...others].join("\n"));
