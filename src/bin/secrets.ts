// SPDX-License-Identifier: Apache-2.0
// Asks for secrets: on a terminal without echo, else a line of standard input for each.

import { isCancel, password } from "@clack/prompts";
import { Failure } from "../std/errors.ts";

const LENGTH_MAX = 4096;

/** One answer a question; fewer when a pipe holds fewer lines. */
export async function readSecrets(questions: readonly string[]): Promise<readonly string[]> {
  if (!process.stdin.isTTY) return readLines(questions.length);
  const answers: string[] = [];
  for (const message of questions) {
    const answer = await password({ message, output: process.stderr });
    if (isCancel(answer)) throw new Failure("usage", "nothing was changed");
    answers.push(answer);
  }
  return answers;
}

async function readLines(count: number): Promise<readonly string[]> {
  let text = "";
  for await (const piece of process.stdin) {
    text += String(piece);
    if (text.length > LENGTH_MAX) throw new Failure("usage", "standard input holds more than was asked for");
  }
  const lines = text.replace(/\n$/, "").split("\n");
  return text === "" ? [] : lines.slice(0, count);
}
