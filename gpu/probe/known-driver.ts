import { rmSync, statSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { release } from 'node:os';
import { dirname, join } from 'node:path';
import { readRegular } from '../../engine/regular-file.ts';
import { cacheFolder, makeOwnFolder, requireOwnFolder } from './cache-folder.ts';
import type { Adapter } from './probe-webgpu.ts';
import { namesIn, textOf } from './system-files.ts';

interface KnownDriver {
  readonly format: 'factorflow-known-driver';
  /** Identifies everything that a driver's answer depends on: if it differs, the driver is probed again. */
  readonly system: string;
  readonly adapter: Adapter;
}

/** Most bytes of the file. */
const MOST_BYTES = 1 << 16;
const FORMAT = 'factorflow-known-driver';

/** Environment variables that choose a driver or a card. */
const VARIABLES = [
  'VK_DRIVER_FILES',
  'VK_ADD_DRIVER_FILES',
  'VK_ICD_FILENAMES',
  'VK_LOADER_DRIVERS_SELECT',
  'VK_LOADER_DRIVERS_DISABLE',
  'DRI_PRIME',
  'LD_LIBRARY_PATH',
  'CUDA_VISIBLE_DEVICES',
  'NVIDIA_VISIBLE_DEVICES',
];

/** Folders with the files that list Vulkan's drivers; a driver update rewrites them. */
const DRIVER_FOLDERS = [
  '/usr/share/vulkan/icd.d',
  '/usr/local/share/vulkan/icd.d',
  '/etc/vulkan/icd.d',
  '/usr/local/nvidia/share/vulkan/icd.d',
];

/**
 * Remembers that a driver worked in an earlier run on this system, so that it need not be probed in a child
 * process again. The entry is deleted before the GPU is opened and written again afterwards: after a crash
 * the next run probes. Linux only, because other systems do not identify their driver.
 */
export class KnownDrivers {
  readonly #file: string;
  readonly #system: string | undefined;

  constructor(folder = cacheFolder(), system = process.platform === 'linux' ? thisSystem() : undefined) {
    this.#file = join(folder, 'known-driver.json');
    this.#system = system;
  }

  /**
   * Returns the known driver's adapter and deletes the entry; undefined for an unknown driver. Never throws.
   * It is synchronous, so that opening the GPU is the first thing that a run starts.
   */
  take(): Adapter | undefined {
    if (this.#system === undefined) return undefined;
    try {
      requireOwnFolder(dirname(this.#file));
      const { format, system, adapter } = JSON.parse(
        Buffer.from(readRegular(this.#file, MOST_BYTES)).toString(),
      ) as Partial<KnownDriver>;
      if (
        format !== FORMAT ||
        system !== this.#system ||
        typeof adapter?.name !== 'string' ||
        typeof adapter.vendor !== 'string'
      )
        return undefined;
      // If the entry were kept, a crash of this run would not be noticed by the next one.
      rmSync(this.#file);
      return { ...adapter, isFallback: false };
    } catch {
      return undefined;
    }
  }

  /**
   * Remembers a driver that has opened a hardware device. Never throws: without a cache the next run probes
   * again.
   */
  async keep(adapter: Adapter): Promise<void> {
    if (this.#system === undefined || adapter.isFallback) return;
    const known: KnownDriver = { format: FORMAT, system: this.#system, adapter };
    try {
      makeOwnFolder(dirname(this.#file));
      await writeFile(this.#file, `${JSON.stringify(known)}\n`);
    } catch {}
  }
}

/**
 * Describes the operating system's kernel, its graphics drivers and devices, and the variables that choose
 * among them.
 */
function thisSystem(): string {
  const devices = ['/dev', '/dev/dri'].flatMap((folder) =>
    namesIn(folder).filter((name) => /^(nvidia|renderD|dxg)/.test(name)),
  );
  const drivers = DRIVER_FOLDERS.flatMap((folder) =>
    namesIn(folder).map((name) => `${folder}/${name} ${changed(`${folder}/${name}`)}`),
  );
  return JSON.stringify([
    process.versions.node,
    release(),
    textOf('/proc/driver/nvidia/version'),
    devices.sort(),
    drivers.sort(),
    VARIABLES.map((name) => process.env[name] ?? ''),
  ]);
}

function changed(file: string): number {
  try {
    return statSync(file).mtimeMs;
  } catch {
    return 0;
  }
}
