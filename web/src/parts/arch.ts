// SPDX-License-Identifier: Apache-2.0
// Architectures as a choice in a form.

import type { ModelNeeds } from "../../../src/protocol/registry-schema.ts";

export type Arch = NonNullable<ModelNeeds["arch"]>;

export const archChoices: readonly (readonly ["" | Arch, string])[] = [
  ["", "any"],
  ["x64", "x64"],
  ["arm64", "arm64"],
];

/** What was chosen, as a part of the needs: nothing for "any". */
export function archNeed(choice: string): { readonly arch?: Arch } {
  const arch = archChoices.find(([each]) => each === choice)?.[0];
  return arch === undefined || arch === "" ? {} : { arch };
}
