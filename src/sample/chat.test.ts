// SPDX-License-Identifier: Apache-2.0
// What a sample server takes for a question, and what it refuses.

import assert from "node:assert/strict";
import { test } from "node:test";
import { readAsked } from "./chat.ts";

const chat = (body: object) => readAsked("chat", JSON.stringify(body));
const user = (content: unknown) => [{ role: "user", content }];

test("reads a prompt from messages, parts of messages, or a prompt, and what is not said has its default", () => {
  const read = chat({ messages: [...user("a"), ...user([{ type: "text", text: "b" }])], unknown: true });
  assert.deepEqual(read, {
    kind: "asked",
    asked: { prompt: "a\nb", tokensMax: Number.MAX_SAFE_INTEGER, isStream: false, isUsageWanted: false },
  });
  const text = readAsked("text", '{"prompt":"c","stream":true,"max_tokens":2,"stream_options":{"include_usage":true}}');
  assert.deepEqual(text, {
    kind: "asked",
    asked: { prompt: "c", tokensMax: 2, isStream: true, isUsageWanted: true },
  });
});

test("refuses what is no question and says why", () => {
  const refusals: readonly (readonly [string, RegExp])[] = [
    ["{", /no JSON/],
    ["[]", /no JSON object/],
    ["{}", /messages/],
    ['{"messages":[]}', /messages/],
    ['{"messages":[7]}', /messages/],
    [JSON.stringify({ messages: user("a"), max_tokens: 0 }), /max_tokens/],
    [JSON.stringify({ messages: user("a"), stream: "yes" }), /stream/],
  ];
  for (const [body, why] of refusals) {
    const read = readAsked("chat", body);
    assert(read.kind === "refused", body);
    assert.match(read.why, why);
  }
});
