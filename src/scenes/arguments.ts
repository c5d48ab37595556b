// SPDX-License-Identifier: Apache-2.0
// What can be known of a model's command before it is started: the program, its directory, the model files that it names. The
// scene that serves now must not be stopped for a command that cannot work.

import fs from "node:fs";
import path from "node:path";
import type { Fault } from "../std/errors.ts";
import type { Environment } from "./expand.ts";

const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const GGUF = Buffer.from("GGUF");

type Command = {
  readonly argv: readonly string[];
  readonly environment: Environment;
  readonly workingDirectory: string | undefined;
  readonly at: (...steps: readonly (string | number)[]) => string;
};

export function argumentFaults({ argv, environment, workingDirectory, at }: Command): readonly Fault[] {
  const faults: Fault[] = [];
  const [program = ""] = argv;
  const missing = programFault(program, environment["PATH"] ?? DEFAULT_PATH, workingDirectory);
  if (missing !== undefined) faults.push({ place: at("argv", 0), problem: missing });
  if (
    workingDirectory !== undefined &&
    fs.statSync(workingDirectory, { throwIfNoEntry: false })?.isDirectory() !== true
  )
    faults.push({ place: at("cwd"), problem: `${workingDirectory} is not a directory` });
  for (const [index, argument] of argv.entries()) {
    const problem = index === 0 ? undefined : modelFileFault(argument, workingDirectory);
    if (problem !== undefined) faults.push({ place: at("argv", index), problem });
  }
  const router = routerFault(argv);
  if (router !== undefined) faults.push({ place: at("argv"), problem: router });
  return faults;
}

function programFault(program: string, search: string, workingDirectory: string | undefined): string | undefined {
  if (program.includes("/")) {
    const file = path.resolve(workingDirectory ?? "/", program);
    return isProgram(file) ? undefined : `${file} is not a program that this account can run`;
  }
  const found = search.split(":").some((directory) => isProgram(path.join(directory, program)));
  return found ? undefined : `no program ${program} in ${search}`;
}

function isProgram(file: string): boolean {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

/** A file of weights must be there, and be what its name says. */
function modelFileFault(argument: string, workingDirectory: string | undefined): string | undefined {
  const named = /^(?:--[\w-]+=)?(.+\.(?:gguf|safetensors))$/i.exec(argument)?.[1];
  if (named === undefined || named.includes("://")) return undefined;
  const file = path.resolve(workingDirectory ?? "/", named);
  try {
    const { size } = fs.statSync(file);
    if (size === 0) return `${file} is empty`;
    if (!/\.gguf$/i.test(file)) return undefined;
    const fd = fs.openSync(file, "r");
    try {
      const head = Buffer.alloc(GGUF.length);
      fs.readSync(fd, head);
      return head.equals(GGUF) ? undefined : `${file} is no GGUF file: it does not begin with GGUF`;
    } finally {
      fs.closeSync(fd);
    }
  } catch {
    return `${file} cannot be read`;
  }
}

/** llama-server without a model becomes a router that loads whatever it is asked for: never what a scene wants. */
function routerFault(argv: readonly string[]): string | undefined {
  if (path.basename(argv[0] ?? "") !== "llama-server") return undefined;
  const names = /^(-m|--model|-hf|-hfr|--hf-repo|-mu|--model-url|-dr|--docker-repo)(=|$)/;
  return argv.some((argument) => names.test(argument))
    ? undefined
    : "llama-server is given no model (-m FILE or -hf REPO)";
}
