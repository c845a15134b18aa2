import type { Device, Executor, FileMemories, SpillStore } from './device.ts';
import { collectGarbage } from '../threads/collect-garbage.ts';
import { setCollector } from './garbage.ts';
import { HostMemory } from './host-memory.ts';

/** Runs tasks in worker threads of this process: each device has its own pool (see `ThreadPool`). */
export class LocalExecutor implements Executor {
  readonly memory: HostMemory;
  readonly files: (() => FileMemories) | undefined;
  readonly spilled: SpillStore | undefined;
  readonly #devices: Device[] = [];

  constructor(devices: readonly Device[], spilled?: SpillStore, files?: () => FileMemories) {
    setCollector(collectGarbage);
    this.memory = new HostMemory(files?.());
    this.files = files;
    this.add(devices);
    this.spilled = spilled;
  }

  get devices(): readonly Device[] {
    return this.#devices;
  }

  /** Adds devices that took longer to open; existing contexts see them too. */
  add(devices: readonly Device[]): void {
    const places = [...this.#devices, ...devices].map(({ info }) => info.place);
    if (new Set(places).size < places.length)
      throw new Error(`two devices share a place: ${places.join(', ')}`);
    this.#devices.push(...devices);
  }

  async close(): Promise<void> {
    // One after the other: with two GPUs that closed at the same time, the process sometimes crashed.
    for (const device of this.devices) await device.close();
    await this.spilled?.close();
    await this.memory.close();
  }
}
