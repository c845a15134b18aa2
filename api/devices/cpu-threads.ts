import { availableParallelism } from 'node:os';
import { workerFile } from '../../engine/threads/worker-file.ts';
import type { DeviceRequest } from './device-request.ts';

/** The module whose tasks read and write files. */
export const fileTasks: URL = workerFile(new URL('./file-tasks.js', import.meta.url));

/**
 * Threads of the CPU: those that were asked for, else one a core. Beside a GPU they load and sort, for which
 * three quarters of the cores are as fast, while a thread that begins costs a quarter of a second of a
 * processor; the others are for the GPU's thread and its compilers. `ahead`: a GPU is being opened already,
 * which `auto` then takes.
 *
 */
export function cpuThreads(device: DeviceRequest, asked: number | undefined, ahead: boolean): number {
  const cores = availableParallelism();
  return asked ?? (device !== 'cpu' && (device !== 'auto' || ahead) ? cores - Math.floor(cores / 4) : cores);
}
