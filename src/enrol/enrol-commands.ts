// SPDX-License-Identifier: Apache-2.0
// What a person is given to run on the machine. The code is not in it: it goes into the environment first, so that no argv,
// no address and no log ever holds it. A controller with a certificate of its own is told by its key, never trusted unseen.

import { createHash } from "node:crypto";
import type { EnrolCommands } from "../protocol/enrol-schema.ts";

export type CommandParts = {
  /** Of the controller, as nodes reach it. */
  readonly url: string;
  /** sha256//BASE64 of the server's key; undefined where the machine trusts the certificate anyway, or over plain HTTP. */
  readonly pin: string | undefined;
  readonly authoritySha256: string | undefined;
  readonly scriptSha256: string;
};

export function scriptSha256(script: string): string {
  return createHash("sha256").update(script).digest("hex");
}

export function enrolCommands({ url, pin, authoritySha256, scriptSha256: hash }: CommandParts): EnrolCommands {
  const base = url.replace(/\/$/, "");
  const trust = pin === undefined ? "" : ` -k --pinnedpubkey '${pin}'`;
  const fetch = `curl -fsS${trust} ${base}/v1/bootstrap.sh`;
  const flags = [`--controller ${base}`];
  if (pin !== undefined) flags.push(`--pin '${pin}'`);
  if (authoritySha256 !== undefined) flags.push(`--authority ${authoritySha256}`);
  return {
    run: `${fetch} | sh -s -- ${flags.join(" ")}`,
    read: [
      `${fetch} -o holdfast.sh`,
      "less holdfast.sh",
      `echo '${hash}  holdfast.sh' | sha256sum -c`,
      `sh holdfast.sh ${flags.join(" ")}`,
    ],
    scriptSha256: hash,
  };
}
