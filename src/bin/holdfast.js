#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The command as npm installs it. Plain JavaScript that any Node from 18 on can parse: it runs holdfast.ts on Node 24, and
// where it was started by an older one, it starts itself again on the runtime that npm installed beside it.

import { spawn } from "node:child_process";
import fs from "node:fs";
import module from "node:module";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

/** 24.7 is the first with argon2 in node:crypto. */
const RUNTIME = "24.7";
/** sysexits(3): EX_UNAVAILABLE. */
const NO_RUNTIME = 69;
const FORWARDED = ["SIGINT", "SIGTERM", "SIGHUP"];

if (isAtLeast(process.versions.node, RUNTIME)) {
  cacheCompiledCode();
  await import("./holdfast.ts");
} else {
  runOn(pinnedRuntime());
}

function isAtLeast(version, wanted) {
  const [major, minor] = version.split(".").map(Number);
  const [wantedMajor, wantedMinor] = wanted.split(".").map(Number);
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
}

/** The program's own cache in the user's home: what lies in a shared /tmp could have been put there by somebody else. */
function cacheCompiledCode() {
  if (process.env.NODE_COMPILE_CACHE !== undefined || process.env.NODE_DISABLE_COMPILE_CACHE !== undefined) return;
  const cache = process.env.XDG_CACHE_HOME || (process.env.HOME && path.join(process.env.HOME, ".cache"));
  if (!cache || !path.isAbsolute(cache)) return;
  const directory = path.join(cache, "holdfast", "compiled");
  try {
    fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
    const { uid, mode } = fs.statSync(directory);
    if (uid === process.getuid() && (mode & 0o022) === 0) module.enableCompileCache(directory);
  } catch {
    // A home that cannot be written costs some milliseconds at each start, nothing else.
  }
}

function pinnedRuntime() {
  const name = `node-linux-${process.arch}`;
  try {
    const manifest = module.createRequire(import.meta.url).resolve(`${name}/package.json`);
    const runtime = path.join(path.dirname(manifest), "bin", "node");
    fs.accessSync(runtime, fs.constants.X_OK);
    return runtime;
  } catch {
    process.stderr.write(
      `holdfast: needs Node ${RUNTIME}, this is ${process.versions.node} and ${name} is not installed: ` +
        `run npm install --include=optional, or use Node ${RUNTIME} from https://nodejs.org\n`,
    );
    process.exit(NO_RUNTIME);
  }
}

function runOn(runtime) {
  const program = fileURLToPath(import.meta.url);
  const rest = process.argv.slice(2);
  if (typeof process.execve === "function") {
    // Same pid, nothing left between the terminal and the program. The warning that execve is experimental helps nobody here.
    process.emitWarning = () => {};
    process.execve(runtime, [runtime, program, ...rest], process.env);
  }
  const child = spawn(runtime, [program, ...rest], { stdio: "inherit" });
  for (const signal of FORWARDED) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => {
    process.stderr.write(`holdfast: cannot start ${runtime}: ${error.message}\n`);
    process.exit(NO_RUNTIME);
  });
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    for (const name of FORWARDED) process.removeAllListeners(name);
    process.kill(process.pid, signal);
    // A signal that does not end this process (SIGSTOP cannot get here): the shell's convention for one that did.
    setTimeout(() => process.exit(128 + (os.constants.signals[signal] ?? 0)), 100);
  });
}
