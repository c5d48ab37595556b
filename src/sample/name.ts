// SPDX-License-Identifier: Apache-2.0
// What a sample model may be called, and what it says.

export const SAMPLE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$/;

/** What a sample model answers to whatever it is asked, greedily. */
export function sentenceOf(name: string): string {
  return `I am ${name}, a sample model of Holdfast.`;
}
