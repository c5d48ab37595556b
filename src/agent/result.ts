// SPDX-License-Identifier: Apache-2.0
// Reads the result that a job left in HOLDFAST_RESULT. Rule: what cannot be stored is dropped with the reason; it never keeps
// the job from ending.

import fs from "node:fs/promises";
import { JOB_RESULT_BYTES_MAX } from "../protocol/limits.ts";
import { codeOf, messageOf } from "../std/errors.ts";
import { parseJson, unstorable } from "../std/json.ts";
import type { Result } from "./outcome.ts";

const dropped = (why: string): Result => ({ problem: `the result was dropped: ${why}` });

export function parseResult(bytes: Uint8Array): Result {
  if (bytes.length > JOB_RESULT_BYTES_MAX) return dropped(`it is larger than ${JOB_RESULT_BYTES_MAX} bytes`);
  let result: unknown;
  try {
    result = parseJson(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    return dropped(error instanceof SyntaxError ? `it is not JSON (${messageOf(error)})` : "it is not UTF-8");
  }
  const [fault] = unstorable(result, "");
  if (fault !== undefined) return dropped(`${fault.place === "" ? "it" : fault.place} ${fault.problem}`);
  // Written again it may be longer than it was: 1e20 becomes 100000000000000000000.
  if (Buffer.byteLength(JSON.stringify(result)) > JOB_RESULT_BYTES_MAX)
    return dropped(`it is larger than ${JOB_RESULT_BYTES_MAX} bytes`);
  return { result };
}

/** Nothing when the job left none. */
export async function readResult(file: string): Promise<Result> {
  try {
    // A named pipe or a device in its place would block for ever.
    if (!(await fs.lstat(file)).isFile()) return dropped("it is not a plain file");
    await using handle = await fs.open(file, "r");
    const buffer = Buffer.alloc(JOB_RESULT_BYTES_MAX + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length);
      length += bytesRead;
      if (bytesRead === 0 || length === buffer.length) break;
    }
    return parseResult(buffer.subarray(0, length));
  } catch (error) {
    return codeOf(error) === "ENOENT" ? {} : dropped(`it could not be read (${messageOf(error)})`);
  }
}
