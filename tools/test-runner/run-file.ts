// SPDX-License-Identifier: Apache-2.0
// Runs one test file in a process of its own, with its own temporary directory, and takes away what it leaves behind.

import fs from "node:fs";
import path from "node:path";
import { run } from "node:test";
import { endLeftovers } from "./leftovers.ts";
import { type FileResult, Tally, type TestEvent } from "./tally.ts";

/** A file that takes longer hangs: it is ended, and has failed. */
const FILE_TIMEOUT_MS = 300_000;

export type RunFileOptions = {
  readonly root: string;
  /** From the root. */
  readonly file: string;
  /** Empty and of this file alone. */
  readonly directory: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly namePattern?: string;
  readonly signal: AbortSignal;
};

export async function runFile(options: RunFileOptions): Promise<FileResult> {
  const { root, file, directory, namePattern } = options;
  const began = performance.now();
  const tally = new Tally({ file, path: path.join(root, file), mayBeEmpty: namePattern !== undefined });
  const mark = `HOLDFAST_TEST_RUN=${directory}`;
  const tooLong = AbortSignal.timeout(FILE_TIMEOUT_MS);
  // Tests of one run may be of another account: what it makes in its directory it alone may remove, as in /tmp.
  fs.mkdirSync(directory);
  fs.chmodSync(directory, 0o1777);
  const events = run({
    files: [path.join(root, file)],
    cwd: root,
    env: { ...options.env, TMPDIR: directory, HOLDFAST_TEST_RUN: directory },
    signal: AbortSignal.any([options.signal, tooLong]),
    timeout: FILE_TIMEOUT_MS,
    ...(namePattern === undefined ? {} : { testNamePatterns: [namePattern] }),
  });
  for await (const event of events as AsyncIterable<TestEvent>) tally.add(event);
  if (tooLong.aborted) tally.fail("the file itself", `it took more than ${FILE_TIMEOUT_MS / 1000} s`);
  const durationMs = performance.now() - began;
  for (const { identity, command } of await endLeftovers([mark, `${directory}/`])) {
    tally.fail("the file itself", `it left process ${identity.pid} running: ${command}`);
  }
  return tally.finish(durationMs);
}
