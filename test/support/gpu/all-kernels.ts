import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { KernelDescriptor } from '../../../gpu/webgpu/kernel.ts';

const folder = fileURLToPath(new URL('../../../gpu/', import.meta.url));

/** The descriptors of all kernels, read from the files next to the shaders. */
export async function allKernels(): Promise<KernelDescriptor[]> {
  const folders = new Set(globSync('**/*.wgsl', { cwd: folder }).map((file) => file.replace(/[^/]*$/, '')));
  const files = [...folders].flatMap((one) => globSync(`${one}*.ts`, { cwd: folder })).sort();
  const modules = await Promise.all(files.map((file): Promise<object> => import(`${folder}${file}`)));
  return modules.flatMap((module) => Object.values(module) as unknown[]).filter(isKernel);
}

function isKernel(value: unknown): value is KernelDescriptor {
  return typeof value === 'object' && value !== null && 'bindings' in value && 'samples' in value;
}
