// SPDX-License-Identifier: Apache-2.0
// A fleet to enrol machines in: a real controller with TLS of its own authority and a log that is kept, the real script and
// agent, and a runtime that is either the real one or a program of 16 KB that becomes it (the real one has 120 MB).

import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { enrolmentOf } from "../../src/bin/artefacts.ts";
import { type Fleet as Authority, openFleet } from "../../src/bin/fleet.ts";
import { keyPairReader, type TlsChoice, trustAlso } from "../../src/bin/tls.ts";
import { VERSION } from "../../src/bin/version.ts";
import type { Client } from "../../src/client/client.ts";
import { startController } from "../../src/controller/controller.ts";
import type { Artefact, Enrolment } from "../../src/controller/enrolment.ts";
import type { KeyPair } from "../../src/controller/http/server.ts";
import { openDatabase } from "../../src/db/pool.ts";
import { renderBootstrap } from "../../src/enrol/bootstrap.ts";
import type { PairingCode } from "../../src/protocol/enrol-schema.ts";
import { systemClock } from "../../src/std/clock.ts";
import { systemRandom } from "../../src/std/random.ts";
import { ensureBundle } from "../../tools/bundle.ts";
import { cleanupOf, type Ending } from "../kit/cleanup.ts";
import { type Admin, createAdmin } from "../kit/controller-process.ts";
import { createTestDatabase, type TestDatabase } from "../kit/database.ts";
import { type KeptLog, keptLog } from "../kit/kept-log.ts";
import { fast } from "../kit/world.ts";

export type FleetOptions = {
  readonly host?: string;
  /** By which nodes are told to reach it, where the address is another one. */
  readonly name?: string;
  /** Plain HTTP; else over TLS with the fleet's own authority. */
  readonly isPlain?: boolean;
  /** A file in place of the agent or of the runtime. */
  readonly agent?: string;
  readonly runtime?: string;
  readonly version?: string;
};

export type Fleet = {
  readonly url: string;
  readonly admin: Client;
  /** The admin's. */
  readonly token: string;
  readonly log: KeptLog;
  readonly sql: <Row = Record<string, unknown>>(text: string, params?: readonly unknown[]) => Promise<readonly Row[]>;
  /** A code for this name, and the command that goes with it. */
  readonly pair: (name: string, options?: { readonly takeOver?: boolean }) => Promise<PairingCode>;
  /** Another controller of the same fleet, with other files to hand out. */
  readonly beside: (t: Ending, options: FleetOptions) => Promise<Fleet>;
  readonly files: Files;
  readonly stop: () => Promise<void>;
};

export async function createFleet(t: Ending, options: FleetOptions = {}): Promise<Fleet> {
  const stack = cleanupOf(t);
  const database = await createTestDatabase(t);
  const owner = new pg.Client(database.owner);
  await owner.connect();
  stack.defer(() => owner.end());
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "fleet-"));
  // The accounts of nodes reach the stand-in.
  fs.chmodSync(directory, 0o755);
  stack.defer(() => fs.rmSync(directory, { recursive: true, force: true }));
  const authority = await openFleet(directory, systemClock);
  trustAlso(authority.caPem);
  return startFleet(t, options, {
    database,
    owner,
    authority,
    admin: await createAdmin(owner),
    files: filesIn(directory),
  });
}

type Ground = {
  readonly database: TestDatabase;
  readonly owner: pg.Client;
  readonly authority: Authority;
  readonly admin: Admin;
  /** What a controller hands out unless it is told otherwise. */
  readonly files: Files;
};

async function startFleet(t: Ending, options: FleetOptions, ground: Ground): Promise<Fleet> {
  const { owner, authority } = ground;
  const host = options.host ?? "127.0.0.1";
  const log = keptLog();
  const db = openDatabase({ connection: ground.database.controller, log, clock: systemClock, random: systemRandom });
  cleanupOf(t).defer(() => db[Symbol.asyncDispose]());
  const tls: TlsChoice = { kind: options.isPlain === true ? "off" : "fleet" };
  const read = keyPairReader(tls, authority, [options.name ?? host]);
  let served: KeyPair | undefined;
  const given = enrolmentOf({ fleet: authority, tls, served: () => served });
  const files = { ...ground.files, ...options };
  const port = 40_000 + (process.pid % 10_000);
  const controller = await startController({
    db,
    log,
    host,
    port: options.name === undefined ? 0 : port,
    ...(options.name === undefined ? {} : { publicUrl: `https://${options.name}:${port}` }),
    config: { ...fast, heartbeatMs: 500 },
    enrolment: await handingOut(given, files),
    ...(read === undefined ? {} : { keyPair: async () => (served = await read()) }),
  });
  cleanupOf(t).defer(() => controller[Symbol.asyncDispose]());
  const admin = ground.admin.at(controller.url);
  return {
    url: controller.url,
    admin,
    token: ground.admin.token,
    log,
    sql: async <Row>(text: string, params: readonly unknown[] = []) =>
      (await owner.query(text, [...params])).rows as Row[],
    pair: (name, { takeOver = false } = {}) =>
      admin.call("pairingCreate", { body: takeOver ? { name, takeOver } : { name } }),
    beside: (ending, others) => startFleet(ending, others, ground),
    files,
    stop: async () => controller[Symbol.asyncDispose](),
  };
}

type Files = { readonly agent: string; readonly runtime: string; readonly version?: string };

/** The same enrolment with these files in the script and behind its addresses. */
async function handingOut(given: Enrolment, { agent, runtime, version = VERSION }: Files): Promise<Enrolment> {
  const [agentFile, runtimeFile] = [artefact(agent), artefact(runtime)];
  const both = ({ sha256 }: Artefact) => ({ x64: sha256, arm64: sha256 });
  return {
    ...given,
    agent: async () => agentFile,
    runtime: async () => runtimeFile,
    script: async () => renderBootstrap({ version, agent: both(agentFile), runtime: both(runtimeFile) }),
  };
}

function artefact(file: string): Artefact {
  return { file, sha256: createHash("sha256").update(fs.readFileSync(file)).digest("hex") };
}

/** A directory that every account may enter. */
export function scratch(t: Ending): string {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "scratch-"));
  fs.chmodSync(directory, 0o755);
  cleanupOf(t).defer(() => fs.rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** The real runtime, for the one test that is about it. */
export const realRuntime = process.execPath;

/** Copies: the bundle of the checkout may be packed anew while the test runs. */
function filesIn(directory: string): Files {
  ensureBundle(process.arch);
  const agent = path.join(directory, "agent.tar.gz");
  fs.copyFileSync(fileURLToPath(new URL(`../../dist/agent-linux-${process.arch}.tar.gz`, import.meta.url)), agent);
  const become = `execv("${realRuntime}", argv); perror("the stand-in"); return 127;`;
  return { agent, runtime: compile(path.join(directory, "node"), become) };
}

/** For what is about the script alone: an agent of one file, and a runtime that says to be paired with whatever it is told. */
export function lightFiles(t: Ending): Files {
  const directory = scratch(t);
  const bin = path.join(directory, "holdfast/src/bin");
  fs.mkdirSync(bin, { recursive: true });
  fs.writeFileSync(path.join(bin, "holdfast.js"), "// the agent\n", { mode: 0o644 });
  execFileSync("tar", ["-czf", "agent.tar.gz", "holdfast"], { cwd: directory });
  const body = `char code[99] = ""; if (argc > 2) { if (!fgets(code, 99, stdin)) return 1; }
    puts(argc > 2 ? "paired as light (node_0) with default" : "v24"); return 0;`;
  return { agent: path.join(directory, "agent.tar.gz"), runtime: compile(path.join(directory, "node"), body) };
}

/** The same agent with one file more, or another one in its place. */
export function agentWith(t: Ending, agent: string, file: string, content: string): string {
  const directory = scratch(t);
  const target = path.join(directory, "holdfast", file);
  fs.mkdirSync(path.dirname(target), { recursive: true });
  fs.writeFileSync(target, content);
  // Of two with one name the later one is unpacked last.
  const pack = 'gzip -dc "$1" >agent.tar && tar -rf agent.tar "holdfast/$2" && gzip -1 agent.tar';
  execFileSync("sh", ["-c", pack, "sh", agent, file], { cwd: directory });
  return path.join(directory, "agent.tar.gz");
}

/** A program with this body of main(argc, argv); flags: of the compiler. */
export function compile(file: string, body: string, flags: readonly string[] = []): string {
  const source = `#include <stdio.h>\n#include <unistd.h>\nint main(int argc, char **argv) { (void)argc; (void)argv; ${body} }\n`;
  execFileSync("cc", ["-x", "c", "-", "-o", file, ...flags], { input: source });
  return file;
}
