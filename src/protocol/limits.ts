// SPDX-License-Identifier: Apache-2.0
// Limits on everything that comes from outside, in one place. Sizes in bytes unless the name says otherwise.

/** A request body; larger ones are answered with payload_too_large. */
export const BODY_BYTES_MAX = 1024 * 1024;
/** A job's input and its result, as JSON text. */
export const JOB_INPUT_BYTES_MAX = 256 * 1024;
export const JOB_RESULT_BYTES_MAX = 256 * 1024;
export const ARGUMENTS_MAX = 256;
/** One argument, in characters. */
export const ARGUMENT_LENGTH_MAX = 32 * 1024;
export const ENVIRONMENT_MAX = 128;
export const LABELS_MAX = 32;
/** One log chunk before base64. */
export const LOG_CHUNK_BYTES_MAX = 64 * 1024;
/** What is kept of one attempt's output, both streams together; what comes after is counted and not kept. */
export const LOG_ATTEMPT_BYTES_MAX = 64 * 1024 * 1024;
/** Entries in one batch from a node. */
export const BATCH_MAX = 256;
/** Launches of earlier lives that an agent may bring back at hello. */
export const HOLDS_MAX = 4096;
/** How long a claim may wait for work. */
export const CLAIM_WAIT_MS_MAX = 30_000;
/** Jobs in one claim. */
export const CLAIM_MAX = 64;
export const PAGE_MAX = 200;
export const PAGE_DEFAULT = 50;
/** How many jobs a search looks at, newest first. */
export const JOB_SEARCH_MAX = 20_000;
export const LOGIN_LINK_LIFE_MS = 15 * 60_000;
/** A browser stays signed in this long. */
export const BROWSER_LIFE_MS = 7 * 86_400_000;
/** Tries to sign in, and to set a password, a minute: from one address, and for one name. */
export const SIGN_INS_PER_MINUTE = 10;
export const PAIRING_CODE_LIFE_MS = 15 * 60_000;
/** Calls with a pairing code a minute from one address; a code has 256 random bits, so this only bounds the load. */
export const PAIRING_CALLS_PER_MINUTE = 300;
export const DEVICES_MAX = 64;
