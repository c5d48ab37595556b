// SPDX-License-Identifier: Apache-2.0
// What a job gets and how its end is told, with real processes and the committed shim.

import assert from "node:assert/strict";
import fs from "node:fs/promises";
import path from "node:path";
import { after, before, test } from "node:test";
import { currentAccount, describeEnding, Launcher, pathsIn } from "../../src/launcher/launcher.ts";
import { systemClock } from "../../src/std/clock.ts";
import { Failure } from "../../src/std/errors.ts";
import {
  endingOf,
  eventually,
  makeRoot,
  openLauncher,
  prepare,
  purpose,
  run,
  shimPath,
  start,
  removeRoot,
} from "./kit.ts";

let root = "";
let launcher: Launcher;
before(async () => {
  root = await makeRoot();
  launcher = await openLauncher(root);
});
after(() => removeRoot(root));

test("tells the exit code, times and the length of both outputs", async () => {
  const { ending, stdout, stderr } = await run(launcher, ["sh", "-c", "echo out; echo problem >&2; exit 7"]);
  assert(ending.kind === "exited");
  assert.equal(ending.code, 7);
  assert.deepEqual([stdout, stderr], ["out\n", "problem\n"]);
  assert.deepEqual([ending.stdoutBytes, ending.stderrBytes], [4, 8]);
  assert(ending.startedAtMs > 1.6e12 && ending.endedAtMs >= ending.startedAtMs);
  assert.equal(ending.stopAsked, false);
  assert.equal(describeEnding(ending), "exited with code 7");
});

test("tells the signal that ended the job", async () => {
  const { ending } = await run(launcher, ["sh", "-c", "kill -SEGV $$"]);
  assert(ending.kind === "signalled");
  assert.equal(describeEnding(ending), "was ended by SIGSEGV");
});

test("tells a program that is not there, is not executable, and a working directory that is not there", async () => {
  const stages = [];
  for (const [argv, workingDirectory] of [
    [["no-such-program"], "/"],
    [["/no/such/program"], "/"],
    [["/etc/passwd"], "/"],
    [["true"], "/no/such/directory"],
  ] as const) {
    const { ending } = await run(launcher, argv, { workingDirectory });
    assert(ending.kind === "exec-failed");
    stages.push([ending.stage, ending.errno]);
  }
  assert.deepEqual(stages, [
    ["exec", 2],
    ["exec", 2],
    ["exec", 13],
    ["directory", 2],
  ]);
});

test("searches the PATH of the job, not of the agent", async () => {
  const folder = path.join(root, "tools");
  await fs.mkdir(folder);
  await fs.writeFile(path.join(folder, "only-here"), "#!/bin/sh\necho found\n", { mode: 0o755 });
  const { stdout } = await run(launcher, ["only-here"], { environment: { PATH: `/no/such:${folder}:/usr/bin:/bin` } });
  assert.equal(stdout, "found\n");
  assert.equal((await run(launcher, ["only-here"])).ending.kind, "exec-failed");
});

test("clears the environment and sets only what is named", async () => {
  process.env["AGENT_SECRET"] = "not for jobs";
  const { stdout } = await run(launcher, ["env"], { environment: { HOLDFAST_RESULT: "/r/result.json", EMPTY: "" } });
  const names = stdout
    .trim()
    .split("\n")
    .map((line) => line.split("=")[0])
    .sort();
  assert.deepEqual(names, ["EMPTY", "HOLDFAST_LAUNCH", "HOLDFAST_RESULT", "HOME", "LANG", "LOGNAME", "PATH", "USER"]);
  assert.match(stdout, /^LANG=C\.UTF-8$/m);
});

test("keeps the environment out of spec.json, and params are gone before the job runs", async () => {
  const { launch, stdout } = await run(launcher, ["sh", "-c", "ls .."], { environment: { TOKEN: "s3cret-value" } });
  assert(!stdout.includes("params"));
  for (const name of await fs.readdir(launch.directory)) {
    if (name !== "work")
      assert(!(await fs.readFile(path.join(launch.directory, name), "utf8")).includes("s3cret-value"), name);
  }
  assert.equal((await fs.stat(launch.directory)).mode & 0o777, 0o700);
  assert.equal((await fs.stat(pathsIn(launch.directory).stdout)).mode & 0o777, 0o600);
});

test("gives the job descriptors 0, 1 and 2 only, an empty mask, default signals and umask 077, whatever the shim inherited", async () => {
  const careless = path.join(root, "careless-shim");
  const shell = `#!/bin/sh\nexec 9</etc/passwd 4</etc/passwd\ntrap '' TERM INT CHLD PIPE\nexec '${shimPath}' "$1"\n`;
  await fs.writeFile(careless, shell, { mode: 0o755 });
  const options = { root, shimPath: careless, account: currentAccount(), clock: systemClock };
  const through = await Launcher.open(options);
  const listed = await run(through, ["ls", "-l", "/proc/self/fd"]);
  const open = [...listed.stdout.matchAll(/ (\d+ -> .*)$/gm)].map((match) => match[1] ?? "");
  const { stdout, stderr } = pathsIn(listed.launch.directory);
  // ls itself opens the folder that it lists.
  assert.deepEqual(
    open.filter((line) => !/\/proc\/\d+\/fd$/.test(line)),
    ["0 -> /dev/null", `1 -> ${stdout}`, `2 -> ${stderr}`],
  );
  assert.equal((await run(through, ["sh", "-c", "umask"])).stdout, "0077\n");
  // Without a shell, which sets its own mask.
  const signals = await run(through, ["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"]);
  assert.equal(signals.stdout, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
});

test("runs the job in its own process group, with the shim as session leader", async () => {
  const { stdout, launch } = await run(launcher, ["sh", "-c", "cut -d' ' -f1,4,5,6 /proc/$$/stat"]);
  const [pid, parent, group, session] = stdout.trim().split(" ");
  assert.equal(group, pid);
  assert.deepEqual([parent, session], [String(launch.identity.pid), String(launch.identity.pid)]);
});

test("starts in an empty folder of its own, or where it is told", async () => {
  const own = await run(launcher, ["sh", "-c", "pwd; ls -A"]);
  assert.equal(own.stdout, `${pathsIn(own.launch.directory).work}\n`);
  assert.equal((await run(launcher, ["pwd"], { workingDirectory: "/usr" })).stdout, "/usr\n");
});

test("enforces the limits", async () => {
  const limits = { cpuSeconds: 1, fileSizeBytes: 4096, openFiles: 16, addressSpaceBytes: 512 * 1024 * 1024 };
  const shown = await run(launcher, ["sh", "-c", "ulimit -t; ulimit -f; ulimit -n; ulimit -v"], { limits });
  assert.equal(shown.stdout, "1\n8\n16\n524288\n");
  const busy = await run(launcher, ["sh", "-c", "while :; do :; done"], { limits: { cpuSeconds: 1 } });
  assert.equal(describeEnding(busy.ending), "passed its limit of CPU time and was ended by SIGXCPU");
  const large = await run(launcher, ["head", "-c", "9999", "/dev/zero"], { limits });
  assert.equal(describeEnding(large.ending), "passed its limit of file size and was ended by SIGXFSZ");
  assert.equal(large.stdout.length, 4096);
});

test("passes arguments through untouched, also empty ones, 100 000 bytes and other scripts", async () => {
  const long = "x".repeat(100_000);
  const argv = ["printf", "[%s]", "", "a b", "$HOME;`id`", "ü\n", "key=value", long];
  assert.equal((await run(launcher, argv)).stdout, `[][a b][$HOME;\`id\`][ü\n][key=value][${long}]`);
  const tooLong = await run(launcher, ["true", "x".repeat(200_000)]);
  assert.equal(describeEnding(tooLong.ending), "never ran: the program could not be executed (E2BIG)");
});

test("refuses what cannot be given to a process, all faults at once, and creates nothing", async () => {
  const request = {
    purpose: purpose(),
    argv: ["a\0b"],
    environment: { "A=B": "1", C: "\0" },
    workingDirectory: "relative",
    limits: { openFiles: 0 },
  };
  const before = await launcher.list();
  await assert.rejects(launcher.prepare(request), (error) => {
    assert(error instanceof Failure);
    assert.equal(error.code, "launch_invalid");
    const places = error.details.map((fault) => fault.place).sort();
    assert.deepEqual(places, ["argv/0", "environment/A=B", "environment/C", "limits/openFiles", "workingDirectory"]);
    return true;
  });
  assert.deepEqual(await launcher.list(), before);
});

test("launches in a root of 200 characters with spaces and quotes", async () => {
  const deep = path.join(root, `a "quoted" 'root' ${"long name ".repeat(16)}`.trim());
  await fs.mkdir(deep, { mode: 0o700 });
  assert(deep.length >= 190);
  const { stdout } = await run(await openLauncher(deep), ["echo", "here"]);
  assert.equal(stdout, "here\n");
});

test("the shim stays below 1 MB resident", async () => {
  const launch = await prepare(launcher, ["true"]);
  const status = await fs.readFile(`/proc/${launch.identity.pid}/status`, "utf8");
  const resident = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]);
  assert(resident < 1000, `${resident} kB`);
  await launch.abandon();
});

test("tries again when the exit file cannot be written", async () => {
  const launch = await start(launcher, ["sh", "-c", "mkdir -p ../exit/in-the-way; exit 5"]);
  const file = path.join(launch.directory, "exit");
  await eventually("the first try", async () =>
    (await fs.readFile(`${file}.tmp`, "utf8")).includes("exited") ? true : undefined,
  );
  await fs.rm(file, { recursive: true });
  assert.equal(describeEnding(await endingOf(launcher, launch)), "exited with code 5");
});
