// SPDX-License-Identifier: Apache-2.0
// A real git server over ssh for a test: sshd on a port of its own, with keys and a configuration of the test's, and a gate that
// opens one repository to a key, for reading or for writing, as deploy keys do.

import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { cleanupOf, type Ending } from "../kit/cleanup.ts";
import { freePort } from "../kit/stub-model.ts";
import { until } from "../kit/until.ts";

/** read: no writing at all. write: everything. rule: a hook of the repository refuses what is written. */
export type Right = "read" | "write" | "rule";

export type GitServer = {
  readonly port: number;
  readonly user: string;
  /** As a client names it. */
  readonly repository: string;
  /** The fingerprint of the host key that it shows now. */
  readonly fingerprint: () => string;
  /** From now on this public key has this right, and no other key any. */
  readonly allow: (publicKey: string, right: Right) => void;
  /** Another host key, perhaps of another type. */
  readonly changeHostKey: (type: "ed25519" | "ecdsa") => Promise<void>;
  readonly stop: () => Promise<void>;
  /** Commits these files, all that there are; a text of another mode: [mode, text]. Returns the commit. */
  readonly commit: (files: Readonly<Record<string, string | readonly [string, string]>>) => string;
  /** Names of all branches. */
  readonly branches: () => readonly string[];
};

const REPOSITORY = "scenes.git";
/** Of Debian; it starts itself again by this path. */
const SSHD = "/usr/sbin/sshd";

const GATE = `#!/bin/sh
case "$1:$SSH_ORIGINAL_COMMAND" in
  *:"git-upload-pack '${REPOSITORY}'") exec git-upload-pack "$2" ;;
  write:"git-receive-pack '${REPOSITORY}'" | rule:"git-receive-pack '${REPOSITORY}'") exec git-receive-pack "$2" ;;
  read:"git-receive-pack '${REPOSITORY}'") echo "ERROR: this key is for reading only" >&2; exit 1 ;;
  *) echo "ERROR: Repository not found." >&2; exit 1 ;;
esac
`;

export async function createGitServer(t: Ending): Promise<GitServer> {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "git-server-"));
  const at = (name: string): string => path.join(directory, name);
  const port = await freePort();
  const bare = at(REPOSITORY);
  run(["git", "init", "--quiet", "--bare", "--initial-branch=main", "--template=", bare]);
  fs.writeFileSync(at("gate"), GATE, { mode: 0o755 });
  fs.writeFileSync(at("authorized"), "");
  fs.writeFileSync(at("sshd_config"), configOf(port, at));
  // sshd of root gives its rights up in here; only a boot makes it.
  if (process.getuid?.() === 0) fs.mkdirSync("/run/sshd", { recursive: true, mode: 0o755 });
  let sshd: ChildProcess | undefined;
  const stop = async (): Promise<void> => {
    const one = sshd;
    sshd = undefined;
    if (one === undefined || one.exitCode !== null) return;
    const ended = new Promise((resolve) => one.once("close", resolve));
    one.kill("SIGTERM");
    await ended;
  };
  const start = async (type: string): Promise<void> => {
    fs.rmSync(at("host"), { force: true });
    run(["ssh-keygen", "-q", "-t", type, "-N", "", "-f", at("host")]);
    const child = spawn(SSHD, ["-D", "-e", "-f", at("sshd_config")], { stdio: ["ignore", "ignore", "pipe"] });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
    sshd = child;
    await until("sshd listens", async () => {
      assert.equal(child.exitCode, null, said);
      return isListening(port);
    });
  };
  cleanupOf(t).defer(async () => {
    await stop();
    fs.rmSync(directory, { recursive: true, force: true });
  });
  await start("ed25519");
  return {
    port,
    user: os.userInfo().username,
    repository: REPOSITORY,
    fingerprint: () => run(["ssh-keygen", "-l", "-f", at("host")]).split(" ")[1] ?? "",
    allow: (publicKey, right) => {
      const hook = path.join(bare, "hooks", "pre-receive");
      fs.rmSync(hook, { force: true });
      fs.mkdirSync(path.dirname(hook), { recursive: true });
      if (right === "rule") fs.writeFileSync(hook, "#!/bin/sh\nexit 1\n", { mode: 0o755 });
      fs.writeFileSync(at("authorized"), `restrict,command="${at("gate")} ${right} ${bare}" ${publicKey}\n`);
    },
    changeHostKey: async (type) => {
      await stop();
      await start(type);
    },
    stop,
    commit: (files) => commit(bare, files),
    branches: () =>
      run(["git", "-C", bare, "for-each-ref", "--format=%(refname)"])
        .split("\n")
        .filter((line) => line !== ""),
  };
}

function configOf(port: number, at: (name: string) => string): string {
  return [
    `Port ${port}`,
    "ListenAddress 127.0.0.1",
    `HostKey ${at("host")}`,
    `AuthorizedKeysFile ${at("authorized")}`,
    "PidFile none",
    "StrictModes no",
    "UsePAM no",
    "PasswordAuthentication no",
    "KbdInteractiveAuthentication no",
    "PermitRootLogin prohibit-password",
    "LogLevel ERROR",
    // The cheapest one: the tests make many connections.
    "KexAlgorithms curve25519-sha256",
    "",
  ].join("\n");
}

function commit(bare: string, files: Readonly<Record<string, string | readonly [string, string]>>): string {
  const git = (args: readonly string[], input = ""): string => run(["git", "-C", bare, ...args], input).trim();
  const index = { GIT_INDEX_FILE: path.join(bare, "index-of-test") };
  fs.rmSync(index.GIT_INDEX_FILE, { force: true });
  for (const [name, given] of Object.entries(files)) {
    const [mode, text] = typeof given === "string" ? ["100644", given] : given;
    const blob = git(["hash-object", "-w", "--stdin"], text);
    run(["git", "-C", bare, "update-index", "--add", "--cacheinfo", `${mode},${blob},${name}`], "", index);
  }
  const tree = run(["git", "-C", bare, "write-tree"], "", index).trim();
  const made = git(["commit-tree", "-m", "test", tree]);
  git(["update-ref", "refs/heads/main", made]);
  return made;
}

const IDENTITY = {
  GIT_AUTHOR_NAME: "t",
  GIT_AUTHOR_EMAIL: "t@t",
  GIT_COMMITTER_NAME: "t",
  GIT_COMMITTER_EMAIL: "t@t",
  GIT_CONFIG_GLOBAL: "/dev/null",
};

function run(
  [program = "", ...args]: readonly string[],
  input = "",
  env: Readonly<Record<string, string>> = {},
): string {
  const all = { PATH: process.env["PATH"] ?? "", ...IDENTITY, ...env };
  const { status, stdout, stderr } = spawnSync(program, args, { input, encoding: "utf8", env: all });
  assert.equal(status, 0, `${program} ${args.join(" ")}: ${stderr}`);
  return stdout;
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host: "127.0.0.1" });
    socket.once("connect", () => socket.destroy() && resolve(true));
    socket.once("error", () => resolve(false));
  });
}
