// SPDX-License-Identifier: Apache-2.0
// The shape of scenes.yaml: what the models of a node are, which of them make a scene, and behind which addresses they are
// reached. The same schema checks the file and helps editors (docs/scenes.schema.json). What no shape can say is in src/scenes.

import Type, { type Static } from "typebox";

const text = (description: string) => Type.String({ minLength: 1, maxLength: 4096, description });
const entryName = "^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$";
const variableName = "^[A-Za-z_][A-Za-z0-9_]{0,127}$";
const duration = (description: string) =>
  Type.String({ pattern: "^\\d+(\\.\\d+)?\\s*(ms|s|m|h|d)$", description: `${description} Such as 500ms, 90s, 10m.` });
const size = (description: string) =>
  Type.String({
    pattern: "^\\d+(\\.\\d+)?\\s*([KMGTkmgt]?(i?[Bb])?)$",
    description: `${description} Such as 12GiB, 500MB.`,
  });
const argv = Type.Array(Type.String({ maxLength: 65_536 }), { minItems: 1, maxItems: 1024 });
const path = Type.String({ pattern: "^/[^\\s#]*$", maxLength: 2048 });
const pointer = Type.String({ pattern: "^(/([^~]|~[01])*)?$", maxLength: 512 });
const json = Type.Unsafe<unknown>({});

const strict = { additionalProperties: false } as const;

export const fileMarker = Type.Union(
  [
    Type.String({ minLength: 1, maxLength: 512, description: "An id that GET /v1/models must tell." }),
    Type.Object(
      {
        path: Type.Optional(path),
        pointer: Type.Optional(pointer),
        value: json,
        generation: Type.Optional(
          Type.Object({ path, body: json, pointer, text: Type.String({ maxLength: 4096 }) }, strict),
        ),
      },
      {
        ...strict,
        description: "An exact value at a JSON pointer of a URL; a step * stands for each element of a list.",
      },
    ),
  ],
  { description: "What the model must say about itself to count as healthy. Two models never share one." },
);

export const fileModel = Type.Object(
  {
    argv: Type.Array(Type.String({ maxLength: 65_536 }), {
      minItems: 1,
      maxItems: 1024,
      description:
        "Program and arguments. ${NAME} is expanded: PORT, HOST, MODEL, HOME, then the environment; $$ is a dollar.",
    }),
    env: Type.Optional(
      Type.Record(Type.String({ pattern: variableName }), Type.String({ maxLength: 65_536 }), {
        ...strict,
        description: "Added to PATH, HOME, USER, LOGNAME and LANG; nothing else is inherited.",
      }),
    ),
    secrets: Type.Optional(
      Type.Array(Type.String({ pattern: variableName }), {
        maxItems: 64,
        description: "Names in env_file that this model gets into its environment.",
      }),
    ),
    cwd: Type.Optional(text("Working directory, relative to this file. Default: an empty folder of its own.")),
    host: Type.Optional(text("Where it listens. Default: 127.0.0.1.")),
    port: Type.Integer({ minimum: 1, maximum: 65_535, description: "Where it listens; its marker is asked here." }),
    health: Type.Optional(
      Type.String({
        pattern: "^/[^\\s#]*$",
        maxLength: 2048,
        description: "A path that must answer 200 before the marker is asked.",
      }),
    ),
    marker: fileMarker,
    memory: Type.Optional(size("What it needs; else what it needed before.")),
    start_timeout: Type.Optional(duration("Until it must be healthy. Default: 30m.")),
    stall_timeout: Type.Optional(
      duration("Without output, CPU time or bytes read while it loads, it counts as hung. Default: 2m."),
    ),
    stop_grace: Type.Optional(duration("Between SIGTERM and SIGKILL. Default: 10s.")),
  },
  strict,
);

export const fileScene = Type.Object(
  {
    models: Type.Array(Type.String({ pattern: entryName }), { minItems: 1, maxItems: 64, uniqueItems: true }),
    gateways: Type.Optional(
      Type.Record(Type.String({ pattern: entryName }), Type.String({ pattern: entryName }), {
        ...strict,
        description: "Which model is behind which gateway. Default: the only model behind the only gateway.",
      }),
    ),
    hooks: Type.Optional(
      Type.Object(
        { before: Type.Optional(argv), after: Type.Optional(argv) },
        {
          ...strict,
          description:
            "Commands before the first change and after the scene is active; one that fails, fails the switch.",
        },
      ),
    ),
  },
  strict,
);

export const fileGateway = Type.Object(
  {
    listen: Type.String({
      pattern: "^(\\[[0-9a-fA-F:.]+\\]|[^:\\[\\]\\s]+):\\d{1,5}$",
      description: "HOST:PORT that never moves.",
    }),
    http_status: Type.Optional(
      Type.Boolean({
        description: "Answer 503 with the reason when nothing is served, instead of a reset. Default: false.",
      }),
    ),
    drain: Type.Optional(duration("How long a switch lets busy connections go on. Default: 30s.")),
  },
  strict,
);

export const scenesFile = Type.Object(
  {
    version: Type.Literal(1),
    env_file: Type.Optional(text("NAME=VALUE lines (mode 0600) with the secrets that models name.")),
    floor: Type.Optional(size("MemAvailable that is never given to models or jobs. Default: no floor.")),
    gateways: Type.Optional(Type.Record(Type.String({ pattern: entryName }), fileGateway, strict)),
    models: Type.Record(Type.String({ pattern: entryName }), fileModel, { ...strict, minProperties: 1 }),
    scenes: Type.Record(Type.String({ pattern: entryName }), fileScene, { ...strict, minProperties: 1 }),
  },
  { ...strict, $id: "https://holdfast.dev/scenes.schema.json", title: "scenes.yaml of Holdfast" },
);
export type ScenesFile = Static<typeof scenesFile>;
export type FileModel = Static<typeof fileModel>;
export type FileScene = Static<typeof fileScene>;
export type FileMarker = Static<typeof fileMarker>;
