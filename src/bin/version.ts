// SPDX-License-Identifier: Apache-2.0
// The version of this program, from package.json, so that it is written in one place.

import { createRequire } from "node:module";

const manifest: unknown = createRequire(import.meta.url)("../../package.json");

export const VERSION: string =
  typeof manifest === "object" && manifest !== null && "version" in manifest ? String(manifest.version) : "unknown";
