// SPDX-License-Identifier: Apache-2.0
// Launch directories as Holdfast 0.1 wrote them are read for ever. A failing pin means "stop", never "write it anew".

import assert from "node:assert/strict";
import fs from "node:fs/promises";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Adopted, describeEnding, type Launcher } from "../../src/launcher/launcher.ts";
import { readIdentity, readSpec } from "../../src/launcher/launch-files.ts";
import { encodeSpec } from "../../src/launcher/spec.ts";
import { makeRoot, openLauncher, removeRoot } from "./kit.ts";

const golden = fileURLToPath(new URL("../golden/launch-1/", import.meta.url));

let root = "";
let launcher: Launcher;
before(async () => {
  root = await makeRoot();
  launcher = await openLauncher(root);
});
after(() => removeRoot(root));

async function adopted(name: string, number: number): Promise<Adopted> {
  const launchId = `attempt-job_${number}-9007199254740993`;
  await fs.cp(`${golden}${name}`, launcher.directoryOf(launchId), { recursive: true });
  return launcher.adopt(launchId);
}

test("each ending of a launch of Holdfast 0.1 is read", async () => {
  const exited = await adopted("exited", 1);
  assert(exited.kind === "ended");
  assert.deepEqual(exited.exit, {
    kind: "exited",
    code: 7,
    endedAtMs: 1796113707516,
    startedAtMs: 1796113707497,
    stdoutBytes: 4,
    stderrBytes: 8,
    descendants: 1,
    stopAsked: false,
    killAsked: false,
  });
  assert.deepEqual(exited.spec, {
    launchId: "attempt-job_1-9007199254740993",
    purpose: { kind: "attempt", jobId: "job_1", epoch: "9007199254740993" },
    argv: ["sh", "-c", "echo out; echo problem >&2; sleep 60 & exit 7"],
    workingDirectory: "/",
    limits: { cpuSeconds: 5, openFiles: 64 },
    createdAtMs: 1796113707368,
  });
  const signalled = await adopted("signalled", 2);
  assert(signalled.kind === "ended" && describeEnding(signalled.exit) === "was ended by SIGSEGV");
  const failed = await adopted("exec-failed", 3);
  assert(failed.kind === "ended" && failed.exit.kind === "exec-failed" && failed.exit.errno === 2);
  assert.equal((await adopted("not-started", 4)).kind, "not-started");
  assert.equal((await adopted("interrupted", 5)).kind, "interrupted");
});

test("its identity and its spec are read, and the spec is written again byte for byte", async () => {
  assert.deepEqual(await readIdentity(`${golden}exited`), {
    identity: {
      bootId: "3c4b0fec-6820-4a61-bd41-94ffdc75a682",
      pid: 26096,
      startTicks: "396646",
      pidfdInode: "58554",
    },
    isInCgroup: false,
  });
  for (const name of ["exited", "signalled", "exec-failed", "not-started", "interrupted"]) {
    const spec = await readSpec(`${golden}${name}`);
    assert(spec !== undefined);
    assert.equal(encodeSpec(spec), await fs.readFile(`${golden}${name}/spec.json`, "utf8"));
  }
});
