/** The code of WebGPU, as the option `webGpu` of `openModel` takes it. */
export type WebGpuCode = () => Promise<unknown>;

/** The names of the module that has the code. */
type GpuModule = typeof import('./page-gpu.ts');

/**
 * The code of WebGPU: it is loaded, as page-gpu.js, when a search first uses the GPU. Bundlers leave it out
 * of programs that neither pass it to `openModel` nor train.
 */
export const webGpu: WebGpuCode = () => import('./page-gpu.ts');

export async function loadWebGpu(code: WebGpuCode): Promise<GpuModule> {
  return (await code()) as GpuModule;
}
