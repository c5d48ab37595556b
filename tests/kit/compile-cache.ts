// SPDX-License-Identifier: Apache-2.0
// Programs that a test starts with an environment of their own share the compiled code of the whole run: a third of their
// processor time is compiling.

const directory = process.env["NODE_COMPILE_CACHE"];

/** Spread into the environment of a program of ours. */
export const compileCache: Readonly<Record<string, string>> =
  directory === undefined ? {} : { NODE_COMPILE_CACHE: directory };
