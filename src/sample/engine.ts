// SPDX-License-Identifier: Apache-2.0
// llama.cpp in this process, on the CPU: through the addon inside @node-llama-cpp/linux-*, without the package around it, which
// would bring 30 others and an install script. Rule: the addon's calls are its package's own affair, so its version is pinned
// to the digit; what is used of it is written down in Bindings and nowhere else. Source: llama/addon of node-llama-cpp 3.22.1.

import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { Failure, messageOf } from "../std/errors.ts";

type Model = {
  init(): Promise<boolean>;
  tokenize(text: string, hasSpecialTokens: boolean): Uint32Array;
  detokenize(tokens: Uint32Array, hasSpecialTokens: boolean): string;
  tokenBos(): number;
  shouldPrependBosToken(): boolean;
  isEogToken(token: number): boolean;
};

type Context = {
  init(): Promise<boolean>;
  initBatch(size: number): void;
  /** Returns the places of the logits that were asked for. */
  addToBatch(sequence: number, position: number, tokens: Uint32Array, logits: Uint32Array): Uint32Array;
  decodeBatch(): Promise<void>;
  sampleToken(place: number, sampler: Sampler): Promise<number>;
  disposeSequence(sequence: number): void;
};

type Sampler = { applyConfig(config: { readonly temperature: number }): void };

type Bindings = {
  readonly AddonModel: new (file: string, options: object) => Model;
  readonly AddonContext: new (model: Model, options: object) => Context;
  readonly AddonSampler: new (model: Model) => Sampler;
  setLoggerLogLevel(level: number): void;
  loadBackends(directory?: string): void;
  init(): Promise<void>;
};

const BATCH_TOKENS = 128;
const SEQUENCE = 0;
const LOG_ERRORS = 2;

export type EngineOptions = {
  readonly modelFile: string;
  /** Prompt and answer together. */
  readonly contextTokens: number;
  readonly threads: number;
};

export type Generation = {
  readonly promptTokens: number;
  readonly answerTokens: number;
  /** stop: the model ended it. length: a limit did. cancelled: the signal did. */
  readonly reason: "stop" | "length" | "cancelled";
};

export type Wanted = {
  readonly prompt: string;
  readonly tokensMax: number;
  readonly signal: AbortSignal;
  readonly onText: (text: string) => Promise<void> | void;
};

/** The prompt alone fills the context. */
export class PromptTooLong extends Error {}

/** One model, one generation at a time. */
export class Engine {
  readonly #model: Model;
  readonly #context: Context;
  readonly #sampler: Sampler;
  readonly #contextTokens: number;

  private constructor(bindings: Bindings, model: Model, context: Context, contextTokens: number) {
    this.#model = model;
    this.#context = context;
    this.#contextTokens = contextTokens;
    this.#sampler = new bindings.AddonSampler(model);
    this.#sampler.applyConfig({ temperature: 0 });
  }

  static async load(options: EngineOptions): Promise<Engine> {
    const { modelFile, contextTokens, threads } = options;
    const bindings = loadBindings();
    checkModelFile(modelFile);
    await bindings.init();
    // Without mmap: memory that is taken shows as memory of this process.
    const model = new bindings.AddonModel(modelFile, { addonExports: bindings, gpuLayers: 0, useMmap: false });
    if (!(await model.init())) throw unusable(modelFile, "llama.cpp does not load it");
    const context = new bindings.AddonContext(model, {
      contextSize: contextTokens,
      batchSize: BATCH_TOKENS,
      sequences: 1,
      flashAttention: "auto",
      threads,
    });
    if (!(await context.init())) throw unusable(modelFile, `no room for a context of ${contextTokens} tokens`);
    return new Engine(bindings, model, context, contextTokens);
  }

  /** Greedy: the same prompt gives the same text. */
  async generate({ prompt, tokensMax, signal, onText }: Wanted): Promise<Generation> {
    const model = this.#model;
    const begin = model.shouldPrependBosToken() ? [model.tokenBos()] : [];
    const prompted = Uint32Array.from([...begin, ...model.tokenize(prompt, false)]);
    const promptTokens = prompted.length;
    if (promptTokens >= this.#contextTokens)
      throw new PromptTooLong(`a prompt of ${promptTokens} tokens, and the context holds ${this.#contextTokens}`);
    const text = new TextOfTokens(model);
    const limit = Math.min(tokensMax, this.#contextTokens - promptTokens);
    const told = (reason: Generation["reason"], answerTokens: number): Generation => ({
      promptTokens,
      answerTokens,
      reason,
    });
    this.#context.disposeSequence(SEQUENCE);
    let next = prompted;
    let position = 0;
    for (let made = 0; ; made++) {
      if (made >= limit) return told("length", made);
      const place = await this.#decode(next, position, signal);
      if (place === undefined) return told("cancelled", made);
      position += next.length;
      const token = await this.#context.sampleToken(place, this.#sampler);
      if (token < 0 || model.isEogToken(token)) return told("stop", made);
      const piece = text.add(token);
      if (piece !== "") await onText(piece);
      next = Uint32Array.of(token);
    }
  }

  /** Returns where the logits of the last token are; undefined when it was cancelled. */
  async #decode(tokens: Uint32Array, position: number, signal: AbortSignal): Promise<number | undefined> {
    let place: number | undefined;
    for (let at = 0; at < tokens.length; at += BATCH_TOKENS) {
      if (signal.aborted) return undefined;
      const batch = tokens.slice(at, at + BATCH_TOKENS);
      const isLast = at + BATCH_TOKENS >= tokens.length;
      this.#context.initBatch(batch.length);
      const logits = isLast ? Uint32Array.of(batch.length - 1) : new Uint32Array();
      [place] = this.#context.addToBatch(SEQUENCE, position + at, batch, logits);
      await this.#context.decodeBatch();
    }
    return place;
  }
}

/** Whole characters only: the bytes of one may come in several tokens. */
class TextOfTokens {
  readonly #model: Model;
  #before: readonly number[] = [];
  #open: number[] = [];

  constructor(model: Model) {
    this.#model = model;
  }

  add(token: number): string {
    this.#open.push(token);
    // With the token before it, so that a space between two words is not taken for one at the start of a text.
    const known = this.#text(this.#before);
    const text = this.#text([...this.#before, ...this.#open]).slice(known.length);
    if (text.endsWith("\uFFFD") && this.#open.length < 4) return "";
    this.#before = [token];
    this.#open = [];
    return text;
  }

  #text(tokens: readonly number[]): string {
    return this.#model.detokenize(Uint32Array.from(tokens), false);
  }
}

function checkModelFile(file: string): void {
  const magic = Buffer.alloc(4);
  try {
    const fd = fs.openSync(file, "r");
    try {
      fs.readSync(fd, magic);
    } finally {
      fs.closeSync(fd);
    }
  } catch (error) {
    throw unusable(file, messageOf(error), error);
  }
  if (magic.toString("latin1") !== "GGUF") throw unusable(file, "it is no GGUF");
}

function unusable(file: string, why: string, cause?: unknown): Failure {
  return new Failure("model_unusable", `${file} cannot be served: ${why}`, { cause });
}

/** Of this machine's architecture unless another package is named. */
export function loadBindings(name = `@node-llama-cpp/linux-${process.arch}`): Bindings {
  const require = createRequire(import.meta.url);
  let directory: string;
  try {
    directory = path.join(path.dirname(require.resolve(name)), "..", "bins", path.basename(name));
  } catch (error) {
    throw new Failure("engine_missing", `${name} is not installed: it has the engine of sample models`, {
      cause: error,
    });
  }
  try {
    const bindings = require(path.join(directory, "llama-addon.node")) as Bindings;
    bindings.setLoggerLogLevel(LOG_ERRORS);
    bindings.loadBackends();
    bindings.loadBackends(directory);
    return bindings;
  } catch (error) {
    throw new Failure("engine_missing", `the engine in ${name} cannot be loaded: ${messageOf(error)}`, {
      cause: error,
    });
  }
}
