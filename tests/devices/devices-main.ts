// SPDX-License-Identifier: Apache-2.0
// What `holdfast devices status --json` and `check --json` do, without the command tree, which costs more than the look itself.
// Usage: node devices-main.ts status | check [JSON of accounts and denied]

import { checkDevices, devicesStatus } from "../../src/bin/devices.ts";

const [verb, wish = "{}"] = process.argv.slice(2);
const seen =
  verb === "status"
    ? await devicesStatus()
    : await checkDevices(JSON.parse(wish) as Parameters<typeof checkDevices>[0]);
process.stdout.write(JSON.stringify(seen));
