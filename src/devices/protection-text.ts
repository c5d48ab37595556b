// SPDX-License-Identifier: Apache-2.0
// Every file of a protection as text, pure. Layers, strongest first: services that get no devices, the driver's own settings,
// the hook that udev runs when a driver is bound, and a watch that heals what others changed since.
// Source: udev(7), systemd.path(5), NVIDIA's README ("NVreg_DeviceFileMode").

import {
  type Guarded,
  HOOK_FILE,
  MARK,
  MODPROBE_FILE,
  ownDevices,
  type Protection,
  RULES_FILE,
  UNIT_DIRECTORY,
  watchedNodes,
} from "./protection.ts";
import { hookText } from "./protection-hook.ts";

export type ProtectionFile = { readonly path: string; readonly text: string; readonly mode: number };

export const BOOT_UNIT = "holdfast-devices.service";
export const HEAL_PATH_UNIT = "holdfast-devices-heal.path";
export const HEAL_TIMER_UNIT = "holdfast-devices-heal.timer";
export const HEAL_UNIT = "holdfast-devices-heal.service";
/** Of a service that gets no devices, in its directory of settings. */
export const DROP_IN = "50-holdfast-devices.conf";
export const ALL_UNITS = [BOOT_UNIT, HEAL_PATH_UNIT, HEAL_TIMER_UNIT] as const;

/** Those that are enabled and started; none where nothing is ours to set. */
export function unitsFor(devices: readonly Guarded[]): readonly string[] {
  if (ownDevices(devices).length === 0) return [];
  return [BOOT_UNIT, HEAL_TIMER_UNIT, ...(watchedNodes(devices).length > 0 ? [HEAL_PATH_UNIT] : [])];
}

type Wanted = Pick<Protection, "group" | "devices" | "deniedUnits" | "isDesktopLocked">;

/** gid: of the group; undefined while it is still to be made. */
export function protectionFiles(wanted: Wanted, gid: number | undefined): readonly ProtectionFile[] {
  const { group, devices } = wanted;
  const unit = (name: string, text: string): ProtectionFile => ({
    path: `${UNIT_DIRECTORY}/${name}`,
    text: `# ${MARK}\n${text}`,
    mode: 0o644,
  });
  const own = ownDevices(devices);
  const hasNvidia = own.some(({ vendor }) => vendor === "nvidia");
  const set: readonly ProtectionFile[] = [
    { path: HOOK_FILE, text: hookText(group, devices), mode: 0o755 },
    { path: RULES_FILE, text: rulesText(wanted), mode: 0o644 },
    ...(hasNvidia ? [{ path: MODPROBE_FILE, text: modprobeText(group, gid), mode: 0o644 }] : []),
    unit(BOOT_UNIT, bootUnit),
    unit(HEAL_UNIT, healUnit),
    ...(watchedNodes(devices).length > 0 ? [unit(HEAL_PATH_UNIT, healPath(devices))] : []),
    unit(HEAL_TIMER_UNIT, healTimer),
  ];
  return [
    ...(own.length > 0 ? set : []),
    ...wanted.deniedUnits.map((name) => unit(`${name}.d/${DROP_IN}`, "[Service]\nPrivateDevices=yes\n")),
  ];
}

function rulesText({ group, devices, isDesktopLocked }: Wanted): string {
  const uaccess = isDesktopLocked ? ', TAG-="uaccess"' : "";
  const own = `GROUP="${group}", MODE="0660"${uaccess}`;
  const all = ownDevices(devices);
  const nvidia = all.filter(({ vendor }) => vendor === "nvidia");
  const lines = [
    `# ${MARK}. NVIDIA's driver makes nodes that udev never sees, so what`,
    "# is hooked is the binding of the driver to the card; the others' nodes are set by ordinary rules.",
    ...nvidia.map(
      ({ address }) =>
        `ACTION=="bind", SUBSYSTEM=="pci", KERNEL=="${address}", ATTR{vendor}=="0x10de", RUN+="${HOOK_FILE} bind"`,
    ),
    ...(nvidia.length === 0
      ? []
      : [`ACTION=="add", SUBSYSTEM=="module", KERNEL=="nvidia*", RUN+="${HOOK_FILE} module"`]),
    ...(all.some(({ vendor }) => vendor === "amd")
      ? [`ACTION!="remove", SUBSYSTEM=="kfd", KERNEL=="kfd", ${own}`]
      : []),
    ...all.map(
      ({ address }) => `ACTION!="remove", SUBSYSTEM=="drm", KERNEL=="renderD*", KERNELS=="${address}", ${own}`,
    ),
  ];
  return `${lines.join("\n")}\n`;
}

function modprobeText(group: string, gid: number | undefined): string {
  return `# ${MARK}. True when the driver is loaded next; the hook holds until then.
# Where the driver is loaded from an initramfs, make that anew: update-initramfs -u
options nvidia NVreg_ModifyDeviceFiles=1 NVreg_DeviceFileUID=0 NVreg_DeviceFileGID=${gid ?? `(number of ${group}, once it is made)`} NVreg_DeviceFileMode=0660
`;
}

const bootUnit = `[Unit]
Description=Gives the device nodes of the GPUs to their group
After=systemd-modules-load.service systemd-udev-trigger.service nvidia-persistenced.service
# Wanted by them, it runs when the machine is awake again.
After=suspend.target hibernate.target hybrid-sleep.target suspend-then-hibernate.target
Before=holdfast-agent.service
StartLimitIntervalSec=0

[Service]
Type=oneshot
ExecStart=${HOOK_FILE} boot

[Install]
WantedBy=multi-user.target suspend.target hibernate.target hybrid-sleep.target suspend-then-hibernate.target
`;

const healUnit = `[Unit]
Description=Gives the device nodes of the GPUs back to their group
StartLimitIntervalSec=0

[Service]
Type=oneshot
ExecStart=${HOOK_FILE} heal
`;

/** PathChanged= sees a change of mode as well, and one whose file is not there yet sees that it appears. */
function healPath(devices: readonly Guarded[]): string {
  const nodes = watchedNodes(devices).map((node) => `PathChanged=/dev/${node}\n`);
  return `[Unit]
Description=Watches the device nodes of the GPUs
StartLimitIntervalSec=0

[Path]
${nodes.join("")}TriggerLimitIntervalSec=0
Unit=${HEAL_UNIT}

[Install]
WantedBy=multi-user.target
`;
}

const healTimer = `[Unit]
Description=Looks at the device nodes of the GPUs, whatever their watch missed

[Timer]
OnActiveSec=1min
OnUnitInactiveSec=1min
AccuracySec=5s
Unit=${HEAL_UNIT}

[Install]
WantedBy=multi-user.target
`;
