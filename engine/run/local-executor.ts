import type { Device, Executor } from './device.ts';
import { HostMemory } from './host-memory.ts';

/** Runs tasks with worker threads of this process: each device brings its own pool (see `ThreadPool`). */
export class LocalExecutor implements Executor {
  readonly devices: readonly Device[];
  readonly memory = new HostMemory();

  constructor(devices: readonly Device[]) {
    const places = devices.map(({ info }) => info.place);
    if (new Set(places).size < places.length) throw new Error(`two devices share a place: ${places.join(', ')}`);
    this.devices = devices;
  }

  async close(): Promise<void> {
    await Promise.all(this.devices.map((device) => device.close()));
  }
}
