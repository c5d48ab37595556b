// SPDX-License-Identifier: Apache-2.0
// Which node can run which job, pure. Slow never excludes, too small always does, unknown is not zero.
// Pools, paths and devices come with the placement issue; this slice judges system memory, architecture and a named node.

/** What a job needs; an absent field asks for nothing. Interned as the profile of a lane. */
export type Requirements = {
  /** Least memory of the machine, bytes. */
  readonly memoryBytes?: number;
  /** As Node names it: x64 or arm64. */
  readonly arch?: "x64" | "arm64";
  /** Only this node. */
  readonly nodeId?: string;
  /** A registered model whose needs were added to these when the job was submitted. */
  readonly model?: string;
};

/** A profile with the needs of the model that it names: the larger memory counts. Undefined when they contradict each other. */
export function requirementWith(
  requires: Requirements,
  needs: { readonly memoryBytes?: number; readonly arch?: "x64" | "arm64" },
): Requirements | undefined {
  if (requires.arch !== undefined && needs.arch !== undefined && requires.arch !== needs.arch) return undefined;
  const arch = requires.arch ?? needs.arch;
  const memoryBytes = Math.max(requires.memoryBytes ?? 0, needs.memoryBytes ?? 0);
  return { ...requires, ...(arch === undefined ? {} : { arch }), ...(memoryBytes === 0 ? {} : { memoryBytes }) };
}

export type Candidate = {
  readonly nodeId: string;
  readonly name: string;
  readonly status: "active" | "draining" | "retired";
  readonly isOnline: boolean;
  readonly lastHeartbeatAt: string | null;
  readonly arch: string | null;
  readonly memoryTotalBytes: number | null;
  /** Why it refuses every job at present; null when it does not. */
  readonly refuses: string | null;
};

export type Fit = { readonly kind: "fits" } | { readonly kind: "unfit"; readonly reason: string };

/** Judged by static totals only: what is free at the moment decides when a job starts, never whether it is blocked. */
export function fit(requirements: Requirements, node: Candidate): Fit {
  const { memoryBytes, arch, nodeId } = requirements;
  if (nodeId !== undefined && nodeId !== node.nodeId) return { kind: "unfit", reason: "another node is asked for" };
  if (arch !== undefined && arch !== node.arch) {
    return { kind: "unfit", reason: `needs ${arch}, ${node.name} is ${node.arch ?? "of unknown architecture"}` };
  }
  if (memoryBytes === undefined) return { kind: "fits" };
  if (node.memoryTotalBytes === null) return { kind: "unfit", reason: `the memory of ${node.name} is unknown` };
  if (node.memoryTotalBytes >= memoryBytes) return { kind: "fits" };
  const short = memoryBytes - node.memoryTotalBytes;
  return {
    kind: "unfit",
    reason: `too small: needs ${gibibytes(memoryBytes)}, ${node.name} has ${gibibytes(node.memoryTotalBytes)}, short by ${gibibytes(short)}`,
  };
}

/** Why nothing can run a profile at present; undefined when an active, online node fits. */
export function blockedReason(requirements: Requirements, nodes: readonly Candidate[]): string | undefined {
  const inService = nodes.filter((node) => node.status !== "retired");
  if (inService.length === 0) return "no node is enrolled: pair one with `holdfast node pair NAME`";
  const fitting = inService.filter((node) => fit(requirements, node).kind === "fits");
  if (fitting.some((node) => node.status === "active" && node.isOnline && node.refuses === null)) return undefined;
  if (fitting.length > 0) {
    const isRefused = fitting.some((node) => node.status === "active" && node.isOnline);
    const named = fitting.slice(0, 3).map((node) => `${node.name} (${whyAway(node)})`);
    const which = isRefused ? "only nodes that refuse jobs, or are away, fit" : "only offline or draining nodes fit";
    return `${which}: ${named.join(", ")}${fitting.length > 3 ? " and more" : ""}`;
  }
  return `no node fits: ${nearestMiss(requirements, inService)}`;
}

function whyAway(node: Candidate): string {
  if (node.status === "draining") return "draining";
  if (node.isOnline && node.refuses !== null) return `refuses every job: ${node.refuses}`;
  return node.lastHeartbeatAt === null ? "never seen" : `last seen ${node.lastHeartbeatAt}`;
}

function nearestMiss(requirements: Requirements, nodes: readonly Candidate[]): string {
  const largestFirst = [...nodes].sort((a, b) => (b.memoryTotalBytes ?? 0) - (a.memoryTotalBytes ?? 0));
  for (const node of largestFirst) {
    const verdict = fit(requirements, node);
    const isOther = requirements.nodeId !== undefined && requirements.nodeId !== node.nodeId;
    if (verdict.kind === "unfit" && !isOther) return verdict.reason;
  }
  return `node ${requirements.nodeId ?? ""} is not in service`;
}

export function gibibytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
