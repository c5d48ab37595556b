// SPDX-License-Identifier: Apache-2.0
// Where the built page lies in this checkout.

import { fileURLToPath } from "node:url";

export const pageDirectory = fileURLToPath(new URL("../../web/dist", import.meta.url));
