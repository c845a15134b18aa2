/**
 * Asks WebGPU for an adapter and prints the answer as one line of JSON. Runs in a process of its own, so that
 * a driver that crashes or hangs does no harm.
 */
import { Worker } from 'node:worker_threads';
import { workerFile } from '../../engine/threads/worker-file.ts';
import { isSoftware } from '../webgpu/open-adapter.ts';

interface ProbeReport {
  readonly adapter: {
    readonly name: string;
    readonly vendor: string;
    readonly architecture: string;
    readonly isFallback: boolean;
    readonly features: readonly string[];
  } | null;
}

// References that keep WebGPU's objects from garbage collection, which would end the process with a
// segmentation fault.
const alive: unknown[] = [];

async function probe(): Promise<ProbeReport> {
  const { create } = await import('webgpu');
  const gpu = create([]);
  alive.push(gpu);
  const adapter = await gpu.requestAdapter({ powerPreference: 'high-performance' });
  if (adapter === null) return { adapter: null };
  alive.push(adapter, await adapter.requestDevice());
  const { device, description, vendor, architecture } = adapter.info;
  const name = [device, description].filter((part) => part !== '').join(', ') || 'unnamed';
  return {
    adapter: {
      name,
      vendor,
      architecture,
      isFallback: isSoftware(adapter.info),
      features: [...adapter.features].sort(),
    },
  };
}

// Usually the parent process ends this one. If the parent itself has ended, the watchdog does.
alive.push(new Worker(workerFile(new URL('./probe-watchdog.js', import.meta.url))));
const report = await probe();
// Exits explicitly: a live instance would keep the process running.
process.stdout.write(`\n${JSON.stringify({ ...report, kept: alive.length })}\n`, () => process.exit(0));
