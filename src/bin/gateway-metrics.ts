// SPDX-License-Identifier: Apache-2.0
// `holdfast gateway metrics`: the counters of the gateway that runs, in Prometheus' text format; on standard output, or replaced
// whole in a file, for a collector that reads files. It starts nothing.

import fs from "node:fs";
import path from "node:path";
import { gatewayControl } from "../gateway/control-client.ts";
import { stateDirectory } from "../scenes/state.ts";
import { fileFailure } from "../std/files.ts";
import { type Environment, rootFrom } from "./settings.ts";

export type GatewayMetricsOptions = {
  readonly root?: string;
  /** Of a gateway that is not the node's. */
  readonly control?: string;
  /** Undefined: the text is only returned. */
  readonly file?: string;
};

/** Throws gateway_unreachable. */
export async function gatewayMetrics(options: GatewayMetricsOptions, env: Environment): Promise<string> {
  const { control = path.join(stateDirectory(rootFrom(env, options.root)), "gateway.sock"), file } = options;
  const text = await gatewayControl(control).metrics();
  if (file !== undefined) replaceFile(file, text);
  return text;
}

/** Read by a collector of another account, at any moment. */
function replaceFile(file: string, text: string): void {
  const beside = `${file}.${process.pid}.new`;
  try {
    try {
      fs.writeFileSync(beside, text, { mode: 0o644 });
      fs.renameSync(beside, file);
    } finally {
      fs.rmSync(beside, { force: true });
    }
  } catch (error) {
    throw fileFailure(file, error);
  }
}
