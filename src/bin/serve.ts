// SPDX-License-Identifier: Apache-2.0
// What a controller of this machine is reached by, put together for `controller` and `up`: TLS or not, the address that nodes
// are told, the fleet's authority, and the files for new nodes.

import type { ControllerOptions } from "../controller/controller.ts";
import { systemClock } from "../std/clock.ts";
import { enrolmentOf } from "./artefacts.ts";
import { type KeyPair, openFleet } from "./fleet.ts";
import { defaultHost, keyPairReader, publicUrlFrom, tlsFrom } from "./tls.ts";
import { type Environment, listenFrom } from "./settings.ts";

export type ServeOptions = {
  readonly listen?: string;
  /** off, fleet, or CERTIFICATE,KEY. */
  readonly tls?: string;
  /** The address that nodes are told. */
  readonly url?: string;
};

export type Serving = Pick<ControllerOptions, "host" | "port" | "keyPair" | "publicUrl" | "enrolment"> & {
  /** What a client on this machine has to trust beside the system's authorities; undefined when nothing. */
  readonly authority: string | undefined;
  /** http or https, and this machine: for the command line of this account. */
  readonly ownUrl: (listening: string) => string;
};

export async function servingOf(root: string, options: ServeOptions, env: Environment): Promise<Serving> {
  const listen = listenFrom(env, options.listen);
  const tls = tlsFrom(env, options.tls, listen);
  const url = publicUrlFrom(env, options.url);
  const fleet = await openFleet(root, systemClock);
  let served: KeyPair | undefined;
  const read = keyPairReader(tls, fleet, url === undefined ? [] : [url.hostname.replace(/^\[|\]$/g, "")]);
  const keyPair = read === undefined ? undefined : async () => (served = await read());
  const scheme = tls.kind === "off" ? "http" : "https";
  const publicUrl =
    url?.origin ?? (listen.port === 0 ? undefined : `${scheme}://${defaultHost(listen.host)}:${listen.port}`);
  return {
    ...listen,
    ...(keyPair === undefined ? {} : { keyPair }),
    ...(publicUrl === undefined ? {} : { publicUrl }),
    enrolment: enrolmentOf({ fleet, tls, served: () => served }),
    authority: tls.kind === "fleet" ? fleet.caPem : undefined,
    ownUrl: (listening) => (tls.kind === "files" && url !== undefined ? url.origin : listening),
  };
}
