// SPDX-License-Identifier: Apache-2.0
// Light, dark, or as the system has it; remembered in this browser. public/theme.js applies it before the first paint.

import { useState } from "react";

export const themes = ["system", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

const KEY = "holdfast-theme";

function remembered(): Theme {
  const theme = document.documentElement.dataset["theme"];
  return theme === "light" || theme === "dark" ? theme : "system";
}

export function useTheme(): readonly [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState(remembered);
  const choose = (chosen: Theme): void => {
    if (chosen === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = chosen;
    try {
      localStorage.setItem(KEY, chosen);
    } catch {
      // Storage is refused: the choice then lasts as long as the page.
    }
    setTheme(chosen);
    window.dispatchEvent(new Event("holdfast-theme"));
  };
  return [theme, choose];
}
