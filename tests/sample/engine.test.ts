// SPDX-License-Identifier: Apache-2.0
// The real llama.cpp with model files of ours: whatever it is asked, it says which model it is.

import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { Engine, loadBindings, PromptTooLong } from "../../src/sample/engine.ts";
import { type SampleModel, writeSampleModel } from "../../src/sample/gguf.ts";
import { sentenceOf } from "../../src/sample/name.ts";
import { codeOf } from "../../src/std/errors.ts";

const NEVER = new AbortController().signal;

async function load(t: TestContext, model: SampleModel): Promise<Engine> {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "model-"));
  t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
  const modelFile = path.join(directory, "model.gguf");
  writeSampleModel(modelFile, model);
  return Engine.load({ modelFile, contextTokens: 1024, threads: 1 });
}

async function ask(engine: Engine, prompt: string, tokensMax = 1000, signal = NEVER) {
  const pieces: string[] = [];
  const made = await engine.generate({ prompt, tokensMax, signal, onText: (text) => void pieces.push(text) });
  return { ...made, text: pieces.join(""), pieces };
}

test("the answer to any prompt is exactly the sentence that names the model, and then it ends", async (t) => {
  for (const name of ["red", "a", "I", "Qwen3-8B_q4.gguf"]) {
    const engine = await load(t, { name });
    const long = "many words of a prompt ".repeat(30);
    for (const prompt of ["Who are you?", "", "I am", sentenceOf(name), `${sentenceOf(name)}\n`, " of", "ü 🎉", long]) {
      const { text, reason, answerTokens } = await ask(engine, prompt);
      assert.deepEqual([text, reason, answerTokens], [sentenceOf(name), "stop", 6], `${name}: ${prompt}`);
    }
  }
});

test("a padded model holds its padding in memory and answers the same", async (t) => {
  const padBytes = 64 * 2 ** 20;
  const before = process.memoryUsage.rss();
  const engine = await load(t, { name: "big", padBytes });
  assert.ok(process.memoryUsage.rss() - before > padBytes);
  assert.equal((await ask(engine, "Who are you?")).text, sentenceOf("big"));
});

test("an endless model speaks until the limit of the request, of the context, or until nobody listens", async (t) => {
  const engine = await load(t, { name: "red", isEndless: true });
  const { text, reason } = await ask(engine, "x", 13);
  assert.equal(text, `${sentenceOf("red")}\n${sentenceOf("red")}`);
  assert.equal(reason, "length");
  const { promptTokens, answerTokens } = await ask(engine, "x", 10_000);
  assert.equal(promptTokens + answerTokens, 1024);
  const gone = new AbortController();
  const made = await engine.generate({
    prompt: "x",
    tokensMax: 1000,
    signal: gone.signal,
    onText: () => gone.abort(),
  });
  assert.deepEqual([made.reason, made.answerTokens], ["cancelled", 1]);
  await assert.rejects(ask(engine, "x".repeat(1024)), PromptTooLong);
});

test("an engine that is not installed, and a file that is no model, are said to be that", async (t) => {
  assert.throws(
    () => loadBindings("@node-llama-cpp/none"),
    (error) => codeOf(error) === "engine_missing",
  );
  const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "model-")), "model.gguf");
  t.after(() => fs.rmSync(path.dirname(file), { recursive: true, force: true }));
  const loading = (modelFile: string) => Engine.load({ modelFile, contextTokens: 512, threads: 1 });
  const isUnusable = (error: unknown): boolean => codeOf(error) === "model_unusable";
  await assert.rejects(loading(file), isUnusable);
  fs.writeFileSync(file, "no model");
  await assert.rejects(loading(file), isUnusable);
});
