// SPDX-License-Identifier: Apache-2.0
// What a switch tells while it goes on, for a terminal, the page and the log.

export type ModelPhase = "waiting" | "starting" | "loading" | "healthy" | "stopping" | "stopped" | "failed" | "kept";

export type SceneEvent =
  | {
      readonly kind: "model";
      readonly model: string;
      readonly phase: ModelPhase;
      readonly text: string;
      readonly ms: number;
    }
  | { readonly kind: "note"; readonly text: string; readonly ms: number };

export type Emit = (event: SceneEvent) => void;
