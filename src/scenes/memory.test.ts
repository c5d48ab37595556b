// SPDX-License-Identifier: Apache-2.0
// What a machine can still give, read from trees of control groups as they are found: version 2, version 1, both at once, and a
// container that is shown a part only.

import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { type Available, availableMemory } from "./memory.ts";

const MIB = 1024 * 1024;
const MEMINFO = "MemTotal: 9 kB\nMemAvailable: 1024000 kB\n";

type Machine = {
  readonly mounts: readonly string[];
  readonly own: readonly string[];
  readonly files: Readonly<Record<string, string | number>>;
  readonly meminfo?: string;
};

/** In mounts and files, a path begins at a directory of the test. */
function read(t: TestContext, { mounts, own, files, meminfo = MEMINFO }: Machine): Available | undefined {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "memory-"));
  t.after(() => fs.rmSync(root, { recursive: true, force: true }));
  const write = (name: string, text: string): string => {
    const file = path.join(root, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, text);
    return file;
  };
  for (const [name, text] of Object.entries(files)) write(name, `${text}\n`);
  const available = availableMemory({
    meminfo: write("meminfo", meminfo),
    mountinfo: write("mountinfo", mounts.map((line) => `${line.replace("DIR", root)}\n`).join("")),
    cgroupOf: write("self", own.map((line) => `${line}\n`).join("")),
  });
  return available === undefined ? undefined : { ...available, source: available.source.replace(root, "") };
}

const V2 = "40 30 0:37 / DIR/cg rw - cgroup2 none rw";

test("of version 2 every level above counts, what can be dropped is free, what must be written first is not", (t) => {
  const files = {
    "cg/memory.max": "nonsense: the root has none",
    "cg/a/memory.max": 500 * MIB,
    "cg/a/memory.current": 450 * MIB,
    "cg/a/memory.stat": `anon 1\nactive_file ${100 * MIB}\ninactive_file ${50 * MIB}\nslab_reclaimable ${MIB}\nfile_dirty ${20 * MIB}\nfile_writeback ${MIB}`,
    "cg/a/b/memory.max": "max",
    "cg/a/b/memory.high": "max",
    "cg/a/b/memory.current": 1,
    "cg/a/b/memory.stat": "",
  };
  const found = read(t, { mounts: [V2], own: ["0::/a/b"], files });
  assert.deepEqual(found, { bytes: 180 * MIB, source: "memory.max of /cg/a" });
});

test("above memory.high everything crawls: it is a bound like memory.max", (t) => {
  const files = { "cg/a/memory.max": 500 * MIB, "cg/a/memory.high": 400 * MIB, "cg/a/memory.current": 390 * MIB };
  const found = read(t, { mounts: [V2], own: ["0::/a"], files });
  assert.deepEqual(found, { bytes: 10 * MIB, source: "memory.high of /cg/a" });
});

test("version 1 is read where it counts memory, also beside version 2, and its largest number is no limit", (t) => {
  const files = {
    "memory/memory.limit_in_bytes": "9223372036854771712",
    "memory/memory.usage_in_bytes": 1,
    "memory/unit/memory.limit_in_bytes": 500 * MIB,
    "memory/unit/memory.usage_in_bytes": 450 * MIB,
    "memory/unit/memory.stat": `active_file 9\ntotal_active_file ${MIB}\ntotal_inactive_file ${2 * MIB}\ntotal_dirty 0`,
  };
  const mounts = [V2, "32 30 0:29 / DIR/memory rw,relatime - cgroup cgroup rw,memory"];
  const found = read(t, { mounts, own: ["9:name=systemd:/x", "4:memory:/unit", "0::/"], files });
  assert.deepEqual(found, { bytes: 53 * MIB, source: "memory.limit_in_bytes of /memory/unit" });
  assert.equal(read(t, { mounts, own: ["4:memory:/"], files, meminfo: "" }), undefined);
});

test("a container that is shown its own part only finds its limit there, by the path that the host gave it", (t) => {
  const files = { "memory/memory.limit_in_bytes": 100 * MIB, "memory/memory.usage_in_bytes": 60 * MIB };
  const mounts = ["32 30 0:29 /docker/abc DIR/memory rw,relatime - cgroup cgroup rw,hugetlb,memory"];
  const found = read(t, { mounts, own: ["4:hugetlb,memory:/docker/abc"], files });
  assert.deepEqual(found, { bytes: 40 * MIB, source: "memory.limit_in_bytes of /memory" });
});

test("a use above the limit leaves nothing, and without groups MemAvailable is the bound", (t) => {
  const files = { "cg/a/memory.max": MIB, "cg/a/memory.current": 2 * MIB };
  assert.equal(read(t, { mounts: [V2], own: ["0::/a"], files })?.bytes, 0);
  assert.deepEqual(read(t, { mounts: [], own: [], files: {} }), { bytes: 1000 * MIB, source: "MemAvailable" });
  // Outside of what is shown: not known, so not a bound.
  assert.equal(read(t, { mounts: [V2], own: ["0::/../other"], files })?.source, "MemAvailable");
});
