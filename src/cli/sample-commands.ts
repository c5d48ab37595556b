// SPDX-License-Identifier: Apache-2.0
// sample write | serve: a model file and a model server to try scenes with, without a model of one's own and without a GPU.

import path from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import { SAMPLE_NAME, sentenceOf } from "../sample/name.ts";
import { sizeText } from "../std/units.ts";
import { example, type Tree } from "./command.ts";
import { parseSize, parseWhole } from "./units.ts";

const PORT_MAX = 65_535;
const CONTEXT_MAX = 65_536;

type WriteOptions = { readonly out: string; readonly pad?: number; readonly endless?: boolean };

type ServeOptions = {
  readonly model: string;
  readonly alias?: string;
  readonly host: string;
  readonly port: number;
  readonly context: number;
  readonly threads: number;
};

export function addSampleCommands(program: Command, tree: Tree): void {
  const sample = program
    .command("sample")
    .helpGroup("Samples:")
    .description("A model and a model server to try scenes with, on the CPU");
  example(sample, "holdfast sample write red --out red.gguf", "holdfast sample serve --model red.gguf --port 9001");
  addWrite(sample, tree);
  addServe(sample, tree);
}

function addWrite(sample: Command, { terminal, programs }: Tree): void {
  const write = sample
    .command("write")
    .description("Write a model file whose every answer is one sentence with its name")
    .argument("<name>", "what the model calls itself", parseName)
    .requiredOption("--out <file>", "where to write it")
    .option("--pad <size>", "as many zeros more, which a server loads: for trying what fits a memory", parseSize)
    .option("--endless", "say the sentence again and again, until the limit of the request or the context")
    .action(async (name: string, { out, pad, endless }: WriteOptions) => {
      const sizeBytes = await programs.writeSample({
        name,
        file: out,
        padBytes: pad ?? 0,
        isEndless: endless === true,
      });
      terminal.stdout.write(`${out}: ${sizeText(sizeBytes)}; it answers "${sentenceOf(name)}"\n`);
    });
  example(write, "holdfast sample write red --out red.gguf", "holdfast sample write big --out big.gguf --pad 4GiB");
}

function addServe(sample: Command, { programs, setExitCode }: Tree): void {
  const serve = sample
    .command("serve")
    .description("Serve a model file with llama.cpp on the CPU, in the OpenAI way")
    .requiredOption("--model <file>", "the model file, a GGUF")
    .option("--alias <name>", "its id in /v1/models (default: the file's name without .gguf)")
    .option("--host <address>", "address to listen on", "127.0.0.1")
    .option("--port <number>", "port to listen on; 0 for any that is free", parseWhole(0, PORT_MAX), 8080)
    .option("--context <tokens>", "prompt and answer together", parseWhole(64, CONTEXT_MAX), 8192)
    .option("--threads <n>", "processors to compute with", parseWhole(1, 256), 1)
    .action(async ({ model, alias, host, port, context, threads }: ServeOptions) =>
      setExitCode(
        await programs.serveSample({
          modelFile: model,
          alias: alias ?? path.basename(model, ".gguf"),
          host,
          port,
          contextTokens: context,
          threads,
        }),
      ),
    );
  example(serve, "holdfast sample serve --model red.gguf --alias red --port 9001");
}

function parseName(text: string): string {
  if (!SAMPLE_NAME.test(text))
    throw new InvalidArgumentError("It is up to 40 letters, digits, dots, dashes and underscores.");
  return text;
}
