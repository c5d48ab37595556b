// SPDX-License-Identifier: Apache-2.0
// Files of weights, before a server is given them: there, what their names say, and as long as their own heads say. Rules: only
// the head is read, whatever the size; a head is read again only when the file has changed; all parts of a split model count.

import fs from "node:fs";
import { codeOf } from "../std/errors.ts";
import { BadHead, CutOff, FileHead } from "./model-file-head.ts";
import { GGUF_MAGIC, ggufLength } from "./model-file-gguf.ts";
import { safetensorsLength } from "./model-file-safetensors.ts";

/** An argument that names a file of weights, alone or as --option=FILE; group 1 is the file. */
export const MODEL_FILE = /^(?:--[\w-]+=)?(.+\.(?:gguf|safetensors))$/i;

const KNOWN_MAX = 1000;

type Known = { readonly stamp: string; readonly fault: string | undefined };

export class ModelFiles {
  readonly #known = new Map<string, Known>();

  /** Undefined: nothing is wrong that its head tells. */
  fault(file: string): string | undefined {
    for (const part of partsOf(file)) {
      const fault = this.#faultOf(part);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  #faultOf(file: string): string | undefined {
    const stat = statOf(file);
    if (stat === undefined) return `${file} cannot be read`;
    if (!stat.isFile()) return `${file} cannot be read: it is no file`;
    if (stat.size === 0) return `${file} is empty`;
    const stamp = `${stat.dev} ${stat.ino} ${stat.size} ${stat.ctimeMs}`;
    const known = this.#known.get(file);
    if (known?.stamp === stamp) return known.fault;
    const fault = headFault(file, stat.size);
    if (this.#known.size >= KNOWN_MAX) this.#known.clear();
    this.#known.set(file, { stamp, fault });
    return fault;
  }
}

/** Undefined where this account may not look, too. */
function statOf(file: string): fs.Stats | undefined {
  try {
    return fs.statSync(file);
  } catch {
    return undefined;
  }
}

/** llama.cpp is given the first part of a split model and finds the others by their names. */
function partsOf(file: string): readonly string[] {
  const [, name = "", count = "", ending = ""] = /^(.*-)00001-of-(\d{5})(\.gguf)$/i.exec(file) ?? [];
  if (name === "") return [file];
  return Array.from({ length: Math.max(1, Number(count)) }, (_, index) => {
    const number = String(index + 1).padStart(count.length, "0");
    return `${name}${number}-of-${count}${ending}`;
  });
}

function headFault(file: string, sizeBytes: number): string | undefined {
  const isGguf = /\.gguf$/i.test(file);
  try {
    const fd = fs.openSync(file, "r");
    try {
      if (isGguf && !startsWith(fd, GGUF_MAGIC)) return `${file} is no GGUF file: it does not begin with ${GGUF_MAGIC}`;
      const head = new FileHead(fd, sizeBytes);
      const length = (isGguf ? ggufLength(head) : safetensorsLength(head)) ?? 0;
      return length > sizeBytes ? cutOff(file, sizeBytes, `its tensors end at byte ${length}`) : undefined;
    } finally {
      fs.closeSync(fd);
    }
  } catch (error) {
    if (error instanceof CutOff) return cutOff(file, sizeBytes, `its head alone goes on to byte ${error.endBytes}`);
    if (error instanceof BadHead) return `${file} is damaged: ${error.message}; fetch it again`;
    return `${file} cannot be read: ${codeOf(error)}`;
  }
}

function startsWith(fd: number, magic: string): boolean {
  const head = Buffer.alloc(magic.length);
  fs.readSync(fd, head, 0, head.length, 0);
  return head.toString("latin1") === magic;
}

function cutOff(file: string, sizeBytes: number, expected: string): string {
  return `${file} is cut off: it has ${sizeBytes} bytes, and ${expected}; fetch it again`;
}
