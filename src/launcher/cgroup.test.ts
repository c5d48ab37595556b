// SPDX-License-Identifier: Apache-2.0
// Where the cgroup hierarchy is: any mount point, bind mounts of a part, version 1 beside it, names with spaces.

import assert from "node:assert/strict";
import { test } from "node:test";
import { directoryIn, parseCgroupMounts, parseCgroupPath } from "./cgroup.ts";

test("finds version 2 wherever it is mounted, and tells it from version 1", () => {
  const text = [
    "22 1 0:20 / / rw - ext4 /dev/vda rw",
    "31 30 0:28 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu",
    "32 30 0:29 /docker/a /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory",
    "40 30 0:37 / /sys/fs/cgroup/unified rw,relatime shared:10 master:3 - cgroup2 cgroup2 rw",
    "41 30 0:37 /system.slice /mnt/a\\040b rw - cgroup2 none rw,nsdelegate",
    "",
  ].join("\n");
  const { version2, memory1, hasVersion1 } = parseCgroupMounts(text);
  assert.deepEqual(version2, [
    { root: "/", mountPoint: "/sys/fs/cgroup/unified" },
    { root: "/system.slice", mountPoint: "/mnt/a b" },
  ]);
  assert.deepEqual(memory1, [{ root: "/docker/a", mountPoint: "/sys/fs/cgroup/memory" }]);
  assert.equal(hasVersion1, true);
  const none = { version2: [], memory1: [], hasVersion1: false };
  assert.deepEqual(parseCgroupMounts(text.split("\n")[0] ?? ""), none);
});

test("shows a cgroup below a mount's root only", () => {
  const part = { root: "/system.slice", mountPoint: "/mnt" };
  assert.equal(directoryIn(part, "/system.slice/a.service"), "/mnt/a.service");
  assert.equal(directoryIn(part, "/system.slice"), "/mnt");
  assert.equal(directoryIn(part, "/system.slice2/a"), undefined);
  assert.equal(directoryIn({ root: "/", mountPoint: "/sys/fs/cgroup" }, "/../other"), undefined);
});

test("reads the path of version 2 between those of version 1", () => {
  assert.equal(parseCgroupPath("9:name=systemd:/x\n4:memory:/y\n0::/user.slice/a b\n"), "/user.slice/a b");
  assert.equal(parseCgroupPath("4:memory:/y\n"), undefined);
});
