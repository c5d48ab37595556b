// SPDX-License-Identifier: Apache-2.0
// The shim as a unit starts it: which account jobs get is its caller's word alone, never root's or its own, and who holds the
// gate is told why nothing was started.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { findInPasswd } from "../../src/launcher/account.ts";
import { encodeParams } from "../../src/launcher/spec.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { makeRoot, shimPath } from "./kit.ts";

const passwd = fs.readFileSync("/etc/passwd", "utf8");
const idsOf = (name: string) => findInPasswd(passwd, name) ?? assert.fail(`every Debian has ${name}`);
const [shimAccount, jobs] = [idsOf("daemon"), idsOf("games")];

type Try = { readonly argv: readonly string[]; readonly says?: string; readonly gid?: number };

/** Exit status of the shim, and the byte that it told through the gate, which is a socket as systemd's is. */
async function gate({ argv, says = "", gid = jobs.groupId }: Try): Promise<readonly (number | null | undefined)[]> {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "gate-"));
  const server = net.createServer({ pauseOnConnect: true });
  try {
    await new Promise<void>((resolve) => server.listen(path.join(directory, "gate"), resolve));
    const ours = net.connect(path.join(directory, "gate"));
    const theirs = await new Promise<net.Socket>((resolve) => server.once("connection", resolve));
    const stdio = [theirs, "ignore", "ignore"] as const;
    const child = spawn(shimPath, argv, { stdio: [...stdio], uid: shimAccount.uid, gid, env: {}, cwd: "/" });
    theirs.destroy();
    // What a shim does with the rest is not looked at here.
    ours.on("error", () => {});
    let told: number | undefined;
    ours.on("data", (byte: Buffer) => (told = byte[0]));
    const over = new Promise((resolve) => ours.once("close", resolve));
    if (says === "") ours.end();
    else ours.write(says);
    const status = await new Promise<number | null>((resolve) => child.once("exit", resolve));
    await over;
    return [status, told];
  } finally {
    server.close();
    fs.rmSync(directory, { recursive: true, force: true });
  }
}

test("a shim refuses root, its own account, one that is not there and one whose group it does not have", async () => {
  // Each with the group that it would have: nothing but the account is wrong.
  for (const [name, gid] of [
    ["root", 0],
    ["daemon", shimAccount.groupId],
    ["no-such-account", jobs.groupId],
    ["game", jobs.groupId],
    ["", jobs.groupId],
  ] as const)
    assert.deepEqual(await gate({ argv: ["--gate", name], says: "/tmp\n", gid }), [67, 67], name);
  assert.deepEqual(await gate({ argv: ["--gate", "games"], says: "/tmp\n", gid: shimAccount.groupId }), [67, 67]);
  assert.deepEqual(
    await gate({ argv: ["--gate", "games"] }),
    [66, 66],
    "a gate that closes before it names a directory",
  );
  assert.deepEqual(await gate({ argv: ["--gate", "games"], says: "/nonexistent\n" }), [66, 66]);
});

test("what comes through the gate cannot choose a third account", async (t) => {
  const root = await makeRoot();
  cleanupOf(t).defer(() => fs.rmSync(root, { recursive: true, force: true }));
  fs.chownSync(root, shimAccount.uid, jobs.groupId);
  fs.chmodSync(root, 0o700);
  const spec = { argv: ["true"], workingDirectory: "/", limits: {} };
  const directory = path.join(root, "launch");
  for (const [argv, account, status] of [
    [["--gate", "games"], "nobody", 65],
    [["--gate", "games"], "root", 65],
    [["--gate"], "games", 65],
  ] as const) {
    fs.rmSync(directory, { recursive: true, force: true });
    fs.mkdirSync(directory, { mode: 0o700 });
    fs.writeFileSync(path.join(directory, "params"), encodeParams(spec, {}, { account }), { mode: 0o600 });
    fs.chownSync(directory, shimAccount.uid, jobs.groupId);
    fs.chownSync(path.join(directory, "params"), shimAccount.uid, jobs.groupId);
    assert.deepEqual(
      await gate({ argv: [...argv], says: `${directory}\n` }),
      [status, status],
      `${argv.join(" ")} ${account}`,
    );
  }
});
