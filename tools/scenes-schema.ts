// SPDX-License-Identifier: Apache-2.0
// Prints docs/scenes.schema.json, which helps editors with scenes.yaml, from the schema that checks it. With --check it fails
// when the committed file is stale. Usage: node tools/scenes-schema.ts [--check]

import fs from "node:fs";
import { scenesFile } from "../src/protocol/scenes-file-schema.ts";

const FILE = new URL("../docs/scenes.schema.json", import.meta.url);

const rendered = `${JSON.stringify({ $schema: "http://json-schema.org/draft-07/schema#", ...scenesFile }, null, 2)}\n`;
if (process.argv.includes("--check")) {
  const committed = fs.existsSync(FILE) ? fs.readFileSync(FILE, "utf8") : "";
  if (committed !== rendered) {
    process.stderr.write("docs/scenes.schema.json is stale: run npm run openapi and commit it\n");
    process.exitCode = 1;
  }
} else {
  fs.writeFileSync(FILE, rendered);
}
