// SPDX-License-Identifier: Apache-2.0
// What a protection would write and refuse, from facts alone.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import type { Facts } from "./protection-facts.ts";
import { hookText } from "./protection-hook.ts";
import { type Plan, planProtection, type Wish } from "./protection-plan.ts";
import { type Guarded, parseProtection, watchedNodes } from "./protection.ts";
import { protectionFiles, unitsFor } from "./protection-text.ts";

const nvidia: Guarded = { address: "0000:01:00.0", vendor: "nvidia", nodes: ["nvidia0", "nvidiactl"], isJetson: false };
const amd: Guarded = { address: "0000:03:00.0", vendor: "amd", nodes: ["kfd", "dri/renderD128"], isJetson: false };
const intel: Guarded = { address: "0000:00:02.0", vendor: "intel", nodes: ["dri/renderD129"], isJetson: false };
const jetson: Guarded = { address: "17000000.gpu", vendor: "nvidia", nodes: ["nvmap"], isJetson: true };

const facts = (change: Partial<Facts> = {}): Facts => ({
  devices: [nvidia],
  accounts: [
    { name: "holdfast", uid: 990, gid: 990 },
    { name: "llm", uid: 991, gid: 991 },
  ],
  groups: [
    { name: "video", gid: 44, members: [] },
    { name: "render", gid: 108, members: [] },
  ],
  desktop: [],
  state: undefined,
  rights: { "/dev/nvidia0": { mode: 0o666, uid: 0, gid: 0 } },
  modprobe: undefined,
  hasSystemd: true,
  ...change,
});

const planned = (wish: Wish, some: Facts): Plan => {
  const plan = planProtection(wish, some);
  assert.ok(!("faults" in plan), JSON.stringify(plan));
  return plan;
};
const refused = (wish: Wish, some: Facts): readonly string[] => {
  const plan = planProtection(wish, some);
  assert.ok("faults" in plan);
  return plan.faults.map(({ place, problem }) => `${place}: ${problem}`);
};
const texts = (
  devices: readonly Guarded[],
  change: { readonly isDesktopLocked?: boolean } = {},
): ReadonlyMap<string, string> => {
  const wanted = { group: "render", devices, deniedUnits: [], isDesktopLocked: false, ...change };
  return new Map(protectionFiles(wanted, 108).map(({ path, text }) => [path.split("/").at(-1) ?? "", text]));
};

test("AMD and Intel are set by ordinary rules for their cards alone, NVIDIA by the binding of its driver", () => {
  const rules = texts([amd, intel]).get("72-holdfast-devices.rules") ?? "";
  assert.deepEqual(
    rules.split("\n").filter((line) => line !== "" && !line.startsWith("#")),
    [
      'ACTION!="remove", SUBSYSTEM=="kfd", KERNEL=="kfd", GROUP="render", MODE="0660"',
      'ACTION!="remove", SUBSYSTEM=="drm", KERNEL=="renderD*", KERNELS=="0000:03:00.0", GROUP="render", MODE="0660"',
      'ACTION!="remove", SUBSYSTEM=="drm", KERNEL=="renderD*", KERNELS=="0000:00:02.0", GROUP="render", MODE="0660"',
    ],
  );
  const both = texts([nvidia, amd], { isDesktopLocked: true }).get("72-holdfast-devices.rules") ?? "";
  assert.match(both, /ACTION=="bind", SUBSYSTEM=="pci", KERNEL=="0000:01:00\.0", ATTR\{vendor\}=="0x10de", RUN\+=/);
  assert.match(both, /KERNELS=="0000:03:00\.0", GROUP="render", MODE="0660", TAG-="uaccess"/);
  assert.equal(texts([amd]).has("holdfast-devices.conf"), false, "no settings of a driver that is not there");
});

test("what is watched is what others can open; on a Jetson nothing is set, because NVIDIA's own rules do", () => {
  assert.deepEqual(watchedNodes([nvidia, amd, jetson]), [
    "nvidia0",
    "nvidiactl",
    "kfd",
    "nvidia-uvm-tools",
    "nvidia-modeset",
  ]);
  assert.equal(unitsFor([nvidia]).length, 3);
  assert.deepEqual(unitsFor([intel]), ["holdfast-devices.service", "holdfast-devices-heal.timer"]);
  assert.equal(texts([intel]).has("holdfast-devices-heal.path"), false);
  assert.deepEqual([...texts([jetson]).keys()], []);
  assert.deepEqual(unitsFor([jetson]), []);
});

test("the hook is plain sh with this machine's values, and takes none that could be more than a value", () => {
  const text = hookText("holdfast-gpu", [nvidia, amd, jetson]);
  assert.match(text, /^group='holdfast-gpu'$/m);
  assert.match(text, /^cards='0000:01:00\.0 0000:03:00\.0'$/m);
  assert.match(text, /^others='\/dev\/kfd'$/m);
  const { status, stderr } = spawnSync("sh", ["-n"], { input: text, encoding: "utf8" });
  assert.equal(status, 0, stderr);
  assert.throws(() => hookText("a'; rm -rf /", [nvidia]), /bug/);
});

test("the group is video with NVIDIA, else render, else the one that is named, and is made when it is not there", () => {
  assert.equal(planned({}, facts()).protection.group, "video");
  assert.equal(planned({}, facts({ devices: [amd] })).protection.group, "render");
  const own = planned({ group: "holdfast-gpu", accounts: ["llm", "holdfast"] }, facts());
  assert.deepEqual([own.gid, own.protection.hasMadeGroup], [undefined, true]);
  assert.deepEqual(
    own.first.map(({ argv }) => argv.join(" ")),
    ["groupadd --system holdfast-gpu", "usermod -aG holdfast-gpu llm", "usermod -aG holdfast-gpu holdfast"],
  );
});

test("a second protection keeps what was declared and what was there before the first, and takes out who is dropped", () => {
  const { protection } = planned({ accounts: ["holdfast", "llm"] }, facts());
  const groups = [{ name: "video", gid: 44, members: ["holdfast", "llm"] }];
  const later = facts({ state: protection, groups, rights: { "/dev/nvidia0": { mode: 0o660, uid: 0, gid: 44 } } });
  const again = planned({}, later);
  assert.deepEqual([again.first, again.protection], [[], protection]);
  const fewer = planned({ accounts: ["holdfast"] }, later);
  assert.deepEqual(
    fewer.first.map(({ argv }) => argv.join(" ")),
    ["gpasswd -d llm video"],
  );
  assert.deepEqual(fewer.protection.added, ["holdfast"]);
  assert.deepEqual(fewer.protection.before, protection.before);
});

test("all that is wrong with a wish is said at once", () => {
  const some = facts({
    devices: [],
    desktop: ["bob"],
    groups: [{ name: "video", gid: 44, members: ["eve"] }],
    accounts: [{ name: "mallory", uid: 5, gid: 44 }],
  });
  const faults = refused(
    { accounts: ["root", "holdfast"], group: "video", deniedUnits: ["x"], isModprobeLocked: true },
    some,
  ).join("\n");
  for (const part of [
    /no GPU with a driver/,
    /--account root: root gets to every device anyway/,
    /--account holdfast: there is no such account/,
    /group video: eve is in it/,
    /group video: mallory is in it/,
    /desktop: bob sits/,
    /--deny-unit x/,
    /--lock-modprobe: nvidia-modprobe is not installed/,
  ])
    assert.match(faults, part);
  assert.deepEqual(refused({ group: "Video!" }, facts()).length, 1);
  assert.match(refused({ group: "render" }, facts({ devices: [jetson] })).join(), /on a Jetson it is video/);
});

test("desktop users are locked out only when that is accepted or they are declared", () => {
  const some = facts({ desktop: ["llm"] });
  assert.equal(refused({}, some).length, 1);
  assert.equal(planned({ isDesktopLocked: true }, some).protection.isDesktopLocked, true);
  assert.equal(planned({ accounts: ["holdfast", "llm"] }, some).protection.isDesktopLocked, false);
});

test("what was declared by another version or is damaged is not guessed", () => {
  for (const text of ["", "{", '{"version": 2}', '{"version": 1, "group": "video"}'])
    assert.ok("unreadable" in (parseProtection(text) ?? {}), text);
  assert.equal(parseProtection(undefined), undefined);
  assert.match(
    refused({}, facts({ state: { unreadable: "it lacks parts" } })).join(),
    /run holdfast devices unprotect first/,
  );
});
