// SPDX-License-Identifier: Apache-2.0
// The format of a backup, number 1: a directory with one gzip file for each table (COPY's text format) and backup.json,
// written last, which names them with their checksums and has one itself. A newer format is refused, never guessed (P13).

import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { codeOf, Failure, messageOf } from "../std/errors.ts";
import { canonicalJson } from "../std/json.ts";
import { Counter } from "./counted.ts";

export const FORMAT = 1;
export const MANIFEST = "backup.json";

export type BackupTable = {
  /** In schema app, without it. */
  readonly name: string;
  readonly file: string;
  /** In the order of the file's columns. */
  readonly columns: readonly string[];
  readonly rows: number;
  /** Of the file. */
  readonly bytes: number;
  /** Of the file, in hexadecimal. */
  readonly sha256: string;
};

export type Manifest = {
  readonly format: typeof FORMAT;
  /** The version of Holdfast that wrote it. */
  readonly holdfast: string;
  /** The version of PostgreSQL that it was read from. */
  readonly server: string;
  /** RFC 3339: the moment whose state it holds. */
  readonly takenAt: string;
  readonly migrations: readonly { readonly number: number; readonly name: string; readonly sha256: string }[];
  readonly tables: readonly BackupTable[];
};

export function manifestText(manifest: Manifest): string {
  return `${JSON.stringify({ ...manifest, sha256: digestOf(manifest) }, null, 2)}\n`;
}

function digestOf(manifest: object): string {
  return createHash("sha256").update(canonicalJson(manifest)).digest("hex");
}

/** Reads backup.json; a Failure when it is not there, newer than this program, or not what was written. */
export function readManifest(directory: string): Manifest {
  const file = path.join(directory, MANIFEST);
  let text: string;
  try {
    text = fs.readFileSync(file, "utf8");
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(codeOf(error)))
      throw new Failure("backup_missing", `${directory} holds no ${MANIFEST}, so it is not a whole backup`, {
        cause: error,
      });
    throw new Failure("backup_missing", `${file} cannot be read: ${messageOf(error)}`, { cause: error });
  }
  return parseManifest(file, text);
}

function parseManifest(file: string, text: string): Manifest {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw damaged(`${file} is not JSON: ${messageOf(error)}`, error);
  }
  if (typeof value !== "object" || value === null || !("format" in value) || !Number.isInteger(value.format))
    throw damaged(`${file} names no format`);
  // Before the checksum: a newer format may have another one.
  if (Number(value.format) > FORMAT) {
    const by = "holdfast" in value ? ` by Holdfast ${String(value.holdfast)}` : "";
    throw new Failure(
      "backup_newer",
      `${file} was written${by} in format ${String(value.format)}, and this Holdfast knows formats up to ${FORMAT}: update this Holdfast`,
    );
  }
  const { sha256, ...manifest } = value as Manifest & { readonly sha256?: unknown };
  if (manifest.format !== FORMAT || sha256 !== digestOf(manifest))
    throw damaged(`${file} is not what was written: its checksum differs`);
  return manifest;
}

export function damaged(message: string, cause?: unknown): Failure {
  return new Failure("backup_damaged", message, cause === undefined ? {} : { cause });
}

export type FileCheck = { readonly directory: string; readonly table: BackupTable; readonly signal: AbortSignal };

/** Reads a whole file: its checksum, that it can be unpacked, and its rows (a row ends with the only bare newline it has). */
export async function checkFile({ directory, table, signal }: FileCheck): Promise<void> {
  const file = path.join(directory, table.file);
  const packed = new Counter();
  const unpacked = new Counter();
  try {
    await pipeline(fs.createReadStream(file), packed, createGunzip(), unpacked, drain, { signal });
  } catch (error) {
    signal.throwIfAborted();
    if (codeOf(error) === "ENOENT") throw damaged(`${file} is missing`, error);
    if (codeOf(error).startsWith("Z_")) throw damaged(`${file} is damaged: ${messageOf(error)}`, error);
    throw new Failure("backup_missing", `${file} cannot be read: ${messageOf(error)}`, { cause: error });
  }
  if (packed.sizeBytes !== table.bytes)
    throw damaged(`${file} has ${packed.sizeBytes} bytes, and ${table.bytes} were written`);
  if (packed.sha256() !== table.sha256) throw damaged(`${file} is not what was written: its checksum differs`);
  if (unpacked.newlines !== table.rows)
    throw damaged(`${file} has ${unpacked.newlines} rows, and ${table.rows} were written`);
}

async function drain(source: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of source);
}
