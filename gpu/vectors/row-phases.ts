import type { Gpu } from '../webgpu/gpu.ts';
import type { BuffersOf } from '../webgpu/kernel.ts';
import type { Binding, CompiledKernel } from '../webgpu/compiled-kernel.ts';
import type { Pass } from '../webgpu/pass.ts';
import { endVectorsKernel } from './end-vectors.ts';
import { rowLanes } from './row-lanes.ts';
import { vectorStepKernel, type VectorStepParams } from './vector-step.ts';

/**
 * A phase of conjugate gradients; vector-step.wgsl describes them. Between two phases other kernels multiply
 * the rows' matrices by vectors.
 */
export type Phase = VectorStepParams['phase'] | 'end';

type PhaseShape = Omit<VectorStepParams, 'phase'> & {
  /** The phase `end` writes the float16 mirror of the factors. */
  readonly half: boolean;
};

type PhaseBuffers = Readonly<
  Record<BuffersOf<typeof vectorStepKernel> | BuffersOf<typeof endVectorsKernel>, Binding>
>;

type GivenBuffers = Pick<PhaseBuffers, 'gradients' | 'factors' | 'shifts' | 'status'> & {
  readonly [Name in keyof PhaseBuffers]?: PhaseBuffers[Name] | undefined;
};

/**
 * All buffers of the phases. For a buffer that is not used, a separate one of a few bytes is bound, because
 * WebGPU does not allow two bindings of one writable buffer.
 */
export async function phaseBuffers(gpu: Gpu, given: GivenBuffers): Promise<PhaseBuffers> {
  const names = ['work', 'given', 'gram', 'direction', 'half', 'bias'] as const;
  const entries = await Promise.all(
    names.map(async (name) => [name, given[name] ?? (await gpu.scratch(`no ${name}`, 16))] as const),
  );
  return { ...given, ...(Object.fromEntries(entries) as Record<(typeof names)[number], Binding>) };
}

/** The compiled phases of rows of one shape. */
export class RowPhases {
  readonly #shape: PhaseShape;
  readonly #kernels: ReadonlyMap<Phase, CompiledKernel>;

  private constructor(shape: PhaseShape, kernels: ReadonlyMap<Phase, CompiledKernel>) {
    this.#shape = shape;
    this.#kernels = kernels;
  }

  static async compile(gpu: Gpu, shape: PhaseShape, phases: readonly Phase[]): Promise<RowPhases> {
    const { half, ...step } = shape;
    const { rank, biases, listed } = shape;
    const compiled = await Promise.all(
      phases.map(async (phase): Promise<readonly [Phase, CompiledKernel]> => [
        phase,
        phase === 'end'
          ? await gpu.compile(endVectorsKernel, { rank, biases, listed, half })
          : await gpu.compile(vectorStepKernel, { ...step, phase }),
      ]),
    );
    return new RowPhases(shape, new Map(compiled));
  }

  /** Adds a phase of `count` rows to a pass: the rows of `work`, or the rows from `first` on. */
  add(
    pass: Pass,
    phase: Phase,
    buffers: PhaseBuffers,
    { first = 0, count }: { readonly first?: number; readonly count: number },
  ): void {
    const compiled = this.#kernels.get(phase);
    if (compiled === undefined) throw new Error(`the phase ${phase} was not compiled`);
    const bindings: Readonly<Record<string, Binding>> = buffers;
    pass.dispatch(compiled, bindings, { count, first }, Math.ceil(count / rowLanes(this.#shape.rank).rows));
  }
}
