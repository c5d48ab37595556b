// SPDX-License-Identifier: Apache-2.0
// Opens device nodes and says how each open ended, in a process of its own: an open can hang in a driver, and only a process
// that gave up root shows what another account may. Usage: node open-nodes.js [--as NAME UID GID] NODE…
// Prints {"path": "ENOENT", …}; "" is opened. Rule: it opens for reading and writing, creates nothing, writes nothing.
// JavaScript, because it is started every minute and starts in a third of the time.

import fs from "node:fs";

const words = process.argv.slice(2);
if (words[0] === "--as") {
  const [, name = "", uid, gid] = words.splice(0, 4);
  // Groups first: without root none of the three is possible.
  process.initgroups?.(name, Number(gid));
  process.setgid?.(Number(gid));
  process.setuid?.(Number(uid));
}
const ends = words.map((node) => {
  try {
    fs.closeSync(fs.openSync(node, fs.constants.O_RDWR | fs.constants.O_NONBLOCK));
    return [node, ""];
  } catch (error) {
    return [node, error.code ?? "?"];
  }
});
process.stdout.write(`${JSON.stringify(Object.fromEntries(ends))}\n`);
