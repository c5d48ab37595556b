// SPDX-License-Identifier: Apache-2.0
// Packs what a node is given by its controller: dist/agent-linux-ARCH.tar.gz, the agent's sources with the packages that they
// import and nothing else, and for another architecture than this one dist/node-linux-ARCH, its runtime. Run by npm ci.
// Rules: the same sources give the same bytes; what comes from the registry is checked against package-lock.json.
// Usage: node tools/bundle.ts [--arch arm64|x64 …]

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const root = fileURLToPath(new URL("..", import.meta.url));
const LEFT_OUT = ["src/controller", "src/db"];
/** Packages with a build for each architecture: they are named after it. */
const NATIVE = (arch: string): readonly string[] => [`@koromix/koffi-linux-${arch}`];
const RUNTIME = (arch: string): string => `node-linux-${arch}`;

/** Of a controller or of the sample: a node never loads them. */
const NOT_A_NODES = /^(@node-llama-cpp\/|@peculiar\/|reflect-metadata$|fastify$|@fastify\/|pg$|pg-|prom-client$)/;
/** What packages carry that nothing loads. */
const DEAD_WEIGHT =
  /^(tests?|benchmarks?|bench|docs?|examples?|src\/.*\.cc|vendor|browser|\.github)$|\.(d\.[mc]?ts|map|md)$/;

/** What the agent's tree holds of ours, relative to the checkout, sorted. */
function ownFiles(arch: string): readonly string[] {
  const sources = fs
    .globSync(["src/**/*.{ts,js}", "src/devices/*.sh"], { cwd: root })
    .filter((file) => !file.endsWith(".test.ts") && !LEFT_OUT.some((folder) => file.startsWith(`${folder}/`)));
  const docs = fs.globSync("docs/*.{md,yaml,json}", { cwd: root });
  return [...sources, ...docs, "LICENSE", "NOTICE", "package.json", `native/prebuilt/shim-linux-${arch}`]
    .filter((file) => fs.existsSync(path.join(root, file)))
    .toSorted();
}

/** The packages that these sources import, with all that those need. */
function packagesOf(files: readonly string[]): readonly string[] {
  const found = new Set<string>();
  const visit = (name: string): void => {
    const manifest = path.join(root, "node_modules", name, "package.json");
    if (NOT_A_NODES.test(name) || found.has(name) || !fs.existsSync(manifest)) return;
    found.add(name);
    const { dependencies = {} } = JSON.parse(fs.readFileSync(manifest, "utf8")) as {
      dependencies?: Record<string, string>;
    };
    for (const dependency of Object.keys(dependencies)) visit(dependency);
  };
  for (const file of files.filter((name) => /^src\/.*\.(ts|js)$/.test(name))) {
    const text = fs.readFileSync(path.join(root, file), "utf8");
    for (const [, name] of text.matchAll(/(?:from|import)\s*\(?\s*"((?:@[\w.-]+\/)?[\w-][\w.-]*)(?:\/[^"]*)?"/g))
      if (name !== undefined && !name.startsWith("node:")) visit(name);
  }
  return [...found].toSorted();
}

/** From node_modules, else from npm's registry: the tarball's hash must be the one in package-lock.json. */
function packageDirectory(name: string, scratch: string): string {
  const installed = path.join(root, "node_modules", name);
  if (fs.existsSync(path.join(installed, "package.json"))) return installed;
  const lock = JSON.parse(fs.readFileSync(path.join(root, "package-lock.json"), "utf8")) as {
    packages: Record<string, { version?: string; integrity?: string }>;
  };
  const { version, integrity } = lock.packages[`node_modules/${name}`] ?? {};
  if (version === undefined || integrity === undefined) throw new Error(`package-lock.json does not list ${name}`);
  const packed = run("npm", ["pack", "--silent", "--pack-destination", scratch, `${name}@${version}`], root).trim();
  const tarball = path.join(scratch, path.basename(packed));
  const digest = `sha512-${createHash("sha512").update(fs.readFileSync(tarball)).digest("base64")}`;
  if (digest !== integrity) throw new Error(`${name}@${version} is not what package-lock.json says: ${digest}`);
  const directory = path.join(scratch, name.replace("/", "-"));
  fs.mkdirSync(directory);
  run("tar", ["-xzf", tarball, "-C", directory, "--strip-components=1"], root);
  return directory;
}

function run(command: string, argv: readonly string[], cwd: string): string {
  const { status, stdout, stderr, error } = spawnSync(command, argv, { cwd, encoding: "utf8", maxBuffer: 2 ** 26 });
  if (status === 0) return stdout;
  throw new Error(`${command} ${argv.join(" ")} failed: ${error?.message ?? stderr}`);
}

function fingerprint(files: readonly string[], packages: readonly string[]): string {
  const hash = createHash("sha256").update(fs.readFileSync(path.join(root, "package-lock.json")));
  hash.update(fs.readFileSync(fileURLToPath(import.meta.url))).update(packages.join("\n"));
  for (const file of files) hash.update(`${file}\0`).update(fs.readFileSync(path.join(root, file)));
  return hash.digest("hex");
}

/** Copied into one tree with fixed modes and times, then packed in a fixed order. */
function pack(arch: string, target: string): void {
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-bundle-"));
  try {
    const tree = path.join(scratch, "holdfast");
    const files = ownFiles(arch);
    for (const file of files) copy(path.join(root, file), path.join(tree, file));
    for (const name of [...packagesOf(files), ...NATIVE(arch)])
      copy(packageDirectory(name, scratch), path.join(tree, "node_modules", name));
    run("chmod", ["-R", "u=rwX,go=rX", tree], root);
    const flags = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--format=ustar"];
    const draft = `${target}.${process.pid}.new`;
    run("sh", ["-c", `tar ${flags.join(" ")} -cf - holdfast | gzip -n -6 > "$0"`, draft], scratch);
    fs.renameSync(draft, target);
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true });
  }
}

function copy(from: string, to: string): void {
  fs.mkdirSync(path.dirname(to), { recursive: true });
  const isPackage = from.includes(`${path.sep}node_modules${path.sep}`);
  const isKept = (file: string): boolean => !(isPackage && DEAD_WEIGHT.test(path.relative(from, file)));
  fs.cpSync(from, to, { recursive: true, dereference: true, filter: isKept });
}

/** Returns what to say: nothing when what is there is the right one. */
export function ensureBundle(arch: string): string {
  const dist = path.join(root, "dist");
  fs.mkdirSync(dist, { recursive: true });
  const target = path.join(dist, `agent-linux-${arch}.tar.gz`);
  const files = ownFiles(arch);
  const stamp = fingerprint(files, packagesOf(files));
  const stampFile = `${target}.stamp`;
  const isThere = fs.existsSync(target) && fs.existsSync(stampFile);
  const runtime = path.join(dist, RUNTIME(arch));
  const isRuntimeThere = fs.existsSync(path.join(root, "node_modules", RUNTIME(arch))) || fs.existsSync(runtime);
  if (isThere && isRuntimeThere && fs.readFileSync(stampFile, "utf8") === stamp) return "";
  const began = performance.now();
  if (!isRuntimeThere) fetchRuntime(arch, runtime);
  pack(arch, target);
  fs.writeFileSync(stampFile, stamp);
  return `Packed the agent for ${arch} in ${((performance.now() - began) / 1000).toFixed(1)} s.\n`;
}

function fetchRuntime(arch: string, target: string): void {
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-runtime-"));
  try {
    fs.copyFileSync(path.join(packageDirectory(RUNTIME(arch), scratch), "bin/node"), `${target}.new`);
    fs.chmodSync(`${target}.new`, 0o755);
    fs.renameSync(`${target}.new`, target);
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { arch: { type: "string", multiple: true } } });
  for (const arch of values.arch ?? [process.arch]) process.stdout.write(ensureBundle(arch));
}
