// SPDX-License-Identifier: Apache-2.0
// Passwords: argon2id (RFC 9106) from node:crypto, kept in PHC form with their parameters, so that a later, stronger setting
// reads the old ones. Slow on purpose, off the main thread, and only a few at once: a flood of tries must not take the memory.

import { argon2, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";
import type { Random } from "../../std/random.ts";

/** OWASP's second choice for argon2id (2024): 19 MiB, two passes, one lane. */
const PARAMETERS = { memory: 19_456, passes: 2, parallelism: 1 } as const;
const TAG_BYTES = 32;
const SALT_BYTES = 16;
/** What is verified at once; the rest waits. */
const AT_ONCE = 2;

type Parameters = { readonly memory: number; readonly passes: number; readonly parallelism: number };

const derive = promisify(argon2);

let running = 0;
const waiting: (() => void)[] = [];

/** Runs `work` when fewer than AT_ONCE others run. */
async function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
  if (running >= AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
  else running++;
  try {
    return await work();
  } finally {
    const next = waiting.shift();
    if (next === undefined) running--;
    else next();
  }
}

function tagOf(password: string, salt: Uint8Array, parameters: Parameters): Promise<Buffer> {
  // Two ways to type the same character give the same bytes.
  const message = Buffer.from(password.normalize("NFC"), "utf8");
  return inTurn(() => derive("argon2id", { message, nonce: salt, tagLength: TAG_BYTES, ...parameters }));
}

export async function hashPassword(password: string, random: Random): Promise<string> {
  const salt = Buffer.from(random.bytes(SALT_BYTES));
  return encode(PARAMETERS, salt, await tagOf(password, salt, PARAMETERS));
}

/** Takes as long for a user without a password, so that the time does not tell who has one. */
export async function verifyPassword(password: string, phc: string | undefined): Promise<boolean> {
  const known = phc === undefined ? undefined : decode(phc);
  const { salt, tag, parameters } = known ?? {
    salt: Buffer.alloc(SALT_BYTES),
    tag: Buffer.alloc(TAG_BYTES),
    parameters: PARAMETERS,
  };
  const found = await tagOf(password, salt, parameters);
  return timingSafeEqual(found, tag) && known !== undefined;
}

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64").replaceAll("=", "");

function encode({ memory, passes, parallelism }: Parameters, salt: Uint8Array, tag: Uint8Array): string {
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${base64(salt)}$${base64(tag)}`;
}

const PHC = /^\$argon2id\$v=19\$m=(\d{1,8}),t=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{43})$/;

function decode(phc: string): { salt: Buffer; tag: Buffer; parameters: Parameters } {
  const [, memory, passes, parallelism, salt, tag] = PHC.exec(phc) ?? [];
  if (salt === undefined || tag === undefined) throw new Error("bug: a stored password is not in PHC form");
  return {
    salt: Buffer.from(salt, "base64"),
    tag: Buffer.from(tag, "base64"),
    parameters: { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) },
  };
}
