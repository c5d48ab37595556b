// SPDX-License-Identifier: Apache-2.0
// The long-running programs that the command line starts. They are handed in by bin/, loaded only when they are run, so that
// a look at a job does not load a web server.

export type Programs = {
  readonly up: (options: {
    readonly once?: boolean;
    readonly listen?: string;
    readonly root?: string;
  }) => Promise<number>;
  readonly controller: (options: {
    readonly listen?: string;
    readonly embedded?: boolean;
    readonly root?: string;
    readonly migrate?: boolean;
  }) => Promise<number>;
  readonly agent: (options: {
    readonly root?: string;
    readonly join?: string;
    readonly slots?: number;
    readonly onStop?: "release" | "finish" | "leave";
    readonly stopGraceMs?: number;
    readonly outputBytesMax?: number;
    readonly stopFile?: string;
    readonly nodeKeyStdin?: boolean;
    readonly lifeline?: boolean;
    readonly dieAfterClaim?: boolean;
  }) => Promise<number>;
  readonly dbMigrate: () => Promise<readonly string[]>;
  readonly dbStatus: () => Promise<{
    readonly applied: readonly { readonly number: number; readonly name: string; readonly appliedAt: string }[];
    readonly pending: readonly string[];
  }>;
};
