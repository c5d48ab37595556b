// SPDX-License-Identifier: Apache-2.0
// The closed table of error codes: what a code means over HTTP, for a retry, for the shell, and what a person should do.
// Rule: no Failure carries a code that is not here (tools/tidy checks every one), and a code never changes its meaning.

export type Retry = "never" | "later" | "elsewhere";

export type ErrorRow = {
  /** HTTP status; 0 for a code that never crosses HTTP. */
  readonly status: number;
  /** May the same request succeed: never, later, or on another controller. */
  readonly retry: Retry;
  /** Exit code of the holdfast command. Faults of a set-up have one each, so that scripts can tell them apart. */
  readonly exit: number;
  /** What to do, in one sentence. */
  readonly advice: string;
};

const row = (status: number, retry: Retry, exit: number, advice: string): ErrorRow => ({ status, retry, exit, advice });

export const errorTable = {
  // Requests
  invalid_request: row(400, "never", 65, "Correct the places listed and send it again."),
  unauthenticated: row(401, "never", 77, "Present a credential that exists, has not expired and was not revoked."),
  forbidden: row(403, "never", 77, "Use a credential with the scope that is named."),
  not_found: row(404, "never", 66, "Check the name or id; list what there is."),
  conflict: row(409, "never", 76, "Look at the present state; the action does not apply to it."),
  idempotency_conflict: row(409, "never", 76, "Use a new idempotency key for a different request."),
  stale_epoch: row(409, "never", 76, "The lease is no longer held; drop the result."),
  payload_too_large: row(413, "never", 65, "Send less; the limit is in the message."),
  unsupported_media_type: row(415, "never", 65, "Send application/json."),
  rate_limited: row(429, "later", 75, "Wait as long as Retry-After says."),
  internal: row(500, "later", 70, "This is a bug in Holdfast; the controller's log has it under the request id."),
  not_ready: row(503, "later", 75, "Look at what is named; holdfast doctor says more."),
  sign_in_refused: row(401, "never", 77, "Ask an admin for a new link, or make one with: holdfast login-link"),
  stopping: row(503, "elsewhere", 75, "The controller is stopping; try again."),
  // Nodes
  node_name_taken: row(
    409,
    "never",
    76,
    "Choose another name, retire the node that has it, or take it over with: holdfast node pair NAME --take-over",
  ),
  node_retired: row(403, "never", 77, "The node was retired; pair the machine again: holdfast node pair NAME"),
  clock_off: row(0, "never", 125, "Set the clock, or turn NTP on: timedatectl set-ntp true"),
  needs_pairing: row(
    0,
    "never",
    78,
    "Pair this machine again: holdfast node pair NAME; what its old key was is still in node/ of its root.",
  ),
  pairing_code_unknown: row(401, "never", 77, "Copy the code again, or make a new one with: holdfast node pair NAME"),
  pairing_code_used: row(409, "never", 76, "A code pairs one machine; make a new one with: holdfast node pair NAME"),
  pairing_code_expired: row(410, "never", 76, "Make a new code with: holdfast node pair NAME"),
  bundle_missing: row(
    404,
    "never",
    124,
    "Run npm run bundle in the controller's checkout; for another kind: -- --arch arm64",
  ),
  agent_too_old: row(
    409,
    "never",
    126,
    "Run the bootstrap script on that machine again, or allow its agent to upgrade itself: holdfast agent --self-upgrade",
  ),
  controller_too_old: row(409, "later", 127, "Update the controller; the agent goes on trying."),
  session_superseded: row(
    409,
    "never",
    78,
    "Another agent runs with this node's credential; stop one of them, or pair the copy as a node of its own.",
  ),
  // The command line and its set-up
  usage: row(0, "never", 64, "See --help."),
  no_context: row(
    0,
    "never",
    78,
    "Start one with: npm start, or name a controller with HOLDFAST_URL and HOLDFAST_TOKEN.",
  ),
  context_invalid: row(0, "never", 78, "Correct or delete the context file that is named."),
  config_invalid: row(0, "never", 78, "Correct the places listed."),
  controller_unreachable: row(0, "later", 69, "Check that the controller runs and that the address is right."),
  bad_answer: row(0, "later", 69, "The address answers, but not as a Holdfast controller: check it."),
  secret_missing: row(0, "never", 78, "Give the key by environment or standard input."),
  secret_in_config: row(
    0,
    "never",
    78,
    "Take the key out of the configuration file: give it by environment or standard input.",
  ),
  port_taken: row(0, "later", 81, "Stop what listens there, or choose another port."),
  listen_refused: row(0, "never", 82, "Choose an address of this machine and a port that this account may open."),
  root_unusable: row(0, "never", 83, "Choose another directory with HOLDFAST_ROOT."),
  root_in_use: row(0, "later", 84, "Use the running one, or stop it first."),
  disk_full: row(0, "later", 85, "Free some space on the file system that is named."),
  directory_unwritable: row(
    0,
    "never",
    86,
    "Give this account the right to write there, or choose another directory with HOLDFAST_ROOT.",
  ),
  database_missing: row(0, "never", 87, "Set DATABASE_URL, or use: holdfast controller --embedded"),
  database_unavailable: row(503, "later", 88, "Check that PostgreSQL runs and that DATABASE_URL is right."),
  database_ended: row(0, "later", 79, "Look at postgres.log in the root; the next start recovers its data."),
  agent_ended: row(0, "later", 80, "Look at agent.log in the root."),
  not_paired: row(
    0,
    "never",
    78,
    "Make a code with holdfast node pair NAME, then run holdfast agent --join URL on this machine.",
  ),
  database_too_old: row(0, "never", 89, "Use PostgreSQL 15 or newer."),
  database_rights: row(0, "never", 90, "Give the role in DATABASE_OWNER_URL the rights that are named."),
  schema_newer: row(0, "never", 91, "The database was migrated by a newer Holdfast: update this one."),
  schema_older: row(0, "never", 92, "Run: holdfast db migrate"),
  migration_changed: row(0, "never", 93, "Restore the migration file that is named; applied files never change."),
  database_major_mismatch: row(
    0,
    "never",
    94,
    "Run: holdfast backup DIR, then move ROOT/database away, then: holdfast restore DIR",
  ),
  backup_exists: row(0, "never", 99, "Name a directory that is not there yet."),
  backup_place: row(0, "never", 100, "Name a directory in a place that exists and that this account may write."),
  backup_missing: row(0, "never", 101, "Name a directory that holdfast backup has written."),
  backup_damaged: row(0, "never", 102, "Restore another backup; nothing was made of this one."),
  backup_newer: row(0, "never", 103, "The backup was written by a newer Holdfast: update this one."),
  database_exists: row(0, "never", 104, "Move ROOT/database away, or restore into another root with --root."),
  store_failed: row(0, "later", 106, "Check the disk that is named; the job was refused and nothing was started."),
  record_full: row(0, "later", 107, "Wait until running jobs have ended and were reported."),
  boundary_untrusted: row(
    0,
    "never",
    105,
    "Have the disk that is named looked at; then: holdfast boundary reset --i-know-jobs-may-repeat",
  ),
  launch_invalid: row(0, "never", 65, "Correct the places listed: a process cannot be given this."),
  launch_failed: row(0, "later", 95, "Nothing was started; look at what is named and try again."),
  launch_damaged: row(0, "never", 96, "Look at the launch directory that is named; nothing in it is started again."),
  launch_newer: row(0, "never", 97, "The launch was written by a newer Holdfast: update this one."),
  launch_survived: row(0, "later", 113, "Look at the processes that are named, then stop it again."),
  shim_unusable: row(0, "never", 98, "Restore native/prebuilt from the repository; the shim must be executable."),
  scenes_missing: row(0, "never", 108, "Write one with: holdfast scene init"),
  scenes_invalid: row(0, "never", 109, "Correct the places listed; holdfast scene check looks again."),
  scene_unknown: row(0, "never", 66, "Look at holdfast scene list."),
  scene_refused: row(0, "later", 110, "Nothing was changed; remove what is named and try again."),
  scene_failed: row(0, "later", 111, "Look at what is named; holdfast scene status shows what runs now."),
  scene_busy: row(0, "later", 112, "Wait for it: holdfast scene status shows how far it is."),
  gateway_unreachable: row(0, "later", 122, "Start it, or look at what became of it; a table may be told it again."),
  gateway_in_use: row(0, "later", 123, "Use the gateway that is named, or stop it first."),
  devices_refused: row(0, "never", 114, "Nothing was changed; correct the places listed and run it again."),
  devices_failed: row(
    0,
    "later",
    115,
    "It is half done: mend what is named and run holdfast devices protect again, or holdfast devices unprotect.",
  ),
  devices_open: row(0, "never", 116, "Look at each line of holdfast devices check; it says what to do."),
  // The access of a node to one repository
  repo_unset: row(0, "never", 78, "Make it with: holdfast node repo-key --host HOST --repo PATH"),
  repo_tool_missing: row(
    0,
    "never",
    40,
    "Install it; keys are made by ssh-keygen, and ssh and git reach the repository.",
  ),
  repo_host_unknown: row(
    0,
    "never",
    41,
    "Compare the fingerprint with what the server's operator publishes: holdfast node repo-key --fingerprint SHA256:…",
  ),
  repo_host_changed: row(
    0,
    "never",
    42,
    "Ask the server's operator; only then: holdfast node repo-key --fingerprint SHA256:…",
  ),
  repo_key_refused: row(
    0,
    "never",
    43,
    "Give the server this node's public key for reading: holdfast node repo-key prints it.",
  ),
  repo_missing: row(0, "never", 44, "Check the name there, and that the key may read it."),
  repo_push_allowed: row(0, "never", 45, "Take the right to write from this key on the server, then verify again."),
  repo_unreachable: row(0, "later", 46, "Check the address, the network and what the server says."),
  repo_file_changed: row(
    0,
    "never",
    76,
    "Look at the difference; holdfast scene pull --replace keeps the old one beside it.",
  ),
  secret_exposed: row(0, "never", 78, "Run chmod 600 on the file that is named, and consider its secret known."),
  engine_missing: row(0, "never", 120, "Run npm install --include=optional; only samples need it."),
  model_unusable: row(0, "never", 121, "Name a model file; make one with: holdfast sample write NAME --out FILE"),
  system_call_failed: row(0, "later", 71, "Look at the errno; this may be a limit of the machine."),
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof errorTable;

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(errorTable, code);
}

/** The row of a code; the row of "internal" for one that this program does not know. */
export function errorRow(code: string): ErrorRow {
  return isErrorCode(code) ? errorTable[code] : errorTable.internal;
}
