// SPDX-License-Identifier: Apache-2.0
// Runs before the first paint: a remembered theme must not flash. What is remembered is written by src/app/theme.ts.

try {
  const theme = localStorage.getItem("holdfast-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage is refused: then the system's theme it is.
}
