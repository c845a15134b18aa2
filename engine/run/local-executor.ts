import type { Device, Executor, SpillStore } from './device.ts';
import { HostMemory } from './host-memory.ts';

/** Runs tasks with worker threads of this process: each device brings its own pool (see `ThreadPool`). */
export class LocalExecutor implements Executor {
  readonly devices: readonly Device[];
  readonly memory = new HostMemory();

  readonly spilled: SpillStore | undefined;

  constructor(devices: readonly Device[], spilled?: SpillStore) {
    const places = devices.map(({ info }) => info.place);
    if (new Set(places).size < places.length) throw new Error(`two devices share a place: ${places.join(', ')}`);
    this.devices = devices;
    this.spilled = spilled;
  }

  async close(): Promise<void> {
    await Promise.all([...this.devices, ...(this.spilled ? [this.spilled] : [])].map((device) => device.close()));
  }
}
