// SPDX-License-Identifier: Apache-2.0
// What controls a gateway, as a process that can be killed: tells it a table under generation 7, says so, and stays.

import { gatewayControl } from "../../src/gateway/control-client.ts";
import type { Table } from "../../src/gateway/table.ts";

const [path = "", table = ""] = process.argv.slice(2);
const applied = await gatewayControl(path).set(JSON.parse(table) as Table, 7);
process.stdout.write(`${applied.kind}\n`);
process.stdin.resume();
setInterval(() => {}, 60_000);
