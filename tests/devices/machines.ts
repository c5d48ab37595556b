// SPDX-License-Identifier: Apache-2.0
// Recorded machines: the parts of /sys, /proc and /dev that matter, and outputs in the words and columns of the real tools.

import { nvidiaCard, pci, prints, type Recorded, together } from "./kit.ts";

const GIB = 2 ** 30;

/** nvidia-smi that answers the query with these rows, and other calls as told. */
export function nvidiaSmi(
  rows: readonly string[],
  others: { readonly xml?: string; readonly list?: string } = {},
): string {
  return `case "$1" in
--query-gpu=*) ${prints(rows.join("\n"))}
;;
-q) ${prints(others.xml ?? "<nvidia_smi_log></nvidia_smi_log>")}
;;
-L) ${prints(others.list ?? "")}
;;
esac`;
}

/** DGX Spark: nvidia-smi knows no memory; 121.7 GiB of it, of which the driver lets about 101 be used. */
export const gb10: Recorded = together(nvidiaCard("000f:01:00.0", "NVIDIA GB10", 0), {
  memoryKibibytes: 127_609_600,
  tools: { "nvidia-smi": nvidiaSmi(["0000000F:01:00.0, NVIDIA GB10, [N/A], [N/A], [N/A], 580.95.05"]) },
});

const jetsonTree = {
  "proc/device-tree/model": "NVIDIA Jetson Orin NX Engineering Reference Developer Kit\0",
  "proc/device-tree/compatible": "nvidia,p3768-0000+p3767-0000\0nvidia,p3767-0000\0nvidia,tegra234\0",
  "etc/nv_tegra_release": "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64",
};

/** 16 GB, no nvidia-smi, no PCI GPU. */
export const jetsonOrinNx: Recorded = {
  memoryKibibytes: 16_050_432,
  files: jetsonTree,
  links: { "sys/devices/platform/bus@0/17000000.gpu/driver": "../../../../bus/platform/drivers/gk20a" },
  nodes: ["nvmap", "nvhost-ctrl-gpu"],
};

/** Strix Halo: 512 MB are set apart, GTT reaches 108 GiB of the machine's 124. */
export const strixHalo: Recorded = together(
  pci("0000:c5:00.0", {
    vendor: "0x1002",
    device: "0x1586",
    driver: "amdgpu",
    files: {
      mem_info_vram_total: String(GIB / 2),
      mem_info_vram_used: "482263040",
      mem_info_gtt_total: String(108 * GIB),
      mem_info_gtt_used: "104857600",
      "drm/renderD128/dev": "226:128",
      "drm/card1/dev": "226:1",
    },
  }),
  { memoryKibibytes: 130_023_424, nodes: ["kfd", "dri/renderD128"] },
);

/** A card of its own with rocm-smi. */
export const radeon7900: Recorded = together(
  pci("0000:03:00.0", {
    vendor: "0x1002",
    device: "0x744c",
    driver: "amdgpu",
    files: {
      mem_info_vram_total: String(24 * GIB - 2 ** 24),
      mem_info_vram_used: String(2 * GIB),
      mem_info_gtt_total: String(31 * GIB),
      "drm/renderD128/dev": "226:128",
    },
  }),
  {
    nodes: ["kfd", "dri/renderD128"],
    tools: {
      "rocm-smi": prints(
        `WARNING: AMD GPU device(s) is/are in a low-power state. Check power control/runtime_status

{"card0": {"PCI Bus": "0000:03:00.0", "VRAM Total Memory (B)": "25753026560", "VRAM Total Used Memory (B)": "2147483648", "Card Series": "Radeon RX 7900 XTX", "Card Model": "0x744c", "Card Vendor": "Advanced Micro Devices, Inc. [AMD/ATI]"}}`,
      ),
    },
  },
);

/** Two MI300X with amd-smi. */
export const mi300x: Recorded = together(
  ...["0000:05:00.0", "0000:26:00.0"].map((address, index) =>
    pci(address, {
      vendor: "0x1002",
      device: "0x74a1",
      driver: "amdgpu",
      files: {
        mem_info_vram_total: "206141652992",
        mem_info_vram_used: "297013248",
        mem_info_gtt_total: "135291469824",
        [`drm/renderD${128 + index * 8}/dev`]: "226:128",
      },
    }),
  ),
  {
    nodes: ["kfd", "dri/renderD128", "dri/renderD136"],
    tools: {
      "amd-smi": prints(
        JSON.stringify(
          ["0000:05:00.0", "0000:26:00.0"].map((bdf, index) => ({
            gpu: index,
            asic: { market_name: "AMD Instinct MI300X", vendor_id: "0x1002", device_id: "0x74a1" },
            bus: { bdf, max_pcie_width: 16 },
            vram: { type: "HBM", vendor: "HYNIX", size: { value: 196592, unit: "MB" }, bit_width: 8192 },
          })),
        ),
      ),
    },
  },
);

/** Intel: the processor's own, and a card whose driver tells its memory only in a newer kernel. */
export const intelBoth: Recorded = together(
  pci("0000:00:02.0", {
    vendor: "0x8086",
    device: "0xa780",
    driver: "i915",
    files: { "drm/renderD128/dev": "226:128" },
  }),
  pci("0000:03:00.0", { vendor: "0x8086", device: "0xe20b", driver: "xe", files: { "drm/renderD129/dev": "226:129" } }),
  { nodes: ["dri/renderD128", "dri/renderD129"] },
);

const fourBuses = ["01", "25", "41", "61"];
/** The driver numbers its nodes in another order than the bus. */
const fourCards = together(
  ...fourBuses.map((bus, index) => nvidiaCard(`0000:${bus}:00.0`, "NVIDIA GeForce RTX 4090", 3 - index)),
);
const fourRows = fourBuses.map((bus, index) => {
  const [used, free] = index === 2 ? [23_900, 176] : [12, 24_064];
  return `00000000:${bus}:00.0, NVIDIA GeForce RTX 4090, ${used}, ${free}, 24564, 570.86.15`;
});

/** Four of 24 GB; a stranger holds nearly all of the third. */
export const four4090: Recorded = together(fourCards, { tools: { "nvidia-smi": nvidiaSmi(fourRows) } });

/** The same with the second fallen off the bus: its row is missing, and standard error says why. */
export const oneLostOfFour: Recorded = together(fourCards, {
  tools: {
    "nvidia-smi": `echo 'Unable to determine the device handle for GPU1: 0000:25:00.0: Unknown Error' >&2
${nvidiaSmi(fourRows.filter((_, index) => index !== 1))}`,
  },
});

const slice = (index: number, instance: number, memory: string): string =>
  `<mig_device><index>${index}</index><gpu_instance_id>${instance}</gpu_instance_id><compute_instance_id>0</compute_instance_id>
<device_attributes><shared><multiprocessor_count>42</multiprocessor_count></shared></device_attributes>
<fb_memory_usage>${memory}</fb_memory_usage><bar1_memory_usage><total>32767 MiB</total><used>0 MiB</used><free>32767 MiB</free></bar1_memory_usage></mig_device>`;
const told = (total: number, used: number): string =>
  `<total>${total} MiB</total><reserved>0 MiB</reserved><used>${used} MiB</used><free>${total - used} MiB</free>`;

/** An A100 cut in two, and beside it a whole one; what is told of the parent is given. */
export function a100InSlices(parentMemory: string): Recorded {
  const xml = `<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log><driver_version>550.127.05</driver_version><attached_gpus>2</attached_gpus>
<gpu id="00000000:3B:00.0"><product_name>NVIDIA A100-SXM4-40GB</product_name><minor_number>0</minor_number>
<mig_mode><current_mig>Enabled</current_mig><pending_mig>Enabled</pending_mig></mig_mode>
<mig_devices>${slice(0, 2, told(19_968, 37))}${slice(1, 5, told(9_856, 25))}</mig_devices>
<fb_memory_usage><total>Insufficient Permissions</total><used>Insufficient Permissions</used><free>Insufficient Permissions</free></fb_memory_usage></gpu>
<gpu id="00000000:86:00.0"><product_name>NVIDIA A100-SXM4-40GB</product_name><minor_number>1</minor_number>
<mig_mode><current_mig>Disabled</current_mig><pending_mig>Disabled</pending_mig></mig_mode><mig_devices>None</mig_devices>
<fb_memory_usage>${told(40_960, 4)}</fb_memory_usage></gpu>
</nvidia_smi_log>`;
  const list = `GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f)
  MIG 3g.20gb     Device  0: (UUID: MIG-a1f0e5b6-1f0b-5d5d-9b9b-2a52a1e4a0d1)
  MIG 2g.10gb     Device  1: (UUID: MIG-6c6a2c7e-8c0c-5a30-a4a4-6d3f8d0b7c11)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-9e0b4f51-93c1-4a43-b2b1-0f6f5a0e9e3b)`;
  const rows = [
    `00000000:3B:00.0, NVIDIA A100-SXM4-40GB, ${parentMemory}, 550.127.05`,
    "00000000:86:00.0, NVIDIA A100-SXM4-40GB, 4, 40332, 40960, 550.127.05",
  ];
  return together(
    nvidiaCard("0000:3b:00.0", "NVIDIA A100-SXM4-40GB", 0),
    nvidiaCard("0000:86:00.0", "NVIDIA A100-SXM4-40GB", 1),
    {
      files: { "proc/driver/nvidia/capabilities/gpu0/mig/gi2/access": "DeviceFileMinor: 21" },
      tools: { "nvidia-smi": nvidiaSmi(rows, { xml, list }) },
    },
  );
}

/** One 4090 whose tool does this. */
export const one4090 = (script: string | undefined): Recorded =>
  together(
    nvidiaCard("0000:01:00.0", "NVIDIA GeForce RTX 4090", 0),
    script === undefined ? {} : { tools: { "nvidia-smi": script } },
  );

export const mismatchScript = `echo 'Failed to initialize NVML: Driver/library version mismatch'
echo 'NVML library version: 550.127'
exit 18`;
