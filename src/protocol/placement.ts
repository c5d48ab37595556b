// SPDX-License-Identifier: Apache-2.0
// What a job needs of the node that runs it, pure. Three paths, the fastest first: all beside a GPU, split between a GPU and
// the machine's memory, on the processor alone. Rule: slow never excludes, too small always does, unknown is not zero.

export const paths = ["gpu", "split", "cpu"] as const;
/** gpu: all of it beside a GPU. split: a part beside a GPU, the rest in the machine's memory. cpu: on the processor alone. */
export type Path = (typeof paths)[number];

/** What a job needs; an absent field asks for nothing. Interned as the profile of a lane. */
export type Requirements = {
  /** Memory of the machine on whichever path it runs, bytes. Beside what the fields below ask for. */
  readonly memoryBytes?: number;
  /** Memory beside a GPU when all of it runs there. Whoever gives this wants a GPU, and the fields below say what else would do. */
  readonly needFullBytes?: number;
  /** How much of needFullBytes may lie in the machine's memory instead: the split path. */
  readonly needHostBytes?: number;
  /** Memory of the machine when it runs on the processor alone; absent: needFullBytes. */
  readonly needMinBytes?: number;
  /** Allowed ones; absent: all that the needs above describe. */
  readonly paths?: readonly Path[];
  /** GPUs over which one job can spread its part; absent: 1. */
  readonly gpus?: number;
  /** As Node names it: x64 or arm64. */
  readonly arch?: "x64" | "arm64";
  /** Only this node. */
  readonly nodeId?: string;
  /** A registered model whose needs were added to these when the job was submitted. */
  readonly model?: string;
  /** Only where this scene is active and every model of it is verified now. */
  readonly scene?: string;
  /** Only where a model of this name is served and verified now. */
  readonly servedModel?: string;
};

/** The part of a profile that a registered model can have. */
export type Needs = Pick<
  Requirements,
  "memoryBytes" | "needFullBytes" | "needHostBytes" | "needMinBytes" | "paths" | "gpus" | "arch"
>;

/** The paths that a profile allows, the fastest first. */
export function allowedPaths(needs: Needs): readonly Path[] {
  if (needs.needFullBytes === undefined) return ["cpu"];
  const allowed = needs.paths;
  if (allowed !== undefined) return paths.filter((path) => allowed.includes(path));
  return needs.needHostBytes === undefined ? ["gpu", "cpu"] : paths;
}

export type Demand = {
  /** Of the machine's memory. */
  readonly hostBytes: number;
  /** Beside a GPU. */
  readonly gpuBytes: number;
};

export function demandOf(needs: Needs, path: Path): Demand {
  const { memoryBytes = 0, needFullBytes = 0, needHostBytes = 0, needMinBytes = needFullBytes } = needs;
  switch (path) {
    case "gpu":
      return { hostBytes: memoryBytes, gpuBytes: needFullBytes };
    case "split":
      return { hostBytes: memoryBytes + needHostBytes, gpuBytes: needFullBytes - needHostBytes };
    case "cpu":
      return { hostBytes: memoryBytes + needMinBytes, gpuBytes: 0 };
    default:
      return path satisfies never;
  }
}

export type NeedFault = { readonly field: keyof Needs; readonly problem: string };

/** What in a profile contradicts itself; all of it at once. */
export function needFaults(needs: Needs): readonly NeedFault[] {
  const { needFullBytes: full, needHostBytes: host, needMinBytes: min, gpus } = needs;
  const faults: NeedFault[] = [];
  if (full === undefined) {
    for (const field of ["needHostBytes", "needMinBytes", "paths", "gpus"] as const)
      if (needs[field] !== undefined) faults.push({ field, problem: "is said of a job that gives needFullBytes" });
    return faults;
  }
  const allowed = allowedPaths(needs);
  if (host !== undefined && host >= full)
    faults.push({ field: "needHostBytes", problem: "must be less than needFullBytes: the rest lies beside the GPU" });
  if (host !== undefined && !allowed.includes("split"))
    faults.push({ field: "needHostBytes", problem: "is for the split path, which paths leaves out" });
  if (host === undefined && allowed.includes("split"))
    faults.push({ field: "paths", problem: "split needs needHostBytes: how much may lie in the machine's memory" });
  if (min !== undefined && !allowed.includes("cpu"))
    faults.push({ field: "needMinBytes", problem: "is for the cpu path, which paths leaves out" });
  if (gpus !== undefined && !allowed.includes("gpu") && !allowed.includes("split"))
    faults.push({ field: "gpus", problem: "is said of a job that may run beside a GPU" });
  return faults;
}

/**
 * A profile with the needs of the model that it names: the larger memory counts, and of the rest what the job itself says.
 * Undefined when they contradict each other.
 */
export function requirementWith(requires: Requirements, needs: Needs): Requirements | undefined {
  if (requires.arch !== undefined && needs.arch !== undefined && requires.arch !== needs.arch) return undefined;
  const allowed = bothAllow(requires.paths, needs.paths);
  if (allowed?.length === 0) return undefined;
  // What the model says of a path that the job rules out is of no use to it.
  const ofModel = (path: Path): Needs => (requires.paths?.includes(path) === false ? {} : needs);
  return {
    ...requires,
    ...given("memoryBytes", larger(requires.memoryBytes, needs.memoryBytes)),
    ...given("needFullBytes", larger(requires.needFullBytes, needs.needFullBytes)),
    ...given("needHostBytes", requires.needHostBytes ?? ofModel("split").needHostBytes),
    ...given("needMinBytes", requires.needMinBytes ?? ofModel("cpu").needMinBytes),
    ...given("paths", allowed),
    ...given("gpus", requires.gpus ?? needs.gpus),
    ...given("arch", requires.arch ?? needs.arch),
  };
}

function bothAllow(one: readonly Path[] | undefined, other: readonly Path[] | undefined): readonly Path[] | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return paths.filter((path) => one.includes(path) && other.includes(path));
}

function larger(one: number | undefined, other: number | undefined): number | undefined {
  const most = Math.max(one ?? 0, other ?? 0);
  return most === 0 ? undefined : most;
}

function given<Key extends string, Value>(key: Key, value: Value | undefined): { readonly [K in Key]?: Value } {
  return value === undefined ? {} : ({ [key]: value } as { readonly [K in Key]: Value });
}

export function gibibytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}

/** In one line, for people; empty when nothing is asked for. */
export function needsText(needs: Requirements): string {
  const { memoryBytes, needFullBytes, needHostBytes, needMinBytes, paths: allowed, gpus, arch, ...named } = needs;
  const size = (what: string, bytes: number | undefined): readonly string[] =>
    bytes === undefined ? [] : [`${gibibytes(bytes)} ${what}`];
  return [
    ...size("of memory", memoryBytes),
    ...size("beside a GPU", needFullBytes),
    ...size("of it in memory when split", needHostBytes),
    ...size("on the processor alone", needMinBytes),
    ...(allowed === undefined ? [] : [`paths ${allowed.join(", ")}`]),
    ...(gpus === undefined ? [] : [`up to ${gpus} GPUs`]),
    ...(arch === undefined ? [] : [arch]),
    ...Object.entries(named).map(([name, value]) => `${name} ${value}`),
  ].join(", ");
}
