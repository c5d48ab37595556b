// SPDX-License-Identifier: Apache-2.0
// Builds the page into web/dist when its sources, what it takes from src, or the lock file have changed since. Run by npm ci
// (prepare) and before npm start. Rule: silent when there is nothing to do; a half-built page is never served.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../src/std/clock.ts";
import { takeLock } from "../src/std/lock.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
/** What the page is made from, by tsconfig.web.json and src/DEPS. */
const SOURCES = [
  "web/src",
  "web/public",
  "web/index.html",
  "web/vite.config.ts",
  "web/package.json",
  "package-lock.json",
];
const SHARED = ["src/std", "src/protocol", "src/client"];
const STAMP = "web/dist/.stamp";
const LOCK = "web/.dist-lock";
const LOOK_EVERY_MS = 50;

function filesBelow(place: string): readonly string[] {
  if (!fs.statSync(path.join(root, place)).isDirectory()) return [place];
  return fs
    .readdirSync(path.join(root, place), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)));
}

function fingerprint(): string {
  const hash = createHash("sha256");
  for (const file of [...SOURCES, ...SHARED].flatMap(filesBelow).toSorted()) {
    const content = fs.readFileSync(path.join(root, file));
    hash.update(`${file}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex");
}

function isCurrent(stamp: string): boolean {
  const file = path.join(root, STAMP);
  return fs.existsSync(file) && fs.readFileSync(file, "utf8") === stamp;
}

/** Built beside and then put in place, so that a controller which serves meanwhile never finds half of it. */
function build(stamp: string): void {
  const fresh = `web/.dist-${process.pid}`;
  const old = `web/.dist-old-${process.pid}`;
  const remove = (place: string): void => fs.rmSync(path.join(root, place), { recursive: true, force: true });
  try {
    const vite = path.join(root, "node_modules/vite/bin/vite.js");
    const argv = [vite, "build", "web", "--outDir", path.join(root, fresh), "--emptyOutDir", "--logLevel", "warn"];
    const { status, stdout, stderr } = spawnSync(process.execPath, argv, { cwd: root, encoding: "utf8" });
    if (status !== 0) throw new Error(`the page could not be built:\n${stdout}${stderr}`);
    fs.writeFileSync(path.join(root, fresh, path.basename(STAMP)), stamp);
    if (fs.existsSync(path.join(root, "web/dist"))) fs.renameSync(path.join(root, "web/dist"), path.join(root, old));
    fs.renameSync(path.join(root, fresh), path.join(root, "web/dist"));
  } finally {
    remove(fresh);
    remove(old);
  }
}

/** Test files run side by side, and a person may start at the same time: one builds, the others wait for it. */
async function alone(): Promise<() => void> {
  for (;;) {
    const lock = takeLock(path.join(root, LOCK), `process ${process.pid} builds the page`);
    if (lock.kind === "taken") return lock.release;
    await systemClock.sleep(LOOK_EVERY_MS);
  }
}

/** Returns what to say: nothing when the page that is there is the right one. */
export async function ensureWeb(): Promise<string> {
  if (isCurrent(fingerprint())) return "";
  // npm ci --omit=dev: then the page must have been built before, and the one that is there stays.
  if (!fs.existsSync(path.join(root, "node_modules/vite"))) return "The page was not built: vite is not installed.\n";
  const release = await alone();
  try {
    const stamp = fingerprint();
    if (isCurrent(stamp)) return "";
    const began = performance.now();
    build(stamp);
    return `Built the page in ${((performance.now() - began) / 1000).toFixed(1)} s.\n`;
  } finally {
    release();
  }
}

if (import.meta.main) process.stdout.write(await ensureWeb());
