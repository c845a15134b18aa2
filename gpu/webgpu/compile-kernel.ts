import type { CompiledKernel, KernelDescriptor, KernelParams } from './kernel.ts';
import { hurryPolls } from './polls.ts';
import { renderKernel } from './render-kernel.ts';

/** The parts of an opened GPU that compiling uses. */
interface CompilingGpu {
  readonly device: GPUDevice;
  requireDevice(doing: string): void;
}

/** A kernel for one variant, before it is compiled. */
export interface KernelVariant {
  readonly kernel: KernelDescriptor;
  readonly params: KernelParams;
  /** The name in errors: see CompiledKernel. */
  readonly label: string;
  /** Makes the WGSL text; tests replace it. */
  readonly render?: typeof renderKernel;
}

/** Compiles a variant. Throws an error with the kernel's label and the line of the text that is wrong. */
export async function compileKernel(
  gpu: CompilingGpu,
  { kernel, params, label, render = renderKernel }: KernelVariant,
): Promise<CompiledKernel> {
  const { device } = gpu;
  const code = render(kernel, params);
  device.pushErrorScope('validation');
  const module = device.createShaderModule({ label, code });
  // Error scopes are a stack, so this one must end before another one begins.
  const scope = device.popErrorScope();
  const layout = bindGroupLayout(device, kernel, label);
  // Starts the driver's compiler now, so that it works while this thread renders the next kernel's text. If
  // the text is wrong, this promise rejects too, but `requireText` throws an error with the line.
  const compiling = device.createComputePipelineAsync({
    label,
    layout: device.createPipelineLayout({ label, bindGroupLayouts: [layout] }),
    compute: { module, entryPoint: 'main' },
  });
  compiling.catch(() => undefined);
  hurryPolls(2);
  try {
    const { messages } = await module.getCompilationInfo();
    const error = await scope;
    gpu.requireDevice(label);
    requireText({ label, code }, messages, error);
  } catch (error) {
    // `Gpu.close` waits for this function, so it must not return before Dawn's promise has settled.
    await Promise.allSettled([compiling]);
    throw error;
  }
  try {
    return { kernel, params, label, pipeline: await compiling, layout };
  } catch (cause) {
    gpu.requireDevice(label);
    throw new Error(`kernel ${label}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

function requireText(
  { label, code }: { readonly label: string; readonly code: string },
  messages: readonly GPUCompilationMessage[],
  error: GPUError | null,
): void {
  const wrong = messages.find(({ type }) => type === 'error');
  if (wrong !== undefined) {
    const line = code.split('\n')[wrong.lineNum - 1] ?? '';
    throw new Error(`kernel ${label}: line ${wrong.lineNum}: ${wrong.message}\n${line}`);
  }
  if (error !== null) throw new Error(`kernel ${label}: ${error.message}`);
}

/**
 * The bind group layout according to the descriptor. A layout derived from the text would omit buffers that
 * a variant does not use.
 */
function bindGroupLayout(
  device: GPUDevice,
  { bindings }: KernelDescriptor,
  label: string,
): GPUBindGroupLayout {
  const visibility = GPUShaderStage.COMPUTE;
  const storage = bindings.map(({ access }, at): GPUBindGroupLayoutEntry => ({
    binding: at + 1,
    visibility,
    buffer: { type: access === 'read' ? 'read-only-storage' : 'storage' },
  }));
  const entries: GPUBindGroupLayoutEntry[] = [
    { binding: 0, visibility, buffer: { type: 'uniform' } },
    ...storage,
  ];
  return device.createBindGroupLayout({ label, entries });
}
