import { paddedRank } from '../device/slots.ts';
import { gramProductsKernel, gramProductsWorkgroups } from '../implicit/gram-products.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { Binding, BuffersOf, CompiledKernel } from '../webgpu/kernel.ts';
import type { Pass } from '../webgpu/pass.ts';
import { endVectorsKernel } from './end-vectors.ts';
import { rowLanes } from './row-lanes.ts';
import { isMultiplied, vectorStepKernel, type VectorStepParams } from './vector-step.ts';

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
  Record<BuffersOf<typeof vectorStepKernel> | BuffersOf<typeof endVectorsKernel> | 'multiplied', Binding>
>;

type GivenBuffers = Pick<PhaseBuffers, 'gradients' | 'factors' | 'shifts' | 'status'> & {
  readonly [Name in keyof PhaseBuffers]?: PhaseBuffers[Name] | undefined;
};

/**
 * All buffers of the phases. For a buffer that is not used, a separate one of a few bytes is bound, because
 * WebGPU does not allow two bindings of one writable buffer.
 */
export async function phaseBuffers(gpu: Gpu, given: GivenBuffers): Promise<PhaseBuffers> {
  const names = ['work', 'given', 'gram', 'multiplied', 'direction', 'half', 'bias'] as const;
  const entries = await Promise.all(
    names.map(async (name) => [name, given[name] ?? (await gpu.scratch(`no ${name}`, 16))] as const),
  );
  return { ...given, ...(Object.fromEntries(entries) as Record<(typeof names)[number], Binding>) };
}

/** Most bytes of products with the Gram matrix, where the rows are consecutive. */
const MULTIPLIED_BYTES = 64 << 20;

/**
 * Rows of the buffer `multiplied`, in which gram-products stores the products of the rows' directions with
 * the Gram matrix; 0 if there are none. Listed rows have all of them at once. Others are taken in ranges.
 */
export function multipliedRows(
  { rank, implicit, listed }: Pick<PhaseShape, 'rank' | 'implicit' | 'listed'>,
  count: number,
): number {
  if (!implicit || !isMultiplied(rank)) return 0;
  return listed ? count : Math.min(count, Math.floor(MULTIPLIED_BYTES / (4 * paddedRank(rank))));
}

/** The compiled phases of rows of one shape. */
export class RowPhases {
  readonly #shape: PhaseShape;
  readonly #kernels: ReadonlyMap<Phase, CompiledKernel>;
  /** The kernel that multiplies directions by the Gram matrix, if it is not part of the phases. */
  readonly #gram: CompiledKernel | undefined;

  private constructor(
    shape: PhaseShape,
    kernels: ReadonlyMap<Phase, CompiledKernel>,
    gram: CompiledKernel | undefined,
  ) {
    this.#shape = shape;
    this.#kernels = kernels;
    this.#gram = gram;
  }

  static async compile(gpu: Gpu, shape: PhaseShape, phases: readonly Phase[]): Promise<RowPhases> {
    const { half, ...step } = shape;
    const { rank, biases, listed } = shape;
    const multiplies = multipliedRows(shape, 1) > 0 && phases.some((phase) => needsProducts(phase));
    const [gram, ...compiled] = await Promise.all([
      multiplies ? gpu.compile(gramProductsKernel, { rank }) : undefined,
      ...phases.map(async (phase): Promise<readonly [Phase, CompiledKernel]> => [
        phase,
        phase === 'end'
          ? await gpu.compile(endVectorsKernel, { rank, biases, listed, half })
          : await gpu.compile(vectorStepKernel, { ...step, phase }),
      ]),
    ]);
    return new RowPhases(shape, new Map(compiled), gram);
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
    const { rank } = this.#shape;
    const add = (bindings: Readonly<Record<string, Binding>>, range: { first: number; count: number }) =>
      pass.dispatch(compiled, bindings, range, Math.ceil(range.count / rowLanes(rank).rows));
    const gram = needsProducts(phase) ? this.#gram : undefined;
    if (gram === undefined) return void add(buffers, { first, count });
    const { direction: vectors, gram: matrix, multiplied: products } = buffers;
    const most = multipliedRows(this.#shape, count);
    for (let done = 0; done < count; done += most) {
      const range = { first: first + done, count: Math.min(most, count - done) };
      pass.dispatch(
        gram,
        { vectors, gram: matrix, products },
        range,
        gramProductsWorkgroups({ rank }, range.count),
      );
      add({ ...buffers, gram: products }, range);
    }
  }
}

/** Phases that need the product of A with the rows' directions. */
function needsProducts(phase: Phase): boolean {
  return phase === 'begin' || phase === 'step';
}
