import type { GpuTaskHandler } from './handler.ts';

/** What a GPU device can run, by the names of operators/tasks.ts. */
export const handlers: Readonly<Record<string, GpuTaskHandler>> = {};
