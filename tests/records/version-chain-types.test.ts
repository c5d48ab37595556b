// SPDX-License-Identifier: Apache-2.0
// What must not compile: a version without its conversion, numbers that do not rise, a wire conversion that may fail. Runs the
// real compiler with the project's own flags over small files; the right form must compile, so that a refusal means something.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { cleanupOf } from "../kit/cleanup.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

const HEAD = `
import { codecOf, count, struct, text } from "${root}src/records/shape.ts";
import { recordChain, wireChain } from "${root}src/records/version-chain.ts";
const one = codecOf(struct({ name: text(9) }), 99);
const two = codecOf(struct({ name: text(9), age: count(9) }), 99);
const may = { from: (body: { readonly name: string }) => ({ kind: "converted" as const, body: { ...body, age: 0 } }),
  back: ({ name }: { readonly name: string }) => ({ name }) };
const sure = { from: (body: { readonly name: string }) => ({ ...body, age: 0 }), back: may.back };
`;

const RIGHT = {
  record: "export const chain = recordChain(1, one).next(2, two, may);",
  "record with a gap": "export const chain = recordChain(3, one).next(40, two, may);",
  wire: "export const chain = wireChain(1, one).next(2, two, sure);",
  "body of the newest":
    "export const body: number = ((d) => d.kind === 'ok' ? d.body.age : 0)(recordChain(1, one).next(2, two, may).decode(new Uint8Array()));",
};

const WRONG = {
  "no conversion": "export const chain = recordChain(1, one).next(2, two);",
  "no way back": "export const chain = recordChain(1, one).next(2, two, { from: may.from });",
  "equal numbers": "export const chain = recordChain(2, one).next(2, two, may);",
  "falling numbers": "export const chain = recordChain(3, one).next(2, two, may);",
  "falling behind a right one":
    "export const chain = recordChain(1, one).next(4, two, may).next(3, two, { from: (body) => ({ kind: 'converted', body }), back: (body) => body });",
  "number known at run time only":
    "declare const n: number; export const chain = recordChain(1, one).next(n, two, may);",
  "either of two numbers": "declare const n: 2 | 1; export const chain = recordChain(1, one).next(n, two, may);",
  "version zero": "export const chain = recordChain(0, one);",
  "version zero on the wire": "export const chain = wireChain(0, one);",
  "wire with a conversion that may fail": "export const chain = wireChain(1, one).next(2, two, may);",
  "wire with none": "export const chain = wireChain(1, one).next(2, two, { from: () => undefined, back: may.back });",
  "wire with equal numbers": "export const chain = wireChain(2, one).next(2, two, sure);",
  "conversion from another body":
    "export const chain = recordChain(1, two).next(2, one, { from: (body: { readonly other: string }) => ({ kind: 'converted' as const, body: { name: body.other } }), back: () => ({ other: '' }) });",
};

test("a version without its conversion, a number that does not rise and a wire conversion that may fail do not compile", (t) => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "types-"));
  cleanupOf(t).defer(() => fs.rmSync(directory, { recursive: true, force: true }));
  fs.writeFileSync(path.join(directory, "package.json"), '{ "type": "module" }');
  const nameOf = (kind: string, name: string): string => `${kind}-${name.replaceAll(" ", "-")}.ts`;
  for (const [kind, files] of Object.entries({ right: RIGHT, wrong: WRONG }))
    for (const [name, text] of Object.entries(files))
      fs.writeFileSync(path.join(directory, nameOf(kind, name)), HEAD + text);
  const config = {
    extends: `${root}tsconfig.json`,
    compilerOptions: { typeRoots: [`${root}node_modules/@types`], noUnusedLocals: false },
    include: [`${directory}/*.ts`],
  };
  fs.writeFileSync(path.join(directory, "tsconfig.json"), JSON.stringify(config));
  const tsc = path.join(root, "node_modules/.bin/tsc");
  const { stdout } = spawnSync(tsc, ["-p", directory, "--pretty", "false"], {
    encoding: "utf8",
    cwd: directory,
    timeout: 120_000,
  });
  const failed = new Set([...stdout.matchAll(/^([\w-]+\.ts)\(/gm)].map((match) => match[1]));
  for (const name of Object.keys(RIGHT))
    assert.ok(!failed.has(nameOf("right", name)), `must compile: ${name}\n${stdout}`);
  for (const name of Object.keys(WRONG))
    assert.ok(failed.has(nameOf("wrong", name)), `must not compile: ${name}\n${stdout}`);
  assert.equal(failed.size, Object.keys(WRONG).length, stdout);
});
