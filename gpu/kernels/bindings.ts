import type { KernelDescriptor } from './kernel.ts';

type Bindings = KernelDescriptor['bindings'];

/** Storage buffers that a kernel only reads, in the order of their bindings. */
export function reads(...names: readonly string[]): Bindings {
  return names.map((name) => ({ name, access: 'read' }));
}

/** Storage buffers that a kernel writes, reading them or not. */
export function writes(...names: readonly string[]): Bindings {
  return names.map((name) => ({ name, access: 'read_write' }));
}
