// SPDX-License-Identifier: Apache-2.0
// What can be known of a model's command before it is started: the program, its directory, the model files that it names. The
// scene that serves now must not be stopped for a command that cannot work.

import fs from "node:fs";
import path from "node:path";
import type { Fault } from "../std/errors.ts";
import type { Environment } from "./expand.ts";
import { MODEL_FILE, type ModelFiles } from "./model-file.ts";

const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

type Command = {
  readonly argv: readonly string[];
  readonly environment: Environment;
  readonly workingDirectory: string | undefined;
  readonly at: (...steps: readonly (string | number)[]) => string;
  readonly files: ModelFiles;
};

export function argumentFaults(command: Command): readonly Fault[] {
  const { argv, environment, workingDirectory, at } = command;
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
    const problem = index === 0 ? undefined : modelFileFault(command, argument);
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

/** A file of weights must be there, be what its name says, and be whole. */
function modelFileFault({ workingDirectory, files }: Command, argument: string): string | undefined {
  const named = MODEL_FILE.exec(argument)?.[1];
  if (named === undefined || named.includes("://")) return undefined;
  return files.fault(path.resolve(workingDirectory ?? "/", named));
}

/** llama-server without a model becomes a router that loads whatever it is asked for: never what a scene wants. */
function routerFault(argv: readonly string[]): string | undefined {
  if (path.basename(argv[0] ?? "") !== "llama-server") return undefined;
  const names = /^(-m|--model|-hf|-hfr|--hf-repo|-mu|--model-url|-dr|--docker-repo)(=|$)/;
  return argv.some((argument) => names.test(argument))
    ? undefined
    : "llama-server is given no model (-m FILE or -hf REPO)";
}
