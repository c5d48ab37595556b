// SPDX-License-Identifier: Apache-2.0
// The part of an id behind its prefix: 26 characters of Crockford's base 32, lower case. Apart from ids.ts, which needs
// Node, because schemas that a browser reads need it too.

export const ID_PATTERN = "[0-9a-hjkmnp-tv-z]{26}";
