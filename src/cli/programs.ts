// SPDX-License-Identifier: Apache-2.0
// The long-running programs that the command line starts. They are handed in by bin/, loaded only when they are run, so that
// a look at a job does not load a web server.

import type { Check } from "../protocol/access-schema.ts";

/** What a backup holds. */
export type BackupSummary = {
  readonly directory: string;
  readonly format: number;
  readonly holdfast: string;
  readonly server: string;
  readonly takenAt: string;
  readonly migrations: readonly string[];
  readonly tables: readonly { readonly name: string; readonly rows: number; readonly bytes: number }[];
  readonly rows: number;
  readonly bytes: number;
  readonly tookMs: number;
};

/** What was made of it: the newer migrations, and what became of the jobs that had not ended. */
export type RestoreSummary = BackupSummary & {
  readonly root: string;
  readonly migrated: readonly string[];
  readonly jobs: number;
  readonly returned: number;
  readonly cancelled: number;
};

type BackupOptions = {
  readonly directory: string;
  readonly root?: string;
  readonly progress: (table: string, bytes: number) => void;
};

export type Programs = {
  /** The text of a systemd unit for this installation. */
  readonly controllerUnit: (options: {
    readonly isEmbedded: boolean;
    readonly account: string;
    readonly listen: string;
  }) => string;
  /** Looks at this machine and changes nothing. */
  readonly checkMachine: (options: { readonly root?: string }) => Promise<readonly Check[]>;
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
  /** Undefined when it was interrupted; then nothing was made. */
  readonly backup: (options: BackupOptions) => Promise<BackupSummary | undefined>;
  readonly restore: (options: BackupOptions) => Promise<RestoreSummary | undefined>;
  readonly dbMigrate: () => Promise<readonly string[]>;
  readonly dbStatus: () => Promise<{
    readonly applied: readonly { readonly number: number; readonly name: string; readonly appliedAt: string }[];
    readonly pending: readonly string[];
  }>;
};
