// SPDX-License-Identifier: Apache-2.0
// The text of a first scenes.yaml, with what a person needs to know beside each line.

import path from "node:path";

export type First = { readonly server: string; readonly listen: string; readonly model?: string };

export function firstScenes({ server, listen, model }: First): string {
  const file = model ?? "/path/to/model.gguf";
  const name = nameOf(file);
  return `# Scenes of this machine: named sets of model servers that are switched as one.
# Look for faults with: holdfast scene check     Switch with: holdfast scene activate main
version: 1

# What apps use. These addresses never move; behind them is whatever scene is active.
gateways:
  main:
    listen: ${listen}
    http_status: true # answer 503 with the reason while nothing is served

models:
  ${name}:
    # \${PORT} is the port below. Paths may begin with ~/ or \${HOME}.
    argv: [${JSON.stringify(server)}, -m, ${JSON.stringify(file)}, --alias, ${name}, --host, 127.0.0.1, --port, "\${PORT}"]
    port: 9001
    health: /health
    # What GET /v1/models must say for this to count as this model.
    marker: ${name}
    # memory: 8GiB   # what it needs; learned when it is left out

scenes:
  main:
    models: [${name}]
    gateways: { main: ${name} }
`;
}

function nameOf(file: string): string {
  const name = path
    .basename(file)
    .replace(/\.(gguf|safetensors)$/i, "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]/g, "-")
    .replace(/^[^a-z0-9]+/, "")
    .slice(0, 40);
  return name === "" ? "model" : name;
}
