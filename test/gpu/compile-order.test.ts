import { describe, expect, it } from 'vitest';
import { compileAhead } from '../../gpu/update/compile-update.task.ts';
import type { GpuScopeOf } from '../../gpu/handler.ts';
import type { KernelDescriptor, KernelParams } from '../../gpu/webgpu/kernel.ts';
import type { Gpu } from '../../gpu/webgpu/gpu.ts';
import { tensorGpu } from '../support/gpu/gpu-info.ts';

describe('kernels that are compiled ahead', () => {
  it('are requested by compiling time: for ratings, for rows (the fused one first), then small ones', async () => {
    const asked: string[] = [];
    const compile = async (kernel: KernelDescriptor, { longest }: KernelParams) => {
      asked.push(longest === undefined ? kernel.name : `${kernel.name} ${longest}`);
      return {};
    };
    const params = { rank: 200, solver: 'cg', cgSteps: 6, biases: true, variants: ['int8-fused-short64'] };
    await compileAhead({
      gpu: { info: tensorGpu, compile } as unknown as Gpu,
      params,
    } as unknown as GpuScopeOf<'compile-update'>);
    const rows = [
      'update-int8',
      'normal-equations-int8',
      'solve-cg-registers',
      'update-short 64',
      'update-short 32',
    ];
    const mirrors = ['row-shifts', 'objective-sums', 'to-half', 'column-maxima', 'to-int8'];
    const measures = ['squared-error', 'weighted-norm', 'bias-sums', 'unpadded-rows'];
    expect(asked).toEqual(['transposed-values', ...rows, ...mirrors, ...measures]);
  });
});
