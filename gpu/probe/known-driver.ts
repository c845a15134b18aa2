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
  /** All that the answer of the driver depends on. */
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

/** Folders of the files that name Vulkan's drivers, which an update of a driver writes anew. */
const DRIVER_FOLDERS = [
  '/usr/share/vulkan/icd.d',
  '/usr/local/share/vulkan/icd.d',
  '/etc/vulkan/icd.d',
  '/usr/local/nvidia/share/vulkan/icd.d',
];

/**
 * The driver that has served a run of this system: it need not be probed in a process of its own again. It is
 * forgotten while it is opened, so that a crash leaves nothing, and the next run probes it. Known on Linux
 * alone, where the system tells which driver it is.
 *
 */
export class KnownDrivers {
  readonly #file: string;
  readonly #system: string | undefined;

  constructor(folder = cacheFolder(), system = process.platform === 'linux' ? thisSystem() : undefined) {
    this.#file = join(folder, 'known-driver.json');
    this.#system = system;
  }

  /**
   * The known driver's adapter, and forgets it; undefined for a driver that is not known. Never throws.
   * Synchronous, so that its GPU begins to open before anything else.
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
      // Without this the next run would not notice a crash of this one.
      rmSync(this.#file);
      return { ...adapter, isFallback: false };
    } catch {
      return undefined;
    }
  }

  /**
   * Notes a driver that has opened a device of hardware. Never throws: without a cache the next run probes it
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

/** The kernel, its graphics drivers and devices, and the variables that choose among them. */
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
