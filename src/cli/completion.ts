// SPDX-License-Identifier: Apache-2.0
// completion bash | zsh | fish: a script made from the command tree, so that it cannot lag behind it.

import { Argument, type Command, type Option } from "commander";
import { example, type Tree } from "./command.ts";

type Words = { readonly path: string; readonly words: readonly string[] };

function collect(command: Command, path: readonly string[] = []): Words[] {
  const visible = command.commands.filter((child) => child.name() !== "completion" || path.length === 0);
  const options = command.options
    .filter((option: Option) => !option.hidden)
    .map((option) => option.long ?? option.short ?? "");
  const own = { path: path.join(" "), words: [...visible.map((child) => child.name()), ...options, "--help"] };
  return [own, ...visible.flatMap((child) => collect(child, [...path, child.name()]))];
}

function bash(tree: readonly Words[]): string {
  const cases = tree.map(({ path, words }) => `    "${path}") words="${words.join(" ")}" ;;`).join("\n");
  return `# holdfast completion for bash: source <(holdfast completion bash)
_holdfast() {
  local path="" word words="" current="\${COMP_WORDS[COMP_CWORD]}"
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in --) return ;; -*) ;; *) path="\${path:+$path }$word" ;; esac
  done
  while :; do
    case "$path" in
${cases}
    esac
    [ -n "$words" ] && break
    [ -z "$path" ] && break
    case "$path" in *" "*) path="\${path% *}" ;; *) path="" ;; esac
  done
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _holdfast holdfast
`;
}

function zsh(tree: readonly Words[]): string {
  return `#compdef holdfast
# holdfast completion for zsh: source <(holdfast completion zsh)
autoload -U +X bashcompinit && bashcompinit
${bash(tree)}`;
}

function fish(tree: readonly Words[]): string {
  const lines = tree.map(({ path, words }) => {
    const depth = path === "" ? 0 : path.split(" ").length;
    const condition =
      depth === 0
        ? "__fish_use_subcommand"
        : path
            .split(" ")
            .map((word) => `__fish_seen_subcommand_from ${word}`)
            .join("; and ");
    return `complete -c holdfast -n '${condition}' -a '${words.join(" ")}'`;
  });
  return `# holdfast completion for fish: holdfast completion fish | source\n${lines.join("\n")}\n`;
}

export function addCompletion(program: Command, { terminal }: Tree): void {
  const scripts = { bash, zsh, fish } as const;
  const completion = program
    .command("completion")
    .addArgument(new Argument("<shell>").choices(Object.keys(scripts)))
    .description("Print a completion script for your shell")
    .action((shell: keyof typeof scripts) => {
      terminal.stdout.write(scripts[shell](collect(program)));
    });
  example(completion, "source <(holdfast completion bash)");
}
