// SPDX-License-Identifier: Apache-2.0
// The long-running programs that the command line starts. They are handed in by bin/, loaded only when they are run, so that
// a look at a job does not load a web server.

import type { Exit, Limits } from "../launcher/launcher.ts";
import type { Device } from "../devices/device.ts";
import type { Check } from "../protocol/access-schema.ts";
import type { Pulled } from "../enrol/repo-pull.ts";
import type { RepoVerified } from "../enrol/repo-verify.ts";
import type { Emit } from "../scenes/events.ts";
import type { Operation, OperationResult } from "../scenes/operations.ts";

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

export type SlotSeen = { readonly place: string; readonly text: string; readonly sequence: string | null };

/** The boundary of this machine's node, as its slots show it. */
export type BoundarySeen = {
  readonly state: "trusted" | "untrusted" | "future" | "unwritable";
  readonly why: string | null;
  readonly slots: readonly SlotSeen[];
  /** Hexadecimal. */
  readonly lineage: string | null;
  readonly sequence: string | null;
  /** Pid of the agent that runs; null when none does. */
  readonly agent: string | null;
  readonly attempts: readonly {
    readonly jobId: string;
    readonly epoch: string;
    readonly launchId: string;
    readonly pid: number | null;
    readonly stage: string;
    readonly outcome: string;
  }[];
  readonly sessions: number;
};

/** One launch directory of this machine, matched with what runs. Times are RFC 3339. */
export type LaunchView = {
  readonly launchId: string;
  readonly directory: string;
  /** remains: its shim was killed and some of it runs. newer: a newer Holdfast wrote it. */
  readonly state:
    | "running"
    | "ended"
    | "not-started"
    | "remains"
    | "interrupted"
    | "damaged"
    | "missing"
    | "newer"
    | "unreadable";
  readonly purpose: string | null;
  /** Of the shim, while it runs. */
  readonly pid: number | null;
  readonly since: string | null;
  readonly end: string | null;
  readonly problem: string | null;
  readonly survivors: readonly { readonly pid: number; readonly name: string }[];
  readonly argv: readonly string[] | null;
  readonly workingDirectory: string | null;
  readonly limits: Limits | null;
  readonly cgroup: string | null;
  readonly exit: Exit | null;
};

/** A stop that succeeded: nothing of the launch runs. */
export type LaunchStop = { readonly launchId: string; readonly kind: string; readonly text: string };

type RootOption = { readonly root?: string };

export type SceneLine = {
  readonly name: string;
  readonly models: readonly string[];
  readonly gateways: readonly string[];
};
/** notes: what could not be taken over as it was. */
export type SceneWritten = { readonly file: string; readonly notes: readonly string[] };
export type UpgradeCheck = {
  /** noted: there was no note yet. */
  readonly kind: "noted" | "same" | "changed";
  readonly lines: readonly string[];
};
/** The access of this machine's node to a repository, without a secret. */
export type RepoKeyShown = {
  /** One line of OpenSSH's form. */
  readonly publicKey: string;
  readonly fingerprint: string;
  readonly repository: string;
  readonly alias: string;
  readonly sshConfig: string;
  readonly sshConfigFile: string;
  readonly isHostTrusted: boolean;
  /** What the server shows, while it is not trusted; nobody vouches for it. */
  readonly hostKeys: readonly { readonly type: string; readonly fingerprint: string }[];
  /** Why none could be seen. */
  readonly why?: string;
};
export type SceneVerified = { readonly isExact: boolean; readonly lines: readonly string[] };

/** A node has three units: its agent, and for what that starts a socket with a service behind it. */
export type UnitPart = "agent" | "launch-socket" | "launch";

type LaunchOptions = { readonly root?: string };

/** The GPUs of this machine as an account gets to them, and their protection. */
export type DevicesSeen = {
  /** Who looked. */
  readonly account: string;
  readonly devices: readonly Device[];
  readonly protection: "none" | "whole" | "half-done" | "unreadable";
  readonly group: string | null;
  readonly accounts: readonly string[];
  /** rights: "660 root:video"; null when the node does not exist. */
  readonly nodes: readonly { readonly node: string; readonly rights: string | null }[];
  /** How often changed rights were set back since boot, and the newest of these. */
  readonly healed: number;
  readonly lastHealed: string | null;
};

export type DevicesWish = {
  readonly isDryRun: boolean;
  readonly accounts?: readonly string[];
  readonly group?: string;
  readonly deniedUnits?: readonly string[];
  readonly isModprobeLocked?: boolean;
  readonly isDesktopLocked?: boolean;
};

/** files and commands: of a dry run; changes: what a real one did. */
export type ProtectionRun = {
  readonly files: readonly { readonly path: string; readonly text: string; readonly mode: number }[];
  readonly commands: readonly { readonly argv: readonly string[]; readonly why: string }[];
  readonly changes: readonly string[];
  readonly protection: { readonly group: string; readonly accounts: readonly string[] };
};

type CheckWish = { readonly accounts?: readonly string[]; readonly denied?: readonly string[] };

export type RepoKeyOptions = RootOption & {
  readonly host?: string;
  readonly port?: number;
  readonly user?: string;
  readonly repo?: string;
  /** Of the server's host key: SHA256:… */
  readonly fingerprint?: string;
  /** A new key, for this repository. */
  readonly replace?: boolean;
};

export type Programs = {
  /** Asks the agent of this root, or acts when none runs. */
  readonly scene: (
    options: RootOption & { readonly operation: Operation; readonly emit: Emit; readonly signal: AbortSignal },
  ) => Promise<OperationResult>;
  readonly sceneList: (options: RootOption) => Promise<readonly SceneLine[]>;
  readonly sceneInit: (
    options: RootOption & { readonly model?: string; readonly server: string; readonly listen: string },
  ) => Promise<SceneWritten>;
  readonly sceneImport: (
    options: RootOption & { readonly file: string; readonly listen: string },
  ) => Promise<SceneWritten>;
  readonly sceneVerify: (options: RootOption) => Promise<SceneVerified>;
  readonly sceneLogs: (
    options: RootOption & { readonly model: string; readonly bytes: number },
  ) => Promise<{ readonly stdout: Buffer; readonly stderr: Buffer }>;
  /** The key is made at the first call; printed is its public half. */
  readonly repoKey: (options: RepoKeyOptions) => Promise<RepoKeyShown>;
  readonly repoVerify: (options: RootOption) => Promise<RepoVerified>;
  readonly scenePull: (
    options: RootOption & { readonly ref: string; readonly file: string; readonly replace?: boolean },
  ) => Promise<Pulled>;
  readonly launchList: (options: LaunchOptions) => Promise<readonly LaunchView[]>;
  readonly launchShow: (options: LaunchOptions & { readonly launchId: string }) => Promise<LaunchView>;
  readonly launchStop: (
    options: LaunchOptions & { readonly launchId: string; readonly graceMs?: number },
  ) => Promise<LaunchStop>;
  readonly showBoundary: (options: { readonly root?: string }) => Promise<BoundarySeen>;
  readonly resetBoundary: (options: { readonly root?: string }) => Promise<void>;
  readonly devicesStatus: () => Promise<DevicesSeen>;
  readonly protectDevices: (wish: DevicesWish) => Promise<ProtectionRun>;
  /** Returns what was changed. */
  readonly unprotectDevices: () => Promise<readonly string[]>;
  readonly checkDevices: (wish: CheckWish) => Promise<readonly Check[]>;
  /** The text of a systemd unit for this installation. */
  readonly controllerUnit: (options: {
    readonly isEmbedded: boolean;
    readonly account: string;
    readonly listen: string;
  }) => string;
  /** One unit of a node as text. warnings: what an agent would change of the scene that runs now. */
  readonly agentUnit: (options: {
    readonly part: UnitPart;
    readonly layout: "system" | "user";
    readonly isAlone: boolean;
    readonly account: string;
    readonly jobAccount: string;
    readonly root?: string;
  }) => Promise<{ readonly text: string; readonly warnings: readonly string[] }>;
  /** Notes the first time who runs; the next time, whether they still do. */
  readonly upgradeCheck: (options: RootOption) => Promise<UpgradeCheck>;
  /** Looks at this machine and changes nothing. */
  readonly checkMachine: (options: { readonly root?: string }) => Promise<readonly Check[]>;
  readonly up: (options: {
    readonly once?: boolean;
    readonly listen?: string;
    readonly tls?: string;
    readonly url?: string;
    readonly root?: string;
  }) => Promise<number>;
  readonly controller: (options: {
    readonly listen?: string;
    readonly tls?: string;
    readonly url?: string;
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
    readonly lockerSlots?: readonly string[];
    readonly nodeKeyStdin?: boolean;
    readonly alone?: boolean;
    readonly floorBytes?: number;
    readonly jobAccount?: string;
    readonly launchSocket?: string;
    readonly lifeline?: boolean;
    readonly dieAfterClaim?: boolean;
    readonly selfUpgrade?: boolean;
  }) => Promise<number>;
  /** Pairs this machine, or tells its controller that it leaves; the answer is one line. */
  readonly enrol: (
    options: RootOption & { readonly join?: string; readonly code?: string; readonly leave?: boolean },
  ) => Promise<string>;
  readonly gateway: (options: {
    readonly listen?: string;
    readonly upstream?: string;
    readonly marker?: string;
    readonly httpStatus?: boolean;
    readonly control?: string;
    readonly drainMs?: number;
  }) => Promise<number>;
  readonly gatewayMetrics: (
    options: RootOption & { readonly control?: string; readonly file?: string },
  ) => Promise<string>;
  /** Undefined when it was interrupted; then nothing was made. */
  readonly backup: (options: BackupOptions) => Promise<BackupSummary | undefined>;
  readonly restore: (options: BackupOptions) => Promise<RestoreSummary | undefined>;
  /** Returns the size of the file in bytes. */
  readonly writeSample: (options: {
    readonly name: string;
    readonly file: string;
    readonly padBytes: number;
    readonly isEndless: boolean;
  }) => Promise<number>;
  readonly serveSample: (options: {
    readonly modelFile: string;
    readonly alias: string;
    readonly host: string;
    readonly port: number;
    readonly contextTokens: number;
    readonly threads: number;
  }) => Promise<number>;
  readonly dbMigrate: () => Promise<readonly string[]>;
  readonly dbStatus: () => Promise<{
    readonly applied: readonly { readonly number: number; readonly name: string; readonly appliedAt: string }[];
    readonly pending: readonly string[];
  }>;
};
