// SPDX-License-Identifier: Apache-2.0
// scenes.yaml as people get it: the commented example and the schema for editors, a first file, one made from llama-swap's. Each
// passes `scene check`.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { Ajv, type AnySchemaObject } from "ajv";
import { isMap, isSeq, parse, parseDocument } from "yaml";
import { parseRegistry } from "../../src/scenes/registry.ts";
import { createSceneMachine, type SceneMachine } from "./kit.ts";

const docs = (name: string): string => fileURLToPath(new URL(`../../docs/${name}`, import.meta.url));

/** A machine that has what files name: a llama-server and weights. */
async function equipped(t: TestContext): Promise<SceneMachine> {
  const machine = await createSceneMachine(t);
  for (const name of ["bin", "models"]) fs.mkdirSync(path.join(machine.root, name));
  fs.writeFileSync(path.join(machine.root, "bin", "llama-server"), "#!/bin/sh\nexec sleep 60\n", { mode: 0o755 });
  for (const name of ["chat", "embed"])
    fs.writeFileSync(path.join(machine.root, "models", `${name}.gguf`), "GGUF and more");
  fs.writeFileSync(path.join(machine.root, "scenes.env"), "CHAT_KEY=one\nHF_TOKEN='two'\n", { mode: 0o600 });
  return machine;
}

/** The keys of every object that a schema describes. */
function keysOf(schema: AnySchemaObject): readonly string[] {
  const {
    properties = {},
    patternProperties = {},
    anyOf = [],
    items,
  } = schema as {
    properties?: Record<string, AnySchemaObject>;
    patternProperties?: Record<string, AnySchemaObject>;
    anyOf?: readonly AnySchemaObject[];
    items?: AnySchemaObject;
  };
  const parts = [
    ...Object.values(properties),
    ...Object.values(patternProperties),
    ...anyOf,
    ...(items ? [items] : []),
  ];
  return [...Object.keys(properties), ...parts.flatMap(keysOf)];
}

function keysIn(node: unknown): readonly string[] {
  if (isSeq(node)) return node.items.flatMap(keysIn);
  if (!isMap(node)) return [];
  return node.items.flatMap(({ key, value }) => [String(key), ...keysIn(value)]);
}

test("the commented example has every key, and passes the schema for editors, the parser and scene check", async (t) => {
  const machine = await equipped(t);
  const text = fs.readFileSync(docs("scenes.example.yaml"), "utf8");
  const schema = JSON.parse(fs.readFileSync(docs("scenes.schema.json"), "utf8")) as AnySchemaObject;
  const check = new Ajv({ allErrors: true, strict: false }).compile(schema);
  assert.ok(check(parse(text)), JSON.stringify(check.errors));
  const written = new Set(keysIn(parseDocument(text).contents));
  assert.deepEqual(
    keysOf(schema).filter((key) => !written.has(key)),
    [],
    "keys that the example lacks",
  );
  const env = { HOME: machine.root };
  const registry = parseRegistry(text, path.join(machine.root, "scenes.yaml"), { env });
  assert.deepEqual([...registry.scenes.keys()], ["talk", "search"]);
  assert.equal(registry.models.get("chat")?.environment["LLAMA_API_KEY"], "one");
  machine.write(text);
  assert.match(await machine.ok("scene", "check"), /No fault in 2 scenes/);
  assert.ok(!check({ ...parse(text), colour: 1 }), "a key that is not known");
});

test("the committed schema is the one that the program checks with", () => {
  const tool = fileURLToPath(new URL("../../tools/scenes-schema.ts", import.meta.url));
  const { status, stderr } = spawnSync(process.execPath, [tool, "--check"], { encoding: "utf8" });
  assert.equal(status, 0, stderr);
});

test("names and amounts that cannot be used are faults, not a crash and not a default", async (t) => {
  const machine = await equipped(t);
  machine.write({
    models: { "a b": 5, ok: { argv: ["sleep", "1"], port: 9001, marker: "ok" } },
    scenes: { "c d": 5, one: { models: ["ok"] } },
  });
  const names = await machine.run("scene", "check", "--json");
  assert.equal(names.code, 109, names.stderr);
  assert.match(names.stderr, /"a b\\?" is no name that can be used here|a b/);
  assert.match(names.stderr, /c d/);
  machine.write({
    floor: "99999999999TB",
    models: { ok: { argv: ["sleep", "1"], port: 9001, marker: "ok", stall_timeout: "0s", stop_grace: "0s" } },
    scenes: { one: { models: ["ok"] } },
  });
  const amounts = await machine.run("scene", "check");
  assert.equal(amounts.code, 109);
  assert.match(amounts.stderr, /:\d+:\d+: 99999999999TB is no size that can be used/);
  assert.match(amounts.stderr, /:\d+:\d+: 0s is no time above zero that can be used/);
  assert.match(amounts.stderr, /has 2 faults/);
});

test("scene init writes a file that passes scene check, and overwrites none", async (t) => {
  const machine = await equipped(t);
  const file = path.join(machine.root, "scenes.yaml");
  const init = ["scene", "init", "--server", path.join(machine.root, "bin", "llama-server")];
  await machine.ok(...init, "--model", path.join(machine.root, "models", "chat.gguf"));
  assert.match(await machine.ok("scene", "check"), /No fault in 1 scene\./);
  assert.match(await machine.ok("scene", "list"), /main +chat +main → chat/);
  const before = fs.readFileSync(file, "utf8");
  const again = await machine.run(...init);
  assert.match(again.stderr, /is there already; it is not overwritten/);
  assert.equal(fs.readFileSync(file, "utf8"), before);
});

const SWAP = (bin: string, models: string): string => `
healthCheckTimeout: 90
startPort: 9100
macros:
  server: ${bin}/llama-server --port \${PORT}
models:
  "Qwen/Big": { cmd: "\${server} -m ${models}/chat.gguf --alias big", ttl: 300 }
  small: { cmd: "\${server} -m ${models}/chat.gguf", env: ["A=1"], checkEndpoint: none }
  embed: { cmd: "\${server} -m ${models}/embed.gguf # --no", aliases: [e] }
  rerank: { cmd: "\${server} -m ${models}/embed.gguf", cmdStop: "pkill it" }
groups:
  together: { swap: false, members: [small, embed, gone] }
  one-of: { swap: true, members: [small, rerank] }
matrix:
  vars: { b: "Qwen/Big", e: embed, r: rerank }
  sets: { mix: "b & (e | r)" }
hooks: {}
`;

test("scene import turns models, groups and matrix of llama-swap into scenes that pass scene check, and tells the rest", async (t) => {
  const machine = await equipped(t);
  const source = path.join(machine.root, "config.yaml");
  fs.writeFileSync(source, SWAP(path.join(machine.root, "bin"), path.join(machine.root, "models")));
  const imported = await machine.run("scene", "import", source, "--listen", "127.0.0.1:8099");
  assert.equal(imported.code, 0, imported.stderr);
  for (const note of [
    /Qwen\/Big is called Qwen-Big/,
    /ttl of Qwen\/Big was left out/,
    /cmdStop of rerank was left out/,
    /aliases of embed were left out/,
    /group together names gone, which is no model/,
    /hooks has no counterpart/,
  ])
    assert.match(imported.stderr, note);
  const listed = JSON.parse(await machine.ok("scene", "list", "--json")) as { name: string; models: string[] }[];
  assert.deepEqual(Object.fromEntries(listed.map(({ name, models }) => [name, models])), {
    together: ["small", "embed"],
    "one-of-small": ["small"],
    "one-of-rerank": ["rerank"],
    mix: ["Qwen-Big", "embed"],
    "mix-2": ["Qwen-Big", "rerank"],
  });
});
